package plan

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/records/moves"
	"github.com/stead-project/stead/server/proof"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/spec/scalar"
)

func anySet(spec.SetRef) bool { return true }

// saidOfRebalance is a Rebalancing as "0@n1>n2 stay=1".
func saidOfRebalance(r Rebalancing) string {
	var words []string
	for _, m := range r.Moves {
		words = append(words, fmt.Sprintf("%d@%s>%s", m.ID.Ordinal, m.From, m.To.Node))
	}
	for _, s := range r.Stays {
		words = append(words, fmt.Sprintf("stay=%d", s.ID.Ordinal))
	}
	return strings.Join(words, " ")
}

// labelled gives nodes a label, as "n1=a n2=b".
func labelled(w *World, key, pairs string) {
	for _, pair := range strings.Fields(pairs) {
		name, value, _ := strings.Cut(pair, "=")
		n := proof.FindNode(w.Nodes, spec.NodeName(name))
		labels := maps.Clone(n.Labels)
		if labels == nil {
			labels = map[string]string{}
		}
		labels[key] = value
		n.Labels = labels
	}
}

// runsAlike has all revisions of the set, and its template, run m.
func runsAlike(w *World, m spec.MemberSpec) {
	w.Set.Spec.Template.Spec = m
	for _, r := range w.Revisions {
		r.Template.Spec = m
	}
}

// residents fills in who lives on the nodes.
func residents(w *World) {
	for i := range w.Nodes {
		n := &w.Nodes[i]
		n.Residents, n.Lives = []Resident{}, 0
		for j := range w.Slots {
			if m := w.Slots[j].Member; m != nil && m.Node == n.Node.Name {
				r := Resident{ID: m.ID, Labels: w.Set.Spec.Template.Metadata.Labels, Revision: m.Revision}
				n.Residents = append(n.Residents, r.Running(&w.Set.Spec.Template.Spec))
				n.Lives++
			}
		}
	}
}

