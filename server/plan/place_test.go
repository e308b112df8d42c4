package plan

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/stead-project/stead/manifest"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/spec/causes"
	"github.com/stead-project/stead/spec/scalar"
)

// grounds is a world of the set db (app: db) whose members run the template's spec with
// the fields of text, in YAML. Each node is a line of words:
//
//	a zone=x taint=key=value:Effect cpu=USED/MILLIS mem=USED/MiB pages=USED/MiB db-0 other/db-0 web-0:app=x web-1:avoids=db zk-1:shuns=db c-0:port=80/TCP
//
// its name, labels, taints, what is asked for there already, and residents: members of
// the set, or of one in the namespace other, or with another label, or with required
// anti-affinity to an app by host (avoids) or by zone (shuns), or with a host port.
func grounds(t *testing.T, line, text string, nodes ...string) World {
	t.Helper()
	w := world(t, line)
	w.Nodes = nil
	for _, node := range nodes {
		w.Nodes = append(w.Nodes, ground(t, strings.Fields(node)))
	}
	doc := "apiVersion: apps/v1\nkind: StatefulSet\nmetadata: {name: db}\nspec:\n  selector: {matchLabels: {app: db}}\n" +
		"  template:\n    metadata: {labels: {app: db}}\n    spec:\n      containers: [{name: a, image: b, resources: {requests: {cpu: 500m, memory: 100Mi}}}]\n"
	for _, field := range strings.Split(text, "\n") {
		doc += "      " + field + "\n"
	}
	o, problems, _ := manifest.Parse([]manifest.Source{{Name: "f", Content: []byte(doc)}}, manifest.Options{})
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	w.Set.Spec.Template = o.Sets[0].Spec.Template
	for i, r := range w.Revisions {
		with := *r
		with.Template = w.Set.Spec.Template
		w.Revisions[i] = &with
	}
	return w
}

func ground(t *testing.T, words []string) Node {
	t.Helper()
	n := Node{
		Node:    &records.Node{Name: spec.NodeName(words[0]), UID: spec.UID("uid-" + words[0]), Labels: map[string]string{}},
		Facts:   &records.NodeFacts{CPUMillis: 4000, MemoryBytes: 4 << 30, Epoch: 1, Level: spec.Level},
		Session: &records.Session{UID: spec.UID("uid-" + words[0]), Boot: "boot1"},
	}
	for _, word := range words[1:] {
		key, value, labelled := strings.Cut(word, "=")
		used, all, _ := strings.Cut(value, "/")
		u, _ := strconv.ParseInt(used, 10, 64)
		most, _ := strconv.ParseInt(all, 10, 64)
		name, about, other := strings.Cut(word, ":")
		switch {
		case key == "taint":
			pair, effect, _ := strings.Cut(value, ":")
			k, v, _ := strings.Cut(pair, "=")
			n.Node.Taints = append(n.Node.Taints, spec.Taint{Key: k, Value: v, Effect: effect})
		case key == "cpu":
			n.CPUMillis, n.Facts.CPUMillis = u, most
		case key == "pages":
			n.HugePages.Of2Mi, n.Facts.HugePages.Of2Mi = u<<20, most<<20
		case key == "mem":
			n.MemoryBytes, n.Facts.MemoryBytes = u<<20, most<<20
		case other || !labelled:
			n.Residents = append(n.Residents, resident(t, name, about))
			n.Lives++
		default:
			n.Node.Labels[key] = value
		}
	}
	n.Labels = n.Node.AllLabels()
	return n
}

func resident(t *testing.T, name, about string) Resident {
	t.Helper()
	namespace, member, other := strings.Cut(name, "/")
	if !other {
		namespace, member = "default", name
	}
	set, ordinal, err := spec.ParseMemberName(member)
	if err != nil {
		t.Fatal(err)
	}
	r := Resident{ID: spec.Identity{Namespace: spec.Namespace(namespace), Set: set, Ordinal: ordinal}, Labels: map[string]string{"app": string(set)}}
	key, app, _ := strings.Cut(about, "=")
	keys := map[string]string{"avoids": spec.HostnameLabel, "shuns": "zone"}
	switch {
	case key == "app":
		r.Labels["app"] = app
	case key == "port":
		r.Ports = []spec.HostPort{hostPort(t, app)}
	case keys[key] != "":
		term := spec.MemberTerm{LabelSelector: &spec.LabelSelector{MatchLabels: map[string]string{"app": app}}, TopologyKey: keys[key]}
		r.Affinity = &spec.Affinity{PodAntiAffinity: &spec.MemberAffinity{Required: []spec.MemberTerm{term}}}
	}
	return r
}

