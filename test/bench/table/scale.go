package main

import "fmt"

// scalePhase is a phase of BenchmarkScale.
type scalePhase struct {
	name, what      string
	hops, revisions float64 // goals of the design for 1,000 members; 0: none
	floor           float64 // revisions a member
}

func (p scalePhase) goal() goal {
	if p.hops == 0 {
		return goal{}
	}
	return ratioAtMost(p.hops)
}

var scalePhases = []scalePhase{
	{"ordered", "OrderedReady", 2.5, 2.1, 1},
	{"rolling", "rolling update", 4.2, 3.1, 1},
	{"to-zero", "to zero, ordered", 1.7, 0, 1},
	{"parallel", "Parallel", 0.4, 0.1, 0.001},
	{"parallel-to-zero", "to zero, Parallel", 0, 0, 0.001},
}

// scaled are the rows of one set whose hosts are in another process.
func scaled() []row {
	out := []row{{what: "one set, hosts in another process that need no time (STEAD_SCALE=1x10000), time a member"}}
	for _, p := range scalePhases {
		for _, n := range []int{10, 100, 1000} {
			r := row{what: fmt.Sprintf("%s, %d", p.what, n), ours: scaleCell("light", 1, n, p.name, "hops/member", "hops"), floor: cell{factor: 1, label: "hop"}}
			if n == 1000 {
				r.goal = p.goal()
			}
			out = append(out, r)
		}
		out = append(out, row{what: fmt.Sprintf("%s, 1000 on 50 hosts", p.what), ours: scaleCell("light", 50, 1000, p.name, "hops/member", "hops"), floor: cell{factor: 1, label: "hop"}})
		for _, n := range agentSizes {
			out = append(out, row{
				what: fmt.Sprintf("%s, %d, a real agent", p.what, n),
				ours: scaleCell("agent", 1, n, p.name, "hops/member", "hops"), floor: cell{factor: 1, label: "hop"}, goal: p.goal(),
			})
		}
	}
	out = append(out, growth("server and store, processor time a member, 1000 beside 100", "cpu-ms/member", "ms", 1, ratioAtMost(1.05))...)
	out = append(out, growth("sent to nodes a member, 1000 beside 100", "sent-bytes/member", "KiB", 1.0/1024, goal{})...)
	out = append(out, row{what: "store revisions a member, 1000 members"})
	for _, p := range scalePhases {
		r := row{what: p.what, ours: scaleCell("light", 1, 1000, p.name, "revisions/member", ""), floor: cell{factor: p.floor}}
		if p.revisions > 0 {
			r.goal = atMost(p.revisions, "")
		}
		out = append(out, r)
	}
	return out
}

// agentSizes are how many members a real agent has in BenchmarkScale.
var agentSizes = []int{100, 1000}

// growth are rows of a unit of 1,000 members beside 100, on one host, and beside it of 50 hosts.
func growth(what, unit, label string, factor float64, most goal) []row {
	out := []row{{what: what}}
	for _, p := range scalePhases {
		few, many := scaleCell("light", 1, 100, p.name, unit, label), scaleCell("light", 1, 1000, p.name, unit, label)
		spread := scaleCell("light", 50, 1000, p.name, unit, label)
		few.factor, many.factor, spread.factor = factor, factor, factor
		out = append(out,
			row{what: p.what, ours: many, floor: few, goal: most},
			row{what: p.what + ", on 50 hosts, beside one", ours: spread, floor: many})
	}
	return out
}

func scaleCell(kind string, hosts, members int, phase, unit, label string) cell {
	return cell{fmt.Sprintf("Scale/%s/%dx%d/%s", kind, hosts, members, phase), unit, 1, label}
}
