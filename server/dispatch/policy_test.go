package dispatch

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/server/cache"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/spec/netpol"
	"github.com/stead-project/stead/store"
)

// policySpec reads a spec in JSON, as apply stores it.
func policySpec(t *testing.T, text string) (out netpol.NetworkPolicySpec) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), &out); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	netpol.Default(&out)
	return out
}

// setWith is a set of a namespace, with the label app, whose port http is this number.
func setWith(ns spec.Namespace, name spec.SetName, app string, http int32) *records.Set {
	s := &records.Set{Ref: spec.SetRef{Namespace: ns, Name: name}, UID: spec.UID(ns) + spec.UID(name), Spec: spec.SetSpec{Template: testTemplate()}}
	s.Spec.Template.Metadata.Labels = map[string]string{"app": app}
	s.Spec.Template.Spec.Containers[0].Ports = []spec.ContainerPort{{Name: "http", ContainerPort: http}, {Name: "dns", ContainerPort: 5353, Protocol: "UDP"}}
	return s
}

func policyWorld() (db *records.Set, all map[spec.Namespace][]*records.Set) {
	db = setWith("default", "db", "db", 8080)
	return db, map[spec.Namespace][]*records.Set{
		"default": {db, setWith("default", "web", "web", 80), setWith("default", "web-2", "web", 81)},
		"other":   {setWith("other", "db", "db", 8090), setWith("other", "kv", "kv", 70)},
	}
}

// words writes a rule in one line.
func policyWords(rules []records.PolicyRule) string {
	var out []string
	for _, r := range rules {
		var who, ports []string
		if r.Anybody {
			who = append(who, "anybody")
		}
		for _, p := range r.Parties {
			switch {
			case p.Everyone:
				who = append(who, "everyone")
			case p.DNS:
				who = append(who, "DNS")
			case p.Block.IsValid():
				who = append(who, strings.TrimSuffix(fmt.Sprint(p.Block, " but ", p.Except), " but []"))
			default:
				text := string(p.Namespace) + "/" + string(p.Set)
				if p.Members != nil {
					text += "(some)"
				}
				who = append(who, text)
			}
		}
		for _, p := range r.Ports {
			ports = append(ports, fmt.Sprintf("%s %d-%d", p.Protocol, p.First, p.Last))
		}
		out = append(out, strings.Join(who, ", ")+" at "+strings.Join(ports, ", "))
	}
	return strings.Join(out, "; ")
}