const (
	near      = "affinity: {podAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: zone, labelSelector: {matchLabels: {app: %s}}}]}}"
	apart     = "affinity: {podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: %s, labelSelector: {matchLabels: {app: db}}}]}}"
	apartSoft = "affinity: {podAntiAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [{weight: 10, podAffinityTerm: {topologyKey: zone, labelSelector: {matchLabels: {app: web}}}}]}}"
	liked     = "affinity: {nodeAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [{weight: 1, preference: {matchExpressions: [{key: disk, operator: In, values: [ssd]}]}}]}}"
	required  = "affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: gen, operator: Gt, values: ['3']}]}, {matchFields: [{key: metadata.name, operator: In, values: [c]}]}]}}}"
	even      = "topologySpreadConstraints: [{maxSkew: 1, topologyKey: zone, labelSelector: {matchLabels: {app: db}}}]"
	fair      = "topologySpreadConstraints: [{maxSkew: 1, topologyKey: zone, whenUnsatisfiable: ScheduleAnyway, labelSelector: {matchLabels: {app: db}}}]"
)

// TestPlacement starts one member (parallel 1) and tells its node, or why there is none.
func TestPlacement(t *testing.T) {
	tests := []struct {
		name, text string
		nodes      []string
		want       string
	}{
		{"the first by name when all are equal", "", []string{"a", "b"}, "a"},
		{"the one with the fewest lives", "", []string{"a web-0", "b"}, "b"},
		{"a label that it must have", "nodeSelector: {disk: ssd}", []string{"a disk=hdd", "b disk=ssd"}, "b"},
		{"every node has its name for a label", "nodeSelector: {kubernetes.io/hostname: b}", []string{"a", "b"}, "b"},
		{"no node has the label", "nodeSelector: {disk: ssd}", []string{"a", "b disk=hdd", "c", "d", "e", "f"},
			"NoNode no node can take it: node a has no label disk=ssd (and 5 other nodes)"},
		{"a few that say the same are named", "nodeSelector: {disk: ssd}", []string{"a", "b", "c", "d"},
			"NoNode no node can take it: node a has no label disk=ssd (also b, c, d)"},
		{"any term of a node affinity serves", required, []string{"a gen=3", "b gen=4", "c"}, "b"},
		{"a field of a node serves, too", required, []string{"a gen=x", "c"}, "c"},
		{"none of the terms holds", required, []string{"a gen=3", "b"}, "NoNode no node can take it: node a does not have the labels that the node affinity requires (also b)"},
		{"a preferred label comes before the spread", liked, []string{"a", "b disk=ssd web-0 web-1"}, "b"},
		{"a taint keeps it away", "", []string{"a taint=dedicated=kafka:NoSchedule", "b web-0"}, "b"},
		{"a taint that is tolerated does not", "tolerations: [{key: dedicated, value: kafka}]", []string{"a taint=dedicated=kafka:NoSchedule", "b web-0"}, "a"},
		{"a toleration of another value does not help", "tolerations: [{key: dedicated, value: zk}]", []string{"a taint=dedicated=kafka:NoSchedule"},
			"NoNode no node can take it: node a has the taint dedicated=kafka:NoSchedule, which is not tolerated"},
		{"a toleration of another effect does not help", "tolerations: [{key: dedicated, operator: Exists, effect: NoExecute}]", []string{"a taint=dedicated:NoSchedule"},
			"NoNode no node can take it: node a has the taint dedicated:NoSchedule, which is not tolerated"},
		{"one toleration for all taints", "tolerations: [{operator: Exists}]", []string{"a taint=x=y:NoSchedule taint=z:NoSchedule"}, "a"},
		{"a taint that is only preferred gives way", "", []string{"a taint=old:PreferNoSchedule", "b web-0 web-1"}, "b"},
		{"nor one that is tolerated", "tolerations: [{operator: Exists}]", []string{"a taint=old:PreferNoSchedule", "b web-0"}, "a"},
		{"one of another kind says nothing yet", "", []string{"a taint=old:NoExecute", "b web-0"}, "a"},
		{"and holds nobody who has no other node", "", []string{"a taint=old:PreferNoSchedule"}, "a"},
		{"what it asks for fits exactly", "", []string{"a cpu=3500/4000 mem=0/100"}, "a"},
		{"a node that does not say what it has takes all", "", []string{"a cpu=1/0 mem=1/0"}, "a"},
		{"too little cpu is left", "", []string{"a cpu=3501/4000", "b cpu=0/499"},
			"NoRoom no node can take it: node a has 499m of 4 cpu left, 500m requested; node b has 499m of 499m cpu left, 500m requested"},
		{"too little memory is left", "", []string{"a mem=924/1023"}, "NoRoom no node can take it: node a has 99Mi of 1023Mi memory left, 100Mi requested"},
		{"near others, in their zone", fmt.Sprintf(near, "cache"), []string{"a zone=x", "b zone=y", "c zone=y cache-0"}, "b"},
		{"the others are nowhere", fmt.Sprintf(near, "cache"), []string{"a zone=x", "b"},
			"NoNode no node can take it: node a has none of the members near it (by zone) that the affinity requires; node b has no label zone, which the affinity needs"},
		{"the first that wants its like begins anywhere", fmt.Sprintf(near, "db"), []string{"a zone=x"}, "a"},
		{"also where one is that is in no zone", fmt.Sprintf(near, "db"), []string{"a zone=x", "b db-7"}, "a"},
		{"the next goes where its like is", fmt.Sprintf(near, "db"), []string{"a zone=x", "b zone=y db-7"}, "b"},
		{"apart from its like, by host", fmt.Sprintf(apart, "kubernetes.io/hostname"), []string{"a db-7", "b web-0 web-1"}, "b"},
		{"apart from its like, by zone", fmt.Sprintf(apart, "zone"), []string{"a zone=x db-7", "b zone=x", "c zone=y"}, "c"},
		{"a node without the label is no place", fmt.Sprintf(apart, "zone"), []string{"a zone=x db-7", "b"}, "b"},
		{"no label is not an empty one", fmt.Sprintf(apart, "zone"), []string{"a db-7", "b zone="}, "b"},
		{"nor for a node without it", fmt.Sprintf(apart, "zone"), []string{"a zone= db-7", "b web-0 web-1"}, "b"},
		{"its own life of before is not in its way", fmt.Sprintf(apart, "kubernetes.io/hostname"), []string{"a db-0"}, "a"},
		{"apart from those of the namespaces that it names", strings.Replace(fmt.Sprintf(apart, "kubernetes.io/hostname"), "topologyKey:", "namespaces: [other], topologyKey:", 1),
			[]string{"a other/db-0", "b db-7 web-0"}, "b"},
		{"nowhere apart", fmt.Sprintf(apart, "zone"), []string{"a zone=x db-7"}, "NoNode no node can take it: node a has a member near it (by zone) that the anti-affinity forbids"},
		{"rather apart from others", apartSoft, []string{"a zone=x web-0", "b zone=x", "c zone=y web-1:app=x cache-0 cache-1"}, "c"},
		{"who is there and avoids it keeps it away", "", []string{"a web-1:avoids=db", "b web-0 web-2"}, "b"},
		{"who is there and avoids others does not", "", []string{"a web-1:avoids=zk", "b web-0 web-2"}, "a"},
		{"one of those who avoid it is named, at that place", "", []string{"a zone=x zk-1:shuns=db", "b zone=y zk-2:shuns=db"},
			"NoNode no node can take it: node a has a member near it (by zone) whose anti-affinity forbids this one, such as default/zk-1; " +
				"node b has a member near it (by zone) whose anti-affinity forbids this one, such as default/zk-2"},
		{"who avoids it by a label that its node has not keeps it away from nowhere", "", []string{"a web-1:shuns=db", "b zone="}, "b"},
		{"spread evenly over zones", even, []string{"a zone=x db-7", "b zone=x", "c zone=y web-0 web-1"}, "c"},
		{"a skew that is allowed", even, []string{"a zone=x db-7", "b zone=x", "c zone=y db-8 web-0 web-1"}, "b"},
		{"the skew would be too large", even + "\nnodeSelector: {disk: ssd}", []string{"a zone=x disk=ssd db-7 db-8", "b zone=y disk=ssd taint=x:NoSchedule"},
			"NoNode no node can take it: node a would have 3 more members (by zone) than the place with the fewest; maxSkew is 1; node b has the taint x:NoSchedule, which is not tolerated"},
		{"a zone that it may not use does not count", even + "\nnodeSelector: {disk: ssd}", []string{"a zone=x disk=ssd db-7 db-8", "b zone=y"}, "a"},
		{"nor does a node without the label", even, []string{"a zone=x db-7 db-8", "b"}, "a"},
		{"nor a member of another namespace", even, []string{"a zone=x db-7", "b zone=x", "c zone=y other/db-0 other/db-1"}, "c"},
		{"one that cannot take it does", even, []string{"a zone=x taint=x:NoSchedule", "b zone=y db-7"},
			"NoNode no node can take it: node a has the taint x:NoSchedule, which is not tolerated; node b would have 2 more members (by zone) than the place with the fewest; maxSkew is 1"},
		{"a node without the label cannot be spread over", even, []string{"a"}, "NoNode no node can take it: node a has no label zone, over which the members are spread"},
		{"spread as far as it goes", fair, []string{"a zone=x db-7 db-8", "b zone=y taint=x:NoSchedule"}, "a"},
		{"rather spread", fair, []string{"a zone=x db-7", "b zone=y web-0 web-1"}, "b"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := ""
			p := Next(grounds(t, "parallel 1", tt.text, tt.nodes...))
			for _, a := range p.Actions {
				if start, ok := a.(Start); ok {
					got = string(start.Member.Node)
				}
			}
			if got == "" && len(p.Blocked) == 1 {
				got = string(p.Blocked[0].Reason) + " " + p.Blocked[0].Text
			}
			if got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
	}
}

// TestPlacementOfManyAtOnce: what begins in one step counts for what begins after it.
func TestPlacementOfManyAtOnce(t *testing.T) {
	tests := []struct {
		name, line, text string
		nodes            []string
		want             string
	}{
		{"over the nodes", "parallel 4", "", []string{"a", "b"}, "start=0/Create@a start=1/Create@b start=2/Create@a start=3/Create@b"},
		{"no more than there is room for", "parallel 3", "", []string{"a cpu=0/1000"}, "start=0/Create@a start=1/Create@a 2:NoRoom"},
		{"never two on a host", "parallel 3", fmt.Sprintf(apart, "kubernetes.io/hostname"), []string{"a", "b"}, "start=0/Create@a start=1/Create@b 2:NoNode"},
		{"evenly over zones", "parallel 4", even, []string{"a zone=x", "b zone=x", "c zone=y"}, "start=0/Create@a start=1/Create@c start=2/Create@b start=3/Create@c"},
		{"all where the first is", "parallel 3", fmt.Sprintf(near, "db"), []string{"a zone=x", "b zone=y"}, "start=0/Create@a start=1/Create@a start=2/Create@a"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := grounds(t, tt.line, tt.text, tt.nodes...)
			p := Next(w)
			var got []string
			for _, a := range p.Actions {
				if start, ok := a.(Start); ok {
					got = append(got, fmt.Sprintf("start=%d/%s@%s", start.Member.ID.Ordinal, start.Member.Reason, start.Member.Node))
				}
			}
			for _, b := range p.Blocked {
				if b.Reason != causes.BlockedStarting {
					got = append(got, fmt.Sprintf("%d:%s", b.ID.Ordinal, b.Reason))
				}
			}
			if text := strings.Join(got, " "); text != tt.want {
				t.Errorf("got  %s\nwant %s", text, tt.want)
			}
		})
	}
}

