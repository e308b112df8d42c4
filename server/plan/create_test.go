package plan

import (
	"strings"
	"testing"
	"time"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
)

func TestCreateOrdered(t *testing.T) {
	check(t, []rule{
		{name: "the first member of a new set starts with its revision", world: "ordered 3 n1",
			change: func(w *World) { w.Revisions = nil },
			want:   "revision=h1 start=0/Create@n1 | 0:Starting 1:WaitingForPredecessor 2:WaitingForPredecessor"},
		{name: "a member that is assigned holds the next", world: "ordered 3 n1 0:assigned",
			want: "| 0:Starting 1:WaitingForPredecessor 2:WaitingForPredecessor"},
		{name: "a member that starts holds the next", world: "ordered 2 n1 0:starting",
			want: "| 0:Starting 1:WaitingForPredecessor"},
		{name: "a member that runs unready holds the next", world: "ordered 2 n1 0:running",
			want: "| 0:NotReady 1:WaitingForPredecessor"},
		{name: "the next starts when all before it are available", world: "ordered 3 n1 0:ready",
			want: "start=1/Create@n1 | 1:Starting 2:WaitingForPredecessor"},
		{name: "a member ready for less than minReadySeconds holds the next", world: "ordered 2 min=5 n1 0:young",
			want: "| 0:NotAvailableYet 1:WaitingForPredecessor"},
		{name: "a member ready for minReadySeconds lets the next start", world: "ordered 2 min=5 n1 0:ready",
			want: "start=1/Create@n1 | 1:Starting"},
		{name: "what is wrong with a member is its reason", world: "ordered 2 n1 0:missing",
			want: "| 0:ImageMissing 1:WaitingForPredecessor"},
		{name: "a missing low member starts though higher ones run", world: "ordered 3 n1 0:none 1:ready 2:ready",
			want: "start=0/Create@n1 | 0:Starting"},
		{name: "an unready low member holds a missing high one", world: "ordered 3 n1 0:running 1:ready",
			want: "| 0:NotReady 2:WaitingForPredecessor"},
		{name: "a higher member that is not ready says so as well", world: "ordered 3 n1 0:running 1:running",
			want: "| 0:NotReady 1:NotReady 2:WaitingForPredecessor"},
		{name: "members beyond those at creation are a scale up", world: "ordered 3 initial=2 n1 0:ready 1:ready",
			want: "start=2/ScaleUp@n1 | 2:Starting"},
		{name: "the range starts where the set says", world: "ordered 2 start=5 n1 5:ready",
			want: "start=6/Create@n1 | 6:Starting"},
		{name: "a set of none does nothing", world: "ordered 0 n1", want: "|"},
		{name: "all ready is nothing to do", world: "ordered 2 n1 0:ready 1:ready", want: "|"},
	})
}

func TestCreateParallel(t *testing.T) {
	check(t, []rule{
		{name: "all start at once", world: "parallel 3 n1",
			want: "start=0/Create@n1 start=1/Create@n1 start=2/Create@n1 | 0:Starting 1:Starting 2:Starting"},
		{name: "one that is broken holds nobody", world: "parallel 3 n1 0:missing 2:ready",
			want: "start=1/Create@n1 | 0:ImageMissing 1:Starting"},
		{name: "one that cannot be placed holds nobody", world: "parallel 2 volumes n1 n2~ 0:volume@n2",
			want: "start=1/Create@n1 | 0:NodeSilent 1:Starting"},
		{name: "one with a stray holds nobody", world: "parallel 2 n1 0:stray",
			want: "start=1/Create@n1 | 0:Stray 1:Starting"},
	})
}