func TestRebalance(t *testing.T) {
	const crowded = "parallel 3 volumes n1 n2 n3 0:ready@n1 1:ready@n1 2:ready@n1"
	facts := func(w *World, node spec.NodeName) *records.NodeFacts { return proof.FindNode(w.Nodes, node).Facts }
	for _, c := range []struct {
		name, world string
		change      func(*World)
		most        int
		want        string
	}{
		{name: "the highest go, each to the emptiest", world: crowded, want: "2@n1>n2 1@n1>n3"},
		{name: "no more than are asked for", world: crowded, most: 1, want: "2@n1>n2"},
		{name: "one apart is spread", world: "parallel 3 volumes n1 n2 0:ready@n1 1:ready@n1 2:ready@n2"},
		{name: "not to a node without the label", world: crowded, want: "2@n1>n3", change: func(w *World) {
			labelled(w, "disk", "n1=ssd n3=ssd")
			runsAlike(w, spec.MemberSpec{NodeSelector: map[string]string{"disk": "ssd"}})
		}},
		{name: "not to a node without room", world: crowded, want: "2@n1>n3", change: func(w *World) {
			facts(w, "n2").CPUMillis, proof.FindNode(w.Nodes, "n2").CPUMillis = 4000, 3900
			runsAlike(w, cpu(500))
		}},
		{name: "nor where others that come take it", world: "parallel 4 volumes n1 n2 0:ready@n1 1:ready@n1 2:ready@n1 3:ready@n1", want: "3@n1>n2", change: func(w *World) {
			facts(w, "n2").CPUMillis = 900
			runsAlike(w, cpu(500))
		}},
		{name: "not with a taint", world: crowded, want: "2@n1>n3", change: func(w *World) {
			n := proof.FindNode(w.Nodes, "n2")
			tainted := *n.Node
			tainted.Taints = []spec.Taint{{Key: "k", Effect: spec.NoSchedule}}
			n.Node = &tainted
		}},
		{name: "not under pressure", world: crowded, want: "2@n1>n3", change: func(w *World) {
			facts(w, "n2").Conditions = []records.NodeCondition{{Type: records.DiskPressure, Message: "full"}}
		}},
		{name: "not to an agent that is too old", world: crowded, want: "2@n1>n3", change: func(w *World) { facts(w, "n2").Moves = false }},
		{name: "not with a directory of the host", world: crowded, want: "stay=2 stay=1 stay=0", change: func(w *World) {
			for i := range w.Nodes {
				w.Nodes[i].Facts.Level = spec.Level
			}
			runsAlike(w, spec.MemberSpec{Volumes: []spec.VolumeMedia{{Name: "v", HostPath: &spec.HostPathVolume{Path: "/srv"}}}})
		}},
		{name: "not with a volume that is to go", world: crowded, want: "1@n1>n2 0@n1>n3 stay=2", change: func(w *World) {
			slot := &w.Slots[2]
			v := *slot.Volumes["data"]
			v.Fate = records.FateLost
			slot.Volumes = with(slot.Volumes, "data", &v)
		}},
		{name: "not without volumes", world: "parallel 3 n1 n2 n3 0:ready@n1 1:ready@n1 2:ready@n1", want: "stay=2 stay=1 stay=0"},
		{name: "not of an orphaned set", world: "parallel 2 orphaned volumes n1 n2 0:ready@n1 1:ready@n1"},
		{name: "one that moves counts where it goes", world: crowded, want: "1@n1>n3", change: func(w *World) { wantsMove(2, moves.MoveBegin, "n2")(w) }},
		{name: "one whose move is aborted where it is", world: crowded, want: "1@n1>n2", most: 1, change: moving(2, moves.MoveAborting, "", "")},
		{name: "a surplus member does not count", world: "parallel 2 volumes n1 n2 0:ready@n1 1:ready@n2 2:ready@n1 3:ready@n1"},
		{name: "apart from who repels it", world: "parallel 3 volumes n1 n2 n3 0:ready@n1 1:ready@n1 2:ready@n2", change: func(w *World) {
			w.Set.Spec.Template.Metadata.Labels = map[string]string{"app": "db"}
			runsAlike(w, spec.MemberSpec{Affinity: &spec.Affinity{PodAntiAffinity: &spec.MemberAffinity{
				Required: []spec.MemberTerm{{TopologyKey: "zone", LabelSelector: &spec.LabelSelector{MatchLabels: map[string]string{"app": "db"}}}},
			}}})
			labelled(w, "zone", "n1=a n2=b n3=b")
			residents(w)
		}},
		{name: "not where nodes get less even for it", world: "parallel 4 volumes n1 n2 n3 n4 0:ready@n1 1:ready@n2 2:ready@n3 3:ready@n4", change: func(w *World) {
			w.Set.Spec.Template.Metadata.Labels = map[string]string{"app": "db"}
			runsAlike(w, spec.MemberSpec{TopologySpreadConstraints: []spec.Spread{{
				MaxSkew: 1, TopologyKey: "zone", LabelSelector: &spec.LabelSelector{MatchLabels: map[string]string{"app": "db"}},
			}}})
			labelled(w, "zone", "n1=a n2=a n3=a n4=b")
			residents(w)
		}},
		{name: "over places that are to be even", world: "parallel 3 volumes n1 n2 n3 n4 0:ready@n1 1:ready@n2 2:ready@n3", want: "0@n1>n4", change: func(w *World) {
			w.Set.Spec.Template.Metadata.Labels = map[string]string{"app": "db"}
			runsAlike(w, spec.MemberSpec{TopologySpreadConstraints: []spec.Spread{{
				MaxSkew: 1, TopologyKey: "zone", LabelSelector: &spec.LabelSelector{MatchLabels: map[string]string{"app": "db"}},
			}}})
			labelled(w, "zone", "n1=a n2=a n3=b n4=c")
			residents(w)
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := world(t, c.world)
			movers(&w)
			if c.change != nil {
				c.change(&w)
			}
			if got := saidOfRebalance(Rebalance([]World{w}, anySet, c.most)); got != c.want {
				t.Errorf("world %s\ngot  %q, want %q", c.world, got, c.want)
			}
		})
	}
}

func cpu(millis int64) spec.MemberSpec {
	return spec.MemberSpec{Containers: []spec.Container{{Resources: spec.ResourceRequirements{Requests: map[string]scalar.Quantity{"cpu": {Milli: millis}}}}}}
}