// TestRoomIsKeptForAMemberDuringItsUpdate: its next life takes the place of the last,
// also where the node has promised more than it has; one that asks for more needs it.
func TestRoomIsKeptForAMemberDuringItsUpdate(t *testing.T) {
	w := grounds(t, "parallel 1 0:over@a", "", "a cpu=9000/4000 db-0 web-0", "b")
	if p := Next(w); len(p.Actions) != 1 || p.Actions[0].(Start).Member.Node != "a" {
		t.Errorf("the member does not return where it was: %+v %+v", p.Actions, p.Blocked)
	}
	w = grounds(t, "parallel 1 0:over@a", "", "a taint=x:NoSchedule db-0", "b cpu=4000/4000")
	if p := Next(w); len(p.Actions) > 0 || len(p.Blocked) != 1 {
		t.Errorf("its room on another node is none here: %+v %+v", p.Actions, p.Blocked)
	}
	for name, ask := range map[string]scalar.Quantity{"cpu": {Milli: 501}, "memory": {Milli: 101 << 20 * 1000}} {
		w := larger(grounds(t, "parallel 1 0:over@a", "", "a cpu=9000/4000 mem=9000/4000 db-0 web-0"), name, ask)
		if p := Next(w); len(p.Blocked) != 1 || p.Blocked[0].Reason != causes.BlockedNoRoom {
			t.Errorf("one that asks for more %s takes what is not there: %+v %+v", name, p.Actions, p.Blocked)
		}
	}
}

