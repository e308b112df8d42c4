package agent

import (
	"context"
	"errors"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stead-project/stead/agent/runtime"
	"github.com/stead-project/stead/agent/runtime/fakert"
	"github.com/stead-project/stead/agent/watchdog"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
)

// guarded is a node whose agents guard lives, by a watchdog that outlives them.
func guarded(t *testing.T, f func(t *testing.T, n *node)) {
	synctest.Test(t, func(t *testing.T) {
		n := newNode(t)
		n.guards = true
		n.run()
		time.Sleep(time.Second) // until its watchdog is there and its session stands
		n.script.say(pictures(1, true, picture(1, 1)))
		f(t, n)
	})
}

// watch is what starts a node's watchdog; it ends with the test, or by n.unwatch.
func (n *node) watch(dir string) error {
	n.mu.Lock()
	blind := n.blind
	n.mu.Unlock()
	if blind {
		return errors.New("no watchdog can be started")
	}
	ctx, cancel := context.WithCancel(n.t.Context())
	done := make(chan struct{})
	w := n.host.Watchdog(dir, n.clock)
	go func() { defer close(done); _ = w.Run(ctx, nil) }()
	n.mu.Lock()
	defer n.mu.Unlock()
	n.unwatch = func() { cancel(); <-done }
	n.watchdogs++
	return nil
}

func (n *node) dir() watchdog.Dir {
	return watchdog.Below(filepath.Join(n.root, "run", string(n.boot)))
}

// bounded is a life of the test's member, guarded with a bound of ten seconds.
func (n *node) bounded(number int64, goal records.Goal) records.Life {
	l := n.life(number, goal)
	l.Member.Bound = 10 * time.Second
	return l
}

func (n *node) running() []spec.Token {
	synctest.Wait()
	return n.host.RunningTokens(db0)
}

func TestAGuardedLifeEndsAtItsBoundAndIsNeverStartedAgain(t *testing.T) {
	guarded(t, func(t *testing.T, n *node) {
		hold := n.life(6, records.GoalRun)
		hold.Member.ID.Ordinal, hold.Member.Address = 1, netip.MustParseAddr("10.88.0.3")
		n.script.say(wanted(10, n.bounded(5, records.GoalRun), hold))
		n.wantReady(tok(5))
		if r := n.report(tok(5)); r.Bound != 10*time.Second {
			t.Errorf("reported with a bound of %v", r.Bound)
		}
		n.script.with(func() {
			if facts := decode[records.NodeFacts](t, n.script.hellos[len(n.script.hellos)-1].GetFactsJson()); !facts.Guards {
				t.Error("the node does not say that it guards lives")
			}
		})
		time.Sleep(time.Minute) // of pongs
		n.wantStarts(tok(5), 1)
		n.script.down()
		time.Sleep(9 * time.Second)
		if len(n.running()) != 1 {
			t.Fatal("it ended before its bound")
		}
		time.Sleep(2 * time.Second)
		if got := n.running(); len(got) != 0 {
			t.Fatalf("past its deadline %v runs", got)
		}
		time.Sleep(time.Hour)
		n.wantStarts(tok(5), 1)
		if got := n.host.RunningTokens(hold.Member.ID); len(got) != 1 {
			t.Errorf("of the life that is not guarded runs %v", got)
		}
		n.script.up()
		time.Sleep(20 * time.Second) // it is tried again
		n.want("over", tok(5), func(r records.Report) bool {
			return r.Phase == records.PhaseStopped && r.Cause == "DeadlinePassed" && r.Bound == 10*time.Second
		})
		n.script.say(wanted(12, n.bounded(5, records.GoalRun), hold)) // by a server that does not know yet
		n.wantStopped(tok(5))
		n.wantStarts(tok(5), 1)
		if got, err := n.dir().Records(); err != nil || len(got) != 0 {
			t.Errorf("left when the life is over: %+v, %v", got, err)
		}
		n.script.say(wanted(13, n.bounded(7, records.GoalRun), hold))
		n.wantReady(tok(7))
		if got, err := n.dir().Records(); err != nil || len(got) != 1 || got["default.db-0"].Token != "1.7" || got["default.db-0"].Ended {
			t.Errorf("records %+v, %v", got, err)
		}
		if got := n.host.StartsOf(runtime.ContainerID{ID: hold.Member.ID, Name: "db"}, tok(6)); got != 1 {
			t.Errorf("the life that is not guarded was started %d times", got)
		}
	})
}