// TestARebalanceNeverMakesItWorse: in random worlds each move is one that the planner begins, no node gets more than another has
// left, and asked again after the moves there are none.
func TestARebalanceNeverMakesItWorse(t *testing.T) {
	const seeds = 400
	moved := 0
	for seed := range uint64(seeds) {
		r := rand.New(rand.NewPCG(seed, 1))
		line := fmt.Sprintf("parallel %d volumes", 1+r.IntN(9))
		nodes := 2 + r.IntN(4)
		for n := range nodes {
			line += fmt.Sprintf(" n%d%s", n+1, []string{"", "", "", "", "!", "~", "%"}[r.IntN(7)])
		}
		for n := range 1 + r.IntN(9) {
			line += fmt.Sprintf(" %d:%s@n%d", n, []string{"ready", "ready", "ready", "over", "starting"}[r.IntN(5)], 1+r.IntN(nodes))
		}
		w := world(t, line)
		movers(&w)
		runsAlike(&w, cpu(500))
		for i := range w.Nodes {
			w.Nodes[i].Facts.CPUMillis = int64(r.IntN(3)) * 1000
			w.Nodes[i].Facts.Moves = r.IntN(5) > 0
		}
		residents(&w)
		got := Rebalance([]World{w}, anySet, 0)
		if again := Rebalance([]World{w}, anySet, 0); saidOfRebalance(got) != saidOfRebalance(again) {
			t.Fatalf("seed %d: world %s: two answers: %s and %s", seed, line, saidOfRebalance(got), saidOfRebalance(again))
		}
		moved += len(got.Moves)
		before, count := spreadOf(w), spreadOf(w)
		asked := w
		asked.Slots = slices.Clone(w.Slots)
		for _, m := range got.Moves {
			q := moves.MoveRequest{ID: m.ID, Verb: moves.MoveBegin, To: m.To}
			if why := MoveRefusal(w, q); why != "" {
				t.Fatalf("seed %d: world %s: the move of %s to %s is refused: %s", seed, line, m.ID, m.To.Node, why)
			}
			if count[m.From]-count[m.To.Node] < 2 {
				t.Fatalf("seed %d: world %s: %s leaves a node of %d members for one of %d", seed, line, m.ID, count[m.From], count[m.To.Node])
			}
			count[m.From]--
			count[m.To.Node]++
			slotOf(&asked, m.ID).MoveAsked = &q
		}
		if len(got.Moves) > 0 && widest(count) > widest(before) {
			t.Fatalf("seed %d: world %s: the spread was %v and is %v", seed, line, before, count)
		}
		if again := Rebalance([]World{asked}, anySet, 0); len(again.Moves) > 0 {
			t.Fatalf("seed %d: world %s: after %s there is more to do: %s", seed, line, saidOfRebalance(got), saidOfRebalance(again))
		}
	}
	if moved < seeds/8 {
		t.Errorf("only %d moves in %d worlds", moved, seeds)
	}
}

// spreadOf counts the wanted members by node.
func spreadOf(w World) map[spec.NodeName]int {
	count := map[spec.NodeName]int{}
	for _, m := range newFacts(w).asSeen {
		if m.wanted && m.home() != "" {
			count[m.home()]++
		}
	}
	return count
}

func widest(count map[spec.NodeName]int) int { return slices.Max(slices.Collect(maps.Values(count))) }

// TestARebalanceOfSeveralSetsSharesTheRoom: what one set's members take on a node is taken for the next.
func TestARebalanceOfSeveralSetsSharesTheRoom(t *testing.T) {
	a := world(t, "parallel 2 volumes n1 n2 0:ready@n1 1:ready@n1")
	movers(&a)
	a.Nodes[1].Facts.CPUMillis = 900
	runsAlike(&a, cpu(500))
	b := a
	set := spec.Clone(*a.Set)
	set.Ref.Name = "other"
	b.Set, b.Slots = &set, slices.Clone(a.Slots)
	for i := range b.Slots {
		b.Slots[i].ID.Set = "other"
		m := *b.Slots[i].Member
		m.ID.Set = "other"
		b.Slots[i].Member = &m
	}
	if got := saidOfRebalance(Rebalance([]World{a, b}, anySet, 0)); got != "1@n1>n2" {
		t.Errorf("got %q", got)
	}
	a.Slots = slices.Clone(a.Slots)
	a.Slots[1].MoveAsked = &moves.MoveRequest{ID: a.Slots[1].ID, Verb: moves.MoveBegin, To: moves.MoveEnd{Node: "n2", UID: "uid-n2"}}
	only := func(ref spec.SetRef) bool { return ref.Name == "other" }
	if got := saidOfRebalance(Rebalance([]World{a, b}, only, 0)); got != "" {
		t.Errorf("beside a move of another set: %q", got)
	}
}
