package place

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/stead-project/stead/manifest"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/server/proof"
	"github.com/stead-project/stead/spec"
)

// chosen is the node of a new life db-0 of the namespace default, with the labels app: db and track: blue, at
// the revision new, whose template has the fields of text, in YAML; or why there is none. Each node is
// a line: its name and what it is, then a line's part for each life there:
//
//	a zone=x taint=key=value:Effect silent cordoned | db-1 track=green rev=old stopping in=other
//
// A life has the label app: SET, unless it says otherwise.
func chosen(t *testing.T, text string, lines ...string) string {
	t.Helper()
	doc := "apiVersion: apps/v1\nkind: StatefulSet\nmetadata: {name: db}\nspec:\n  selector: {matchLabels: {app: db}}\n" +
		"  template:\n    metadata: {labels: {app: db, track: blue}}\n    spec:\n      containers: [{name: a, image: b}]\n      "
	o, problems, _ := manifest.Parse([]manifest.Source{{Name: "f", Content: []byte(doc + strings.ReplaceAll(text, "\n", "\n      ") + "\n")}}, manifest.Options{})
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	var nodes []proof.Node
	for _, line := range lines {
		nodes = append(nodes, nodeOf(t, strings.Split(line, "|"), o.Sets[0].Spec.Template.Spec))
	}
	p := New(nodes, nil, map[spec.NodeName]int{})
	n, no := p.Choose(&Request{
		ID: spec.Identity{Namespace: "default", Set: "db"}, Template: &o.Sets[0].Spec.Template.Spec,
		Labels: o.Sets[0].Spec.Template.Metadata.Labels, Revision: "new",
	})
	if no != nil {
		return no.Text
	}
	return string(n.Node.Name)
}

func nodeOf(t *testing.T, parts []string, template spec.MemberSpec) proof.Node {
	t.Helper()
	words := strings.Fields(parts[0])
	n := proof.Node{
		Node:    &records.Node{Name: spec.NodeName(words[0]), UID: "u", Labels: map[string]string{}},
		Facts:   &records.NodeFacts{},
		Session: &records.Session{UID: "u"},
	}
	for _, word := range words[1:] {
		key, value, _ := strings.Cut(word, "=")
		switch key {
		case "silent":
			n.Session = nil
		case "cordoned":
			n.Node.Cordon = true
		case "taint":
			taint, err := spec.ParseTaint(value)
			if err != nil {
				t.Fatal(err)
			}
			n.Node.Taints = append(n.Node.Taints, taint)
		default:
			n.Node.Labels[key] = value
		}
	}
	n.Labels = n.Node.AllLabels()
	for _, part := range parts[1:] {
		n.Residents = append(n.Residents, residentOf(t, strings.Fields(part), template))
	}
	n.Lives = len(n.Residents)
	return n
}

// residentOf is a life; a word avoids gives it the required anti-affinity of template.
func residentOf(t *testing.T, words []string, template spec.MemberSpec) proof.Resident {
	t.Helper()
	set, ordinal, err := spec.ParseMemberName(words[0])
	if err != nil {
		t.Fatal(err)
	}
	r := proof.Resident{ID: spec.Identity{Namespace: "default", Set: set, Ordinal: ordinal}, Labels: map[string]string{"app": string(set)}, Revision: "new"}
	avoids := false
	for _, word := range words[1:] {
		key, value, _ := strings.Cut(word, "=")
		switch key {
		case "in":
			r.ID.Namespace = spec.Namespace(value)
		case "rev":
			r.Revision = spec.RevisionHash(value)
		case "stopping":
			r.Stopping = true
		case "avoids":
			avoids = true
		case "needs", "likes", "dislikes":
			r = r.Running(&spec.MemberSpec{Affinity: about(t, key, value)})
		default:
			r.Labels[key] = value
		}
	}
	if avoids {
		r = r.Running(&template)
	}
	return r
}

// about is the affinity of one who runs: it needs those with app: APP in its zone, or likes or dislikes them
// with a weight (APP:WEIGHT).
func about(t *testing.T, how, value string) *spec.Affinity {
	t.Helper()
	app, weight, _ := strings.Cut(value, ":")
	term := spec.MemberTerm{TopologyKey: "zone", LabelSelector: &spec.LabelSelector{MatchLabels: map[string]string{"app": app}}}
	if how == "needs" {
		return &spec.Affinity{PodAffinity: &spec.MemberAffinity{Required: []spec.MemberTerm{term}}}
	}
	w, err := strconv.ParseInt(weight, 10, 32)
	if err != nil {
		t.Fatal(err)
	}
	a := &spec.MemberAffinity{Preferred: []spec.PreferredMember{{Weight: int32(w), Term: term}}}
	if how == "likes" {
		return &spec.Affinity{PodAffinity: a}
	}
	return &spec.Affinity{PodAntiAffinity: a}
}