// TestAGuardedLifeNeedsNoPictures: a server that is behind with telling what it knows has
// yet read that the session stands.
func TestAGuardedLifeNeedsNoPictures(t *testing.T) {
	guarded(t, func(t *testing.T, n *node) {
		n.script.say(wanted(10, n.bounded(5, records.GoalRun)))
		n.wantReady(tok(5))
		n.script.with(func() { n.script.behind = true })
		time.Sleep(time.Minute)
		if got := n.running(); len(got) != 1 {
			t.Errorf("%v runs", got)
		}
		n.wantStarts(tok(5), 1)
	})
}

// TestAGuardedLifeCountsFromThePing: what the server answered was true when it was asked,
// not when the answer arrived (SAFETY S5).
func TestAGuardedLifeCountsFromThePing(t *testing.T) {
	guarded(t, func(t *testing.T, n *node) {
		n.script.say(wanted(10, n.bounded(5, records.GoalRun)))
		n.wantReady(tok(5))
		n.script.with(func() { n.script.lag = 700 * time.Millisecond })
		time.Sleep(time.Minute)
		if got := n.running(); len(got) != 1 {
			t.Fatalf("%v runs", got)
		}
		n.script.down()
		time.Sleep(9500 * time.Millisecond) // the newest ping that was answered was sent 700 ms before
		if got := n.running(); len(got) != 0 {
			t.Errorf("past its deadline %v runs", got)
		}
	})
}

func TestAGuardedLifeEndsWithoutItsAgent(t *testing.T) {
	guarded(t, func(t *testing.T, n *node) {
		n.script.say(wanted(10, n.bounded(5, records.GoalRun)))
		n.wantReady(tok(5))
		n.kill()
		time.Sleep(8 * time.Second)
		n.script.down()
		n.run0() // in time: it goes on, without a server
		time.Sleep(time.Second)
		if len(n.running()) != 1 {
			t.Fatal("it ended before its bound")
		}
		n.kill()
		time.Sleep(4 * time.Second)
		if got := n.running(); len(got) != 0 {
			t.Fatalf("past its deadline %v runs", got)
		}
		// An agent that comes late closes it before anything is confirmed.
		n.script.always(pictures(20, true, picture(20, 1)), wanted(20, n.bounded(5, records.GoalRun)))
		n.script.up()
		n.run0()
		n.wantStopped(tok(5))
		n.script.with(func() { // asked again after it was stored, the cause is no longer known
			if !slices.ContainsFunc(n.script.reports, func(r records.Report) bool { return r.Cause == "DeadlinePassed" }) {
				t.Errorf("reports do not say why: %+v", n.script.reports)
			}
		})
		n.wantStarts(tok(5), 1)
	})
}

func TestNoGuardedLifeBeginsBeforeItsWatchdogKnows(t *testing.T) {
	guarded(t, func(t *testing.T, n *node) {
		n.mu.Lock()
		n.blind = true // no watchdog comes up any more
		n.unwatch()
		n.mu.Unlock()
		n.script.say(wanted(10, n.bounded(5, records.GoalRun)))
		n.want("waiting", tok(5), func(r records.Report) bool { return r.Cause == "Unwatched" && r.Phase == records.PhaseAssigned })
		n.wantStarts(tok(5), 0)
		n.mu.Lock()
		n.blind = false
		n.mu.Unlock()
		n.wantReady(tok(5))
		// One that is started again in place needs a watchdog as well.
		n.mu.Lock()
		n.blind = true
		n.unwatch()
		n.mu.Unlock()
		n.host.Exit(cid, runtime.Exit{Code: 1})
		n.want("waiting", tok(5), func(r records.Report) bool { return r.Cause == "Unwatched" })
		n.wantStarts(tok(5), 1)
		n.mu.Lock()
		n.blind = false
		n.mu.Unlock()
		n.wantReady(tok(5))
		n.wantStarts(tok(5), 2)
		if n.watchdogs < 3 {
			t.Errorf("%d watchdogs were started", n.watchdogs)
		}
	})
}