// Kubernetes' rules for each part of a policy: what is left out is everybody and every port, both selectors in one
// entry are and, names of ports are those of the destination, and a rule that nobody or no port is left of allows nothing.
func TestWhatAPolicySaysOfASet(t *testing.T) {
	db, all := policyWorld()
	const in, out = `{"podSelector":{},"ingress":[`, `{"podSelector":{},"policyTypes":["Egress"],"egress":[`
	for _, tt := range []struct{ name, policy, from, to string }{
		{"nothing", in + `]}`, "", "-"},
		{"an empty rule", in + `{}]}`, "anybody at ", "-"},
		{"every port of a protocol", in + `{"ports":[{"protocol":"UDP"}]}]}`, "anybody at UDP 0-0", "-"},
		{"a range, and a name that the set has", in + `{"ports":[{"port":80,"endPort":90},{"port":"http"},{"port":"dns","protocol":"UDP"}]}]}`,
			"anybody at TCP 80-90, TCP 8080-8080, UDP 5353-5353", "-"},
		{"names that the set does not have, also by protocol", in + `{"ports":[{"port":"x"},{"port":"dns"}]}]}`, "", "-"},
		{"members of the namespace", in + `{"from":[{"podSelector":{"matchLabels":{"app":"web"}}}]}]}`, "default/web, default/web-2 at ", "-"},
		{"all of the namespace", in + `{"from":[{"podSelector":{}}]}]}`, "default/ at ", "-"},
		{"some of each set", in + `{"from":[{"podSelector":{"matchLabels":{"app":"web","apps.kubernetes.io/pod-index":"0"}}}]}]}`,
			"default/web(some), default/web-2(some) at ", "-"},
		{"nobody", in + `{"from":[{"podSelector":{"matchLabels":{"app":"x"}}}]}]}`, "", "-"},
		{"a namespace", in + `{"from":[{"namespaceSelector":{"matchLabels":{"kubernetes.io/metadata.name":"other"}}}]}]}`, "other/ at ", "-"},
		{"another label of namespaces", in + `{"from":[{"namespaceSelector":{"matchLabels":{"name":"other"}}}]}]}`, "", "-"},
		{"both selectors are and", in + `{"from":[{"namespaceSelector":{"matchLabels":{"kubernetes.io/metadata.name":"other"}},"podSelector":{"matchLabels":{"app":"db"}}}]}]}`,
			"other/db at ", "-"},
		{"members of all namespaces", in + `{"from":[{"namespaceSelector":{},"podSelector":{"matchLabels":{"app":"db"}}}]}]}`, "default/db, other/db at ", "-"},
		{"everyone", in + `{"from":[{"namespaceSelector":{}}]}]}`, "everyone at ", "-"},
		{"blocks", in + `{"from":[{"ipBlock":{"cidr":"10.1.2.3/8","except":["10.2.0.0/16"]}},{"ipBlock":{"cidr":"fd00::/8"}}]}]}`, "10.0.0.0/8 but [10.2.0.0/16] at ", "-"},
		{"entries add up", in + `{"from":[{"podSelector":{"matchLabels":{"app":"db"}}},{"ipBlock":{"cidr":"10.0.0.0/8"}}]},{"ports":[{"port":1}]}]}`,
			"default/db, 10.0.0.0/8 at ; anybody at TCP 1-1", "-"},
		{"egress to nothing", out + `]}`, "-", ""},
		{"egress, DNS as in Kubernetes", out + `{"to":[{"namespaceSelector":{"matchLabels":{"kubernetes.io/metadata.name":"kube-system"}},"podSelector":{"matchLabels":{"k8s-app":"kube-dns"}}}],"ports":[{"port":53,"protocol":"UDP"}]}]}`,
			"-", "DNS at UDP 53-53"},
		{"DNS by the names of its ports", out + `{"to":[{"namespaceSelector":{"matchLabels":{"kubernetes.io/metadata.name":"kube-system"}}}],"ports":[{"port":"dns","protocol":"UDP"},{"port":"dns-tcp"}]}]}`,
			"-", "DNS at UDP 53-53; DNS at TCP 53-53"},
		{"members of kube-system that are not DNS", out + `{"to":[{"namespaceSelector":{},"podSelector":{"matchLabels":{"app":"kv"}}}]}]}`, "-", "other/kv at "},
		{"a name is another number elsewhere", out + `{"to":[{"podSelector":{"matchLabels":{"app":"web"}}}],"ports":[{"port":"http"},{"port":443}]}]}`,
			"-", "default/web, default/web-2 at TCP 443-443; default/web at TCP 80-80; default/web-2 at TCP 81-81"},
		{"a name everywhere", out + `{"ports":[{"port":"dns","protocol":"UDP"}]}]}`, "-",
			"DNS at UDP 53-53; default/db, default/web, default/web-2, other/db, other/kv at UDP 5353-5353"},
		{"a name has no meaning in a block", out + `{"to":[{"ipBlock":{"cidr":"10.0.0.0/8"}}],"ports":[{"port":"http"}]}]}`, "-", ""},
		{"both directions, by default", `{"podSelector":{"matchLabels":{"app":"db"}},"egress":[{}]}`, "", "anybody at "},
		{"only what policyTypes name", `{"podSelector":{},"policyTypes":["Ingress"],"egress":[{}]}`, "", "-"},
	} {
		r := &records.NetworkPolicyRecord{Meta: records.Meta{Namespace: "default", Name: "p"}, Spec: policySpec(t, tt.policy)}
		got := policiesOf(db, []*records.NetworkPolicyRecord{r}, all)
		if len(got) != 1 {
			t.Errorf("%s: %d policies", tt.name, len(got))
			continue
		}
		from, to := policyWords(got[0].From), policyWords(got[0].To)
		if !got[0].Ingress {
			from += "-"
		}
		if !got[0].Egress {
			to += "-"
		}
		if from != tt.from || to != tt.to {
			t.Errorf("%s:\ngot  from %q to %q\nwant from %q to %q", tt.name, from, to, tt.from, tt.to)
		}
	}
}

