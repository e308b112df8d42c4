package plan

import (
	"testing"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/spec/scalar"
)

func TestAMemberWhoseFormerRevisionNoNodeCanTakeReturnsOnItsTarget(t *testing.T) {
	// The revision h1 asks for this, and h2 for that.
	asking := func(former, now spec.MemberSpec) func(*World) {
		return func(w *World) {
			for _, r := range w.Revisions {
				r.Template.Spec = former
				if r.Hash == "h2" {
					r.Template.Spec = now
				}
			}
			w.Set.Spec.Template.Spec = now
			for i := range w.Nodes {
				n := &w.Nodes[i]
				n.Labels = map[string]string{"disk": "ssd", "kubernetes.io/hostname": string(n.Node.Name)}
				n.Facts = &records.NodeFacts{Level: spec.Level, CPUMillis: 1000, MemoryBytes: 1 << 30}
				n.Node.Taints = []spec.Taint{{Key: "for", Value: "db", Effect: spec.NoSchedule}}
			}
		}
	}
	on := func(disk string) spec.MemberSpec {
		return spec.MemberSpec{NodeSelector: map[string]string{"disk": disk}, Tolerations: []spec.Toleration{{Operator: spec.Exists}}}
	}
	host := spec.MemberSpec{NodeSelector: map[string]string{"kubernetes.io/hostname": "n2"}, Tolerations: on("").Tolerations}
	requesting := func(what string, n int64) spec.MemberSpec {
		m := on("ssd")
		m.Containers = []spec.Container{{Resources: spec.ResourceRequirements{Requests: map[string]scalar.Quantity{what: {Milli: n}}}}}
		return m
	}
	intolerant := spec.MemberSpec{NodeSelector: on("ssd").NodeSelector}
	const one, two = "ordered 2 n1 update=h2 current=h1 0:over 1:ready/h2", "ordered 2 n1 n2~ update=h2 current=h1 0:over 1:ready/h2"
	const moves, returns, waits = "start=0/Replace@n1/h2 | 0:Starting", "start=0/Replace@n1 | 0:Starting", "| 0:NoNode"
	const volumes = "ordered 2 volumes n1 n2~ update=h2 current=h1 0:over 1:ready/h2"
	check(t, []rule{
		{name: "the former can have a node", world: one, change: asking(on("ssd"), on("ssd")), want: returns},
		{name: "no node has the label", world: one, change: asking(on("hdd"), on("ssd")), want: moves},
		{name: "before any member is updated", world: "ordered 2 n1 update=h2 current=h1 0:over 1:over", change: asking(on("hdd"), on("ssd")),
			want: "start=0/Replace@n1/h2 | 0:Starting 1:WaitingForPredecessor"},
		{name: "nor that of the target", world: one, change: asking(on("hdd"), on("tape")), want: waits},
		{name: "a node that is silent has it", world: two, change: asking(host, on("ssd")), want: waits},
		{name: "its volumes are on another node", world: volumes, change: asking(host, on("ssd")), want: moves},
		{name: "a taint that the update tolerates", world: one, change: asking(intolerant, on("ssd")), want: moves},
		{name: "it requests more than any node has", world: one, change: asking(requesting("cpu", 1001), requesting("cpu", 1000)), want: moves},
		{name: "or more memory", world: one, change: asking(requesting("memory", 2<<30*1000), on("ssd")), want: moves},
		{name: "the rollout is paused", world: "ordered 2 paused n1 update=h2 current=h1 0:over 1:ready/h2", change: asking(on("hdd"), on("ssd")), want: waits},
		{name: "below the partition", world: "ordered 2 partition=1 n1 update=h2 current=h1 0:over 1:ready/h2", change: asking(on("hdd"), on("ssd")), want: waits},
		{name: "replaceBroken is Never", world: "ordered 2 never n1 update=h2 current=h1 0:over 1:ready/h2", change: asking(on("hdd"), on("ssd")), want: waits},
		{name: "all room is in use", world: one, change: func(w *World) {
			asking(requesting("cpu", 1000), requesting("cpu", 10))(w)
			w.Nodes[0].CPUMillis = 1500
		}, want: returns},
	})
}