func TestReplace(t *testing.T) {
	rest := func(after time.Duration) func(*World) {
		return func(w *World) { w.Rest = map[spec.Identity]time.Duration{w.Slots[0].ID: after} }
	}
	check(t, []rule{
		{name: "a life proven over is replaced at once", world: "ordered 2 n1 0:over 1:ready",
			want: "start=0/Replace@n1 | 0:Starting"},
		{name: "a refused life is replaced", world: "ordered 1 n1 0:failed",
			want: "start=0/Replace@n1 | 0:Starting"},
		{name: "a life replaced while an earlier one is not available waits", world: "ordered 2 n1 0:running 1:over",
			want: "| 0:NotReady 1:WaitingForPredecessor"},
		{name: "Parallel replaces all", world: "parallel 2 n1 0:over 1:failed",
			want: "start=0/Replace@n1 start=1/Replace@n1 | 0:Starting 1:Starting"},
		{name: "silence is no proof", world: "ordered 2 n1~ n2 0:ready@n1",
			want: "| 0:NodeSilent 1:WaitingForPredecessor"},
		{name: "a reboot is no proof until the node says so", world: "ordered 2 n1 0:rebooted",
			want: "| 0:NodeRebooted 1:WaitingForPredecessor"},
		{name: "an assignment that was never reported is no proof", world: "parallel 1 n1~ n2 0:assigned@n1",
			want: "| 0:NodeSilent"},
		{name: "a life that stops is not replaced before it is gone", world: "ordered 1 n1 0:stopping",
			want: "| 0:Stopping"},
		{name: "scaled down and up again it starts anew when it is gone", world: "ordered 1 n1 0:stopped",
			want: "start=0/Create@n1 | 0:Starting"},
		{name: "a life that keeps failing rests", world: "ordered 1 n1 0:failed", change: rest(time.Minute),
			want: "| 0:BackOff"},
		{name: "it says why it failed", world: "ordered 1 n1 0:failed", change: rest(time.Minute),
			want: "| 0:BackOff", says: "before the next attempt: VolumeRefused: another owner"},
		{name: "and so does the life that follows", world: "ordered 1 n1 0:failed",
			want: "start=0/Replace@n1 | 0:Starting", says: "Replace, token 1.10 has ended (VolumeRefused: another owner)"},
		{name: "with the cause alone if there is no more", world: "ordered 1 n1 0:failed",
			change: func(w *World) { w.Slots[0].Report.Message = "" }, want: "start=0/Replace@n1 | 0:Starting", says: "has ended (VolumeRefused)"},
		{name: "or with the phase", world: "ordered 1 n1 0:over", want: "start=0/Replace@n1 | 0:Starting", says: "has ended (Stopped)"},
		{name: "a life that was ended by order says for what", world: "ordered 1 n1 0:restarted",
			want: "start=0/Restart@n1 | 0:Starting", says: "on node n1: Restart\n"},
		{name: "one that was deleted with its set and is wanted again starts anew", world: "ordered 1 n1 0:stopped",
			change: func(w *World) { w.Slots[0].Member.StopReason = records.ReasonDelete }, want: "start=0/Create@n1 | 0:Starting"},
		{name: "rest is for one whose life is over", world: "ordered 1 n1 0:none", change: rest(time.Minute),
			want: "start=0/Create@n1 | 0:Starting"},
		{name: "rest that is over holds nobody", world: "ordered 1 n1 0:failed", change: rest(0),
			want: "start=0/Replace@n1 | 0:Starting"},
	})
	w := world(t, "parallel 2 n1 0:failed 1:failed")
	w.Rest = map[spec.Identity]time.Duration{w.Slots[0].ID: time.Minute, w.Slots[1].ID: time.Second}
	if p := Next(w); p.Wake != time.Second {
		t.Errorf("wake %s; want the shortest rest", p.Wake)
	}
}

func TestAWaitingMemberNamesWhatItWaitsFor(t *testing.T) {
	w := world(t, "ordered 3 n1 0:ready 1:missing")
	for _, b := range Next(w).Blocked {
		if b.ID.Ordinal == 2 && !strings.Contains(b.Text, "waiting for db-1: it reports ImageMissing: no such image") {
			t.Errorf("db-2: %q; want it to name db-1 and its cause", b.Text)
		}
	}
}

func TestAReportOfAnotherTokenProvesNothing(t *testing.T) {
	w := world(t, "ordered 1 n1 0:over")
	w.Slots[0].Report.Token.Number--
	if got := brief(Next(w)); got != "| 0:Starting" {
		t.Errorf("got %s; want nothing done: the old life's end says nothing about this one", got)
	}
}