func TestAPolicySelectsMembersOfItsNamespace(t *testing.T) {
	db, all := policyWorld()
	for _, tt := range []struct {
		ns                spec.Namespace
		selector          string
		selects, someOnly bool
	}{
		{"default", `{}`, true, false},
		{"default", `{"matchLabels":{"app":"db"}}`, true, false},
		{"default", `{"matchLabels":{"app":"web"}}`, false, false},
		{"other", `{}`, false, false},
		{"default", `{"matchLabels":{"statefulset.kubernetes.io/pod-name":"db-1"}}`, true, true},
		{"default", `{"matchExpressions":[{"key":"app","operator":"NotIn","values":["web"]},{"key":"apps.kubernetes.io/pod-index","operator":"In","values":["0"]}]}`, true, true},
	} {
		r := &records.NetworkPolicyRecord{Meta: records.Meta{Namespace: tt.ns, Name: "p"}, Spec: policySpec(t, `{"podSelector":`+tt.selector+`}`)}
		got := policiesOf(db, []*records.NetworkPolicyRecord{r}, all)
		if len(got) == 1 != tt.selects || len(got) == 1 && (got[0].Members != nil) != tt.someOnly {
			t.Errorf("%s of %s: got %+v", tt.selector, tt.ns, got)
		}
	}
}

// What nodes are sent follows each change that policies see, and is at any time what a look at everything finds.
func TestSetsAreSentTheirPolicies(t *testing.T) {
	r := newStill(t)
	r.begin()
	p := r.server.snapshots
	policy := func(ns spec.Namespace, name, text string) func() {
		return func() {
			r.Record(store.NetworkPolicyKey(ns, name), records.NetworkPolicyRecord{Meta: records.Meta{Namespace: ns, Name: name}, Spec: policySpec(t, text)})
		}
	}
	set := func(s *records.Set) func() { return func() { r.Record(store.SetKey(s.Ref), *s) } }
	web := setWith("default", "web", "web", 80)
	relabelled := setWith("default", "web", "front", 80)
	relabelled.Generation = 2
	sub := r.Cache.Subscribe()
	defer sub.Close()
	for _, step := range []struct {
		name   string
		change func()
		want   string // of the set db
	}{
		{"at first", func() {}, ""},
		{"a policy", policy("default", "a", `{"podSelector":{},"ingress":[{"from":[{"podSelector":{"matchLabels":{"app":"web"}}}]}]}`), "a: "},
		{"a set that it names", set(web), "a: default/web at "},
		{"one that it does not name", set(setWith("other", "web", "web", 80)), "a: default/web at "},
		{"a policy of another namespace", policy("other", "b", `{"podSelector":{}}`), "a: default/web at "},
		{"a second one", policy("default", "c", `{"podSelector":{},"ingress":[{"from":[{"namespaceSelector":{},"podSelector":{"matchLabels":{"app":"web"}}}]}]}`),
			"a: default/web at  c: default/web, other/web at "},
		{"the set has another label", set(relabelled), "a:  c: other/web at "},
		{"the other set went", func() { r.Commit(store.Del(store.SetKey(spec.SetRef{Namespace: "other", Name: "web"}))) }, "a:  c: "},
		{"a policy went", func() { r.Commit(store.Del(store.NetworkPolicyKey("default", "a"))) }, "c: "},
	} {
		step.change()
		r.catchUp()
		p.round(sub.Take())
		var got []string
		for _, s := range p.sets[refDB].body.Policies {
			got = append(got, s.Name+": "+policyWords(s.From))
		}
		if text := strings.Join(got, " "); text != step.want {
			t.Errorf("%s: got %q, want %q", step.name, text, step.want)
		}
		r.Cache.Look(func(v cache.View) {
			s := newSight(v, p.domain)
			for _, ref := range s.Sets() {
				want := s.build(ref)
				if !sameHead(&p.sets[ref].body, &want) {
					t.Errorf("%s: set %s was published as %+v, and is %+v", step.name, ref, p.sets[ref].body, want)
				}
			}
		})
	}
	if docs := p.since(need{differences: true, brief: func(spec.SetRef) bool { return true }}).sets; slices.ContainsFunc(docs, func(doc []byte) bool { return strings.Contains(string(doc), `"c"`) }) {
		t.Error("a set in brief has policies")
	}
	if docs := p.since(need{differences: true}).sets; !slices.ContainsFunc(docs, func(doc []byte) bool { return strings.Contains(string(doc), `{"name":"c","ingress":true}`) }) {
		t.Error("a set in full has none")
	}
}