// required is a required term of podAffinity or podAntiAffinity, by zone, of those with app: db.
func required(which, more string) string {
	return fmt.Sprintf("affinity: {%s: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: zone, %s labelSelector: {matchLabels: {app: db}}}]}}", which, more)
}

// preferred has terms "weight app", by zone.
func preferred(which string, terms ...string) string {
	var list []string
	for _, term := range terms {
		weight, app, _ := strings.Cut(term, " ")
		list = append(list, fmt.Sprintf("{weight: %s, podAffinityTerm: {topologyKey: zone, labelSelector: {matchLabels: {app: %s}}}}", weight, app))
	}
	return which + ": {preferredDuringSchedulingIgnoredDuringExecution: [" + strings.Join(list, ", ") + "]}"
}

func spreadOver(key, more string) string {
	return "{maxSkew: 1, topologyKey: " + key + ", labelSelector: {matchLabels: {app: db}}" + more + "}"
}

func spreads(list ...string) string {
	return "topologySpreadConstraints: [" + strings.Join(list, ", ") + "]"
}

type placementCase struct {
	name, text string
	nodes      []string
	want       string
}

func judge(t *testing.T, cases []placementCase) {
	t.Helper()
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if got := chosen(t, c.text, c.nodes...); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

// TestTermsNameMembersAsInKubernetes mirrors AffinityTerm.Matches, the merge of matchLabelKeys and
// mismatchLabelKeys when a pod is created, and the plugin InterPodAffinity.
func TestTermsNameMembersAsInKubernetes(t *testing.T) {
	const apart, near = "podAntiAffinity", "podAffinity"
	judge(t, []placementCase{
		{"without namespaces: its own", required(apart, ""), []string{"a zone=x | db-1 in=other", "b zone=y | db-2"}, "a"},
		{"an empty namespaceSelector is all", required(apart, "namespaceSelector: {},"), []string{"a zone=x | db-1 in=other", "b zone=y | web-1 | web-2"}, "b"},
		{"a namespace by its label", required(apart, "namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: other}},"),
			[]string{"a zone=x | db-1 in=other", "b zone=y | db-2 | db-3"}, "b"},
		{"a namespaceSelector and names: either", required(apart, "namespaces: [third], namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: other}},"),
			[]string{"a zone=x | db-1 in=other", "b zone=y | db-2 in=third", "c zone=z | db-3 | db-4"}, "c"},
		{"by a label that no namespace has", required(apart, "namespaceSelector: {matchLabels: {team: a}},"), []string{"a zone=x | db-1 in=other", "b zone=y | web-1 | web-2"}, "a"},
		{"all but one namespace", required(apart, "namespaceSelector: {matchExpressions: [{key: kubernetes.io/metadata.name, operator: NotIn, values: [other]}]},"),
			[]string{"a zone=x | db-1", "b zone=y | db-1 in=other | db-2 in=other"}, "b"},
		{"those of its own track", required(apart, "matchLabelKeys: [track],"), []string{"a zone=x | db-1 track=green", "b zone=y | db-2 track=blue"}, "a"},
		{"those of its own revision", required(apart, "matchLabelKeys: [controller-revision-hash],"),
			[]string{"a zone=x | db-1 rev=new", "b zone=y | db-2 rev=old | db-3 rev=old"}, "b"},
		{"a key that it does not have says nothing", required(apart, "matchLabelKeys: [nothing],"), []string{"a zone=x | db-1", "b zone=y | web-1 | web-2"}, "b"},
		{"those of other tracks", required(apart, "mismatchLabelKeys: [track],"), []string{"a zone=x | db-1 track=green", "b zone=y | db-2 track=blue | web-2"}, "b"},
		{"also who has no track", required(apart, "mismatchLabelKeys: [track],"), []string{"a zone=x | db-1", "b zone=y | db-2 track=blue | web-2"}, "b"},
		{"who is there counts by his own track", required(apart, "matchLabelKeys: [track],"),
			[]string{"a zone=x | db-1 track=blue avoids", "b zone=y | db-2 track=green avoids | web-1"}, "b"},
		{"near members of its own revision", required(near, "matchLabelKeys: [controller-revision-hash],"), []string{"a zone=x | db-1 rev=old", "b zone=y | db-2 rev=new"}, "b"},
		{"one member must serve all terms", "affinity: {podAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [" +
			"{topologyKey: zone, labelSelector: {matchLabels: {app: web}}}, {topologyKey: kubernetes.io/hostname, labelSelector: {matchLabels: {tier: front}}}]}}",
			[]string{"a zone=x | web-1 | db-1 tier=front", "b zone=y | web-2 tier=front | web-3"}, "b"},
		{"the first of several that want each other must match every term", "affinity: {podAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [" +
			"{topologyKey: zone, labelSelector: {matchLabels: {app: db}}}, {topologyKey: zone, labelSelector: {matchLabels: {app: web}}}]}}",
			[]string{"a zone=x"}, "no node can take it: node a has none of the members near it (by zone) that the affinity requires"},
		{"a label of Kubernetes' own", "affinity: {podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [" +
			"{topologyKey: zone, labelSelector: {matchLabels: {statefulset.kubernetes.io/pod-name: web-1}}}]}}", []string{"a zone=x | web-1", "b zone=y | web-2 | web-3"}, "b"},
	})
}

// TestPreferencesWeighAsInKubernetes mirrors the scores of TaintToleration, NodeAffinity, InterPodAffinity and
// PodTopologySpread, each 0 to 100, with weights 3, 2, 2 and 2.
func TestPreferencesWeighAsInKubernetes(t *testing.T) {
	const apart, near = "podAntiAffinity", "podAffinity"
	disk := func(weight int) string {
		return "nodeAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [{weight: " + strconv.Itoa(weight) +
			", preference: {matchExpressions: [{key: disk, operator: In, values: [ssd]}]}}, {weight: 10, preference: {matchExpressions: [{key: rack, operator: Exists}]}}]}"
	}
	fair := spreads(spreadOver("zone", ", whenUnsatisfiable: ScheduleAnyway"))
	judge(t, []placementCase{
		{"each member that a term names counts", "affinity: {" + preferred(apart, "10 web") + "}", []string{"a zone=x | web-1 | web-2", "b zone=y | web-3 | db-1 | db-2"}, "b"},
		{"the larger weight", "affinity: {" + preferred(near, "10 web", "11 cache") + "}", []string{"a zone=x | web-1", "b zone=y | cache-1 | db-1"}, "b"},
		{"weights of several add up", "affinity: {" + preferred(near, "10 web", "11 cache") + "}", []string{"a zone=x | web-1 | web-2", "b zone=y | cache-1"}, "a"},
		{"for and against", "affinity: {" + preferred(near, "10 web") + ", " + preferred(apart, "11 cache") + "}", []string{"a zone=x | web-1 | cache-1", "b zone=y | db-1 | db-2 | db-3"}, "b"},
		{"labels of nodes by weight", "affinity: {" + disk(11) + "}", []string{"a rack=r", "b disk=ssd | web-1"}, "b"},
		{"labels of nodes add up", "affinity: {" + disk(11) + "}", []string{"a disk=ssd", "b disk=ssd rack=r | web-1"}, "b"},
		{"many members are no more than the best label", "affinity: {" + disk(100) + ", " + preferred(near, "1 web") + "}",
			[]string{"a zone=x disk=ssd rack=r", "b zone=y | web-1 | web-2 | web-3"}, "a"},
		{"a taint weighs more than a label", "affinity: {" + disk(100) + "}", []string{"a disk=ssd rack=r taint=old:PreferNoSchedule", "b"}, "b"},
		{"two taints weigh more than one", "", []string{"a taint=old:PreferNoSchedule taint=slow:PreferNoSchedule", "b taint=old:PreferNoSchedule | web-1"}, "b"},
		{"a taint weighs less than a label and a member", "affinity: {" + disk(100) + ", " + preferred(near, "1 web") + "}",
			[]string{"a disk=ssd rack=r zone=x taint=old:PreferNoSchedule | web-1", "b zone=y"}, "a"},
		{"ScheduleAnyway: where the fewest are", fair, []string{"a zone=x | db-1 | db-2", "b zone=y | db-3 | web-1 | web-2"}, "b"},
		{"ScheduleAnyway: a node without the label is the last", fair, []string{"a", "b zone=y | db-3 | web-1 | web-2", "c zone=z | db-1 | db-2"}, "b"},
		{"ScheduleAnyway: also alone it is none that cannot be taken", fair, []string{"a"}, "a"},
		{"ScheduleAnyway: more places weigh more", spreads(spreadOver("zone", ", whenUnsatisfiable: ScheduleAnyway"), spreadOver("rack", ", whenUnsatisfiable: ScheduleAnyway")),
			[]string{"a zone=x rack=1 | db-1 | db-2 | db-3", "b zone=y rack=2", "c zone=y rack=3", "d zone=y rack=4 | db-4 | db-5 | db-6"}, "b"},
	})
}

// TestThoseWhoRunAttractAndRepelThoseWhoCome mirrors the score of InterPodAffinity for terms of existing pods: preferred
// ones with their weights, required affinity with hardPodAffinityWeight 1.
func TestThoseWhoRunAttractAndRepelThoseWhoCome(t *testing.T) {
	const near = "podAffinity"
	judge(t, []placementCase{
		{"one who likes it", "", []string{"a zone=x", "b zone=y | web-1 likes=db:1"}, "b"},
		{"one who likes others", "", []string{"a zone=x", "b zone=y | web-1 likes=zk:1"}, "a"},
		{"one who likes it in another namespace", "", []string{"a zone=x", "b zone=y | web-1 in=other likes=db:1"}, "a"},
		{"one who dislikes it", "", []string{"a zone=x | web-1 dislikes=db:1", "b zone=y | zk-1 | zk-2"}, "b"},
		{"it is in the whole zone", "", []string{"a zone=x | web-1 dislikes=db:1", "b zone=x", "c zone=y | zk-1 | zk-2"}, "c"},
		{"a node without the label is in no zone", "", []string{"a | web-1 dislikes=db:1", "b zone=y | zk-1 | zk-2"}, "a"},
		{"one who needs it counts a little", "", []string{"a zone=x", "b zone=y | web-1 needs=db"}, "b"},
		{"less than one who dislikes it twice as much", "", []string{"a zone=x | zk-1 | zk-2", "b zone=y | web-1 needs=db | web-2 dislikes=db:2"}, "a"},
		{"two who need it", "", []string{"a zone=x | web-1 needs=db", "b zone=y | web-2 needs=db | web-3 needs=db"}, "b"},
		{"each of those who like it", "", []string{"a zone=x | web-1 likes=db:10", "b zone=y | web-2 likes=db:6 | web-3 likes=db:6"}, "b"},
		{"beside what it likes itself", "affinity: {" + preferred(near, "10 cache") + "}", []string{"a zone=x | cache-1", "b zone=y | web-1 likes=db:11"}, "b"},
		{"one who is about to stop counts until it is gone", "", []string{"a zone=x | web-1 dislikes=db:1 stopping", "b zone=y | zk-1 | zk-2"}, "b"},
		{"its own life of before does not", "", []string{"a zone=x | db-0 dislikes=db:1", "b zone=y | zk-1 | zk-2"}, "a"},
		{"but others of its set do", "", []string{"a zone=x | db-0 dislikes=db:1 | db-1 dislikes=db:1", "b zone=y | zk-1 | zk-2 | zk-3 | db-7 | db-8"}, "b"},
	})
}

// Each of a set's members is counted where it begins for those that begin after it in the same step.
func TestThoseWhoBeginAttractThoseWhoBeginAfterThem(t *testing.T) {
	template := &spec.MemberSpec{Affinity: about(t, "needs", "db")}
	nodes := []proof.Node{nodeOf(t, []string{"a zone=x"}, *template), nodeOf(t, []string{"b zone=y"}, *template)}
	p := New(nodes, nil, map[spec.NodeName]int{})
	for i, node := range []spec.NodeName{"b", "b"} {
		r := &Request{ID: spec.Identity{Namespace: "default", Set: "web", Ordinal: i}, Template: template, Labels: map[string]string{"app": "web"}}
		p.Choose(r)
		p.Take(r, node)
	}
	plain := &Request{ID: spec.Identity{Namespace: "default", Set: "db"}, Template: &spec.MemberSpec{}, Labels: map[string]string{"app": "db"}}
	if n, no := p.Choose(plain); no != nil || n.Node.Name != "b" {
		t.Errorf("chosen is %+v %+v, want b", n, no)
	}
}

// TestSpreadsCountAsInKubernetes mirrors the filter of the plugin PodTopologySpread.
func TestSpreadsCountAsInKubernetes(t *testing.T) {
	even := spreads(spreadOver("zone", ""))
	few := "no node can take it: node a would have 2 members (by zone); maxSkew is 1, and there are 2 of the 3 places that minDomains asks for (also b)"
	ssd := "\nnodeSelector: {disk: ssd}"
	judge(t, []placementCase{
		{"as many places as minDomains", spreads(spreadOver("zone", ", minDomains: 2")), []string{"a zone=x | db-1", "b zone=y | db-2"}, "a"},
		{"fewer places than minDomains: the fewest count as none", spreads(spreadOver("zone", ", minDomains: 3")), []string{"a zone=x | db-1", "b zone=y | db-2"}, few},
		{"minDomains: a place that is free is one of them", spreads(spreadOver("zone", ", minDomains: 3")), []string{"a zone=x | db-1", "b zone=y | web-1 | web-2"}, "b"},
		{"those whom nodeSelector excludes do not count", even + ssd, []string{"a zone=x disk=ssd", "b zone=x | db-1 | db-2", "c zone=y disk=ssd | web-1 | web-2"}, "a"},
		{"nodeAffinityPolicy Ignore: they do", spreads(spreadOver("zone", ", nodeAffinityPolicy: Ignore")) + ssd,
			[]string{"a zone=x disk=ssd", "b zone=x | db-1 | db-2", "c zone=y disk=ssd | web-1 | web-2"}, "c"},
		{"nodeAffinityPolicy Ignore: their places do, too", spreads(spreadOver("zone", ", nodeAffinityPolicy: Ignore")) + ssd, []string{"a zone=x disk=ssd | db-1", "b zone=y"},
			"no node can take it: node a would have 2 more members (by zone) than the place with the fewest; maxSkew is 1; node b has no label disk=ssd"},
		{"nodeTaintsPolicy Honor: a place of tainted nodes does not count", spreads(spreadOver("zone", ", nodeTaintsPolicy: Honor")),
			[]string{"a zone=x | db-1", "b zone=y taint=old:NoSchedule"}, "a"},
		{"nodeTaintsPolicy Honor: it does if the taint is tolerated", spreads(spreadOver("zone", ", nodeTaintsPolicy: Honor")) + "\ntolerations: [{operator: Exists}]",
			[]string{"a zone=x | db-1", "b zone=y taint=old:NoSchedule | web-1 | web-2"}, "b"},
		{"nodeTaintsPolicy Honor: or only a preference", spreads(spreadOver("zone", ", nodeTaintsPolicy: Honor")),
			[]string{"a zone=x | db-1", "b zone=y taint=old:PreferNoSchedule | web-1 | web-2"}, "b"},
		{"nodeTaintsPolicy Honor: a cordoned node is tainted", spreads(spreadOver("zone", ", nodeTaintsPolicy: Honor")), []string{"a zone=x | db-1", "b zone=y cordoned"}, "a"},
		{"nodeTaintsPolicy Honor: so is a silent one", spreads(spreadOver("zone", ", nodeTaintsPolicy: Honor")), []string{"a zone=x | db-1", "b zone=y silent"}, "a"},
		{"nodeTaintsPolicy Ignore: they count", even, []string{"a zone=x | db-1", "b zone=y cordoned"},
			"no node can take it: node a would have 2 more members (by zone) than the place with the fewest; maxSkew is 1; node b is cordoned"},
		{"matchLabelKeys: those of its own revision", spreads(spreadOver("zone", ", matchLabelKeys: [controller-revision-hash]")),
			[]string{"a zone=x | db-1 rev=new", "b zone=y | db-2 rev=old | db-3 rev=old"}, "b"},
		{"matchLabelKeys: a key that it does not have says nothing", spreads(spreadOver("zone", ", matchLabelKeys: [nothing]")), []string{"a zone=x | db-1", "b zone=y | web-1 | web-2"}, "b"},
		{"those who are about to stop do not count", even, []string{"a zone=x | db-1 stopping | db-2 stopping", "b zone=y | db-3 | db-4"}, "a"},
		{"an empty selector counts nobody", "topologySpreadConstraints: [{maxSkew: 1, topologyKey: zone, labelSelector: {}}]",
			[]string{"a zone=x | db-1", "b zone=y | web-1 | web-2"}, "a"},
		{"a node must have the labels of all constraints to count", spreads(spreadOver("zone", ""), spreadOver("rack", "")),
			[]string{"a zone=x rack=1 | db-1", "b zone=y"}, "a"},
		{"the new member counts only if it is selected", "topologySpreadConstraints: [{maxSkew: 1, topologyKey: zone, labelSelector: {matchLabels: {app: web}}}]",
			[]string{"a zone=x | web-1", "b zone=y | db-1 | db-2"}, "a"},
	})
}