// TestHugePagesAreAResourceOfNodes: a node that has none, or has given them to others, takes no member that asks for
// some; a life that follows takes those of the last.
func TestHugePagesAreAResourceOfNodes(t *testing.T) {
	const asks = "initContainers: [{name: i, image: b, resources: {limits: {cpu: 1m, hugepages-2Mi: 6Mi}}}]"
	w := grounds(t, "parallel 1", asks, "a", "b pages=4/8", "c pages=2/8")
	if p := Next(w); len(p.Actions) != 1 || p.Actions[0].(Start).Member.Node != "c" {
		t.Errorf("it is not where the pages are: %+v %+v", p.Actions, p.Blocked)
	}
	w = grounds(t, "parallel 1", asks, "a", "b pages=4/8")
	p := Next(w)
	if len(p.Blocked) != 1 || p.Blocked[0].Reason != causes.BlockedNoRoom ||
		!strings.Contains(p.Blocked[0].Text, "node a has 0Mi of 0Mi in huge pages of 2Mi left, 6Mi requested") ||
		!strings.Contains(p.Blocked[0].Text, "node b has 4Mi of 8Mi in huge pages of 2Mi left, 6Mi requested") {
		t.Errorf("it does not say what it waits for: %+v %+v", p.Actions, p.Blocked)
	}
	w = grounds(t, "parallel 2", asks, "c pages=0/8")
	if p := Next(w); len(p.Actions) != 1 || len(p.Blocked) != 2 || p.Blocked[1].Reason != causes.BlockedNoRoom {
		t.Errorf("two take the same pages in one step: %+v %+v", p.Actions, p.Blocked)
	}
	w = grounds(t, "parallel 1 0:over@a", asks, "a pages=12/8 db-0")
	if p := Next(w); len(p.Actions) != 1 {
		t.Errorf("the pages of its last life are not kept for it: %+v", p.Blocked)
	}
}