func TestASetWithAnUnreadableRecordIsLeftAlone(t *testing.T) {
	for name, change := range map[string]func(*World){
		"a broken record, which is told first": func(w *World) {
			w.Broken, w.Slots[0].Identity.LastToken.Epoch = []string{"members/default/db/1"}, 2
		},
		"a broken record":             func(w *World) { w.Broken = []string{"members/default/db/1"} },
		"no epoch":                    func(w *World) { w.Epoch = 0 },
		"an epoch behind a life's":    func(w *World) { w.Slots[0].Identity.LastToken.Epoch = 2 },
		"an epoch behind a member's ": func(w *World) { w.Slots[0].Member.Token.Epoch = 2 },
	} {
		for _, line := range []string{"ordered 2 n1 0:ready", "parallel 2 n1 0:ready"} {
			w := world(t, line)
			change(&w)
			p := Next(w)
			if got := brief(p); got != "| 0:Unreadable 1:Unreadable" {
				t.Errorf("%s: got %s; want nothing done", name, got)
			}
			if strings.Contains(texts(p), "members/default/db/1 cannot be read") != (len(w.Broken) > 0) {
				t.Errorf("%s: it says %s", name, texts(p))
			}
		}
	}
}

func TestWithoutASetNothingIsDecided(t *testing.T) {
	w := world(t, "ordered 2 n1 0:over 1:ready")
	w.Set = nil
	if p := Next(w); len(p.Actions)+len(p.Blocked) > 0 {
		t.Errorf("got %s; want nothing: absence is no order", brief(p))
	}
}

func TestStrays(t *testing.T) {
	stray := func(node spec.NodeName, number int64) func(*World) {
		return func(w *World) {
			w.Slots[0].Strays = []NodeStray{{Node: node, Stray: spec.LifeID{ID: w.Slots[0].ID, Token: spec.Token{Epoch: 1, Number: number}}}}
		}
	}
	check(t, []rule{
		{name: "a life that is over is not replaced beside a stray", world: "ordered 1 n1 0:over", change: stray("n1", 3), want: "| 0:Stray"},
		{name: "the same token on another node is a stray", world: "ordered 1 n1 0:over", change: stray("n2", 10), want: "| 0:Stray"},
		{name: "what the store knows by now is none", world: "ordered 1 n1 0:over", change: stray("n1", 10), want: "start=0/Replace@n1 | 0:Starting"},
		{name: "a node whose facts cannot be read may run a life of anybody", world: "parallel 3 n1 n2~ 0:over 1:ready",
			change: func(w *World) { w.Nodes[1].Facts, w.Nodes[1].Unread = nil, true }, want: "| 0:Stray 2:Stray",
			says: "the stored facts of node n2 cannot be read, so it may run a life of this member"},
		{name: "... nor is an address freed meanwhile", world: "ordered 0 n1 n2~ 0:stopped",
			change: func(w *World) { w.Nodes[1].Facts, w.Nodes[1].Unread = nil, true }, want: "forget=0 |"},
		{name: "a stray's address is not freed", world: "ordered 0 n1 0:stopped", change: stray("n2", 3), want: "forget=0 |"},
	})
}

func TestRevisions(t *testing.T) {
	w := world(t, "ordered 1 n1")
	w.TemplateHash = "h2"
	w.Set.Annotations = map[string]string{"kubernetes.io/change-cause": "why"}
	w.Set.Spec.Template.Spec.RestartPolicy = "Always"
	p := Next(w)
	r := p.Actions[0].(AddRevision).Revision
	if r.Hash != "h2" || r.Number != 2 || r.SetUID != "u1" || r.HashVersion != spec.HashVersion || r.ChangeCause != "why" || r.Template.Spec.RestartPolicy != "Always" {
		t.Errorf("revision %+v; want the set's template as number 2", r)
	}
	if got := brief(p); got != "revision=h2 start=0/Create@n1/h2 | 0:Starting" {
		t.Errorf("got %s; want a start on it in the same step", got)
	}
	if got := p.Actions[1].(Start).Member.Revision; got != "h2" {
		t.Errorf("started on %s; want h2", got)
	}
	w.Epoch = 0
	if got := brief(Next(w)); got != "| 0:Unreadable" {
		t.Errorf("got %s; want nothing in a store without epoch", got)
	}
}