func TestNoGuardedLifeBeginsUnconfirmed(t *testing.T) {
	guarded(t, func(t *testing.T, n *node) {
		n.script.with(func() { n.script.strange = true }) // its pongs confirm nothing
		time.Sleep(20 * time.Second)
		n.script.say(wanted(10, n.bounded(5, records.GoalRun)))
		n.want("waiting", tok(5), func(r records.Report) bool { return r.Cause == "Unconfirmed" })
		n.wantStarts(tok(5), 0)
		n.script.with(func() { n.script.strange = false })
		n.wantReady(tok(5))
	})
}

func TestTheRecordOfALifeThatNeverBeganEndsNoOther(t *testing.T) {
	guarded(t, func(t *testing.T, n *node) {
		n.kill() // after it has recorded a life, and before it opened the token
		must(t, n.dir().Put("default.db-0", watchdog.Record{
			Namespace: "default", Set: "db", Token: "1.4", Bound: 10 * time.Second, Cgroup: fakert.Cgroup(db0),
		}))
		n.run()
		time.Sleep(time.Second)
		n.script.say(pictures(2, true, picture(2, 1)))
		n.script.say(wanted(10, n.life(5, records.GoalRun)))
		n.wantReady(tok(5))
		n.script.down()
		time.Sleep(time.Minute)
		if got := n.running(); len(got) != 1 {
			t.Errorf("of the life that is not guarded runs %v", got)
		}
		n.wantStarts(tok(5), 1)
	})
}

func TestWhatIsDamagedEndsGuardedLivesAndNoAgent(t *testing.T) {
	for _, file := range []string{"confirmed", "lives/default.db-0.json"} {
		t.Run(file, func(t *testing.T) {
			guarded(t, func(t *testing.T, n *node) {
				n.script.say(wanted(10, n.bounded(5, records.GoalRun)))
				n.wantReady(tok(5))
				n.kill()
				must(t, os.WriteFile(filepath.Join(string(n.dir()), file), []byte("{"), 0o600))
				n.run()
				n.wantStopped(tok(5))
				n.wantStarts(tok(5), 1)
				n.script.say(wanted(12, n.bounded(6, records.GoalRun)))
				n.wantReady(tok(6))
			})
		})
	}
}

func TestANodeThatComesToHaveAWatchdogSaysSo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNode(t)
		n.guards, n.blind = true, true
		n.run()
		said := func() (all []bool) {
			time.Sleep(20 * time.Second)
			n.script.with(func() {
				for _, h := range n.script.hellos {
					all = append(all, decode[records.NodeFacts](t, h.GetFactsJson()).Guards)
				}
			})
			return all
		}
		if got := said(); !slices.Equal(got, []bool{false}) {
			t.Errorf("without a watchdog: %v", got)
		}
		n.mu.Lock()
		n.blind = false
		n.mu.Unlock()
		if got := said(); !slices.Equal(got, []bool{false, true}) {
			t.Errorf("with one: %v", got)
		}
	})
}

func TestANodeWithoutAWatchdogBeginsNoGuardedLife(t *testing.T) {
	box(t, func(t *testing.T, n *node) {
		n.script.say(wanted(10, n.bounded(5, records.GoalRun)))
		n.want("waiting", tok(5), func(r records.Report) bool { return r.Cause == "Unwatched" && r.Bound == 0 })
		n.wantStarts(tok(5), 0)
	})
}

func TestAnOpenGuardedLifeWhoseRecordIsGoneIsOver(t *testing.T) {
	guarded(t, func(t *testing.T, n *node) {
		n.script.say(wanted(10, n.bounded(5, records.GoalRun)))
		n.wantReady(tok(5))
		n.kill()
		must(t, n.dir().Remove("default.db-0"))
		n.run0()
		n.wantStopped(tok(5))
		n.wantStarts(tok(5), 1)
		if got := n.running(); len(got) != 0 {
			t.Errorf("%v runs, and nothing would end it", got)
		}
	})
}