// larger has the members go to a revision that asks for more of something.
func larger(w World, name string, ask scalar.Quantity) World {
	next := *w.Revisions[0]
	next.Hash, next.Number, next.Template = "h2", 2, spec.Clone(next.Template)
	next.Template.Spec.Containers[0].Resources.Requests[name] = ask
	w.Revisions, w.TemplateHash, w.Set.Spec.Template = append(w.Revisions, &next), "h2", next.Template
	w.Status = &records.SetStatus{CurrentRevision: "h2", CurrentCompleted: true}
	for i := range w.Slots {
		due := *w.Slots[i].Identity
		due.Due = "h2"
		w.Slots[i].Identity = &due
	}
	return w
}

// TestNoLifeStartsWhereAVolumeIsInItsWay: a node gives up nothing of an identity that has a
// life there, so that the two would wait for each other (SAFETY S11).
func TestNoLifeStartsWhereAVolumeIsInItsWay(t *testing.T) {
	left := func(nodes ...spec.NodeName) func(*World) {
		return func(w *World) { w.Slots[0].Left = nodes }
	}
	check(t, []rule{
		{name: "it begins elsewhere", world: "ordered 1 volumes n1 n2 0:over", change: func(w *World) { left("n1")(w); w.Slots[0].Volumes = nil },
			want: "start=0/Replace@n2 | 0:Starting"},
		{name: "or waits", world: "ordered 1 volumes n1 0:none", change: left("n1"), want: "| 0:VolumeReclaiming",
			says: "node n1 still has a volume of it that was lost with the host, which goes to the trash first"},
		{name: "so it does where another volume binds it to the node", world: "ordered 1 volumes n1 n2 0:over", change: left("n1"),
			want: "| 0:VolumeReclaiming", says: "its volumes are on node n1, which still has"},
		{name: "what was left elsewhere is in nobody's way", world: "ordered 1 volumes n1 0:none", change: left("n2"), want: "start=0/Create@n1 | 0:Starting"},
	})
}
