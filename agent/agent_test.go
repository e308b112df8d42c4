package agent

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stead-project/stead/agent/runtime"
	"github.com/stead-project/stead/agent/runtime/fakert"
	"github.com/stead-project/stead/proto"
	"github.com/stead-project/stead/proto/wire"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
)

// box runs f with a node that has a session. Hours pass in some tests, so its pings are few.
func box(t *testing.T, f func(t *testing.T, n *node)) { boxOf(t, 10*time.Second, f) }

// boxOf is box with sessions of this TTL.
func boxOf(t *testing.T, ttl time.Duration, f func(t *testing.T, n *node)) {
	synctest.Test(t, func(t *testing.T) {
		n := newNode(t)
		n.script.ttl = ttl
		n.run()
		n.script.say(pictures(1, true, picture(1, 1)))
		f(t, n)
	})
}

func TestFromWantedToStopped(t *testing.T) {
	box(t, func(t *testing.T, n *node) {
		n.script.say(wanted(10, n.life(5, records.GoalRun)))
		n.wantReady(tok(5))
		n.script.say(wanted(11, n.life(5, records.GoalStop)))
		n.wantStopped(tok(5))
		n.wantStarts(tok(5), 1)
		n.script.with(func() {
			// Ready, stopping (unless it has stopped before that is sent), stopped: what came in between was needless.
			if got := len(n.script.reports); got < 2 || got > 3 {
				t.Errorf("got %d reports: %+v", got, n.script.reports)
			}
		})
		n.script.say(wanted(12, n.life(5, records.GoalRun))) // e.g. by a server that forgot
		n.wantStopped(tok(5))
		n.wantStarts(tok(5), 1)
	})
}

func TestAClosedTokenIsNotStartedByTheNextAgent(t *testing.T) {
	box(t, func(t *testing.T, n *node) {
		n.script.say(wanted(10, n.life(5, records.GoalRun)))
		n.wantReady(tok(5))
		n.script.with(func() { n.script.deaf = true })
		n.script.say(wanted(11, n.life(5, records.GoalStop)))
		n.wantStopped(tok(5))
		n.kill()
		n.script.with(func() { clear(n.script.last) })
		n.run()
		n.wantStopped(tok(5)) // told again, for it was never stored
		n.script.say(wanted(12, n.life(5, records.GoalRun)))
		n.wantStopped(tok(5))
		n.wantStarts(tok(5), 1)
	})
}

func TestTheNextAgentAdoptsWhatRuns(t *testing.T) {
	box(t, func(t *testing.T, n *node) {
		n.script.say(wanted(10, n.life(5, records.GoalRun)))
		n.wantReady(tok(5))
		before := n.report(tok(5)).Seq
		n.kill()
		n.run()
		n.wantReady(tok(5))
		n.wantStarts(tok(5), 1)
		if r := n.report(tok(5)); r.Seq <= before {
			t.Errorf("sequence %d after %d", r.Seq, before)
		}
		n.script.with(func() {
			for _, r := range n.script.reports {
				if !r.Ready {
					t.Errorf("a report says not ready: %+v", r)
				}
			}
			held := n.script.hellos[len(n.script.hellos)-1].GetInventory().GetHoldings()
			if len(held) != 1 || wire.ToToken(held[0].GetToken()) != tok(5) {
				t.Errorf("inventory: got %v", held)
			}
		})
	})
}

func TestLivesGoOnWithoutServerAndAgent(t *testing.T) {
	box(t, func(t *testing.T, n *node) {
		n.script.say(wanted(10, n.life(5, records.GoalRun)))
		n.wantReady(tok(5))
		n.script.down()
		time.Sleep(10 * time.Minute)
		n.wantStarts(tok(5), 1)
		n.host.Exit(cid, runtime.Exit{Code: 1})
		n.wantStarts(tok(5), 2) // restarted in place
		n.kill()
		n.run()
		time.Sleep(time.Minute)
		n.host.Exit(cid, runtime.Exit{Code: 1})
		time.Sleep(time.Minute)
		n.wantStarts(tok(5), 3)
		n.mu.Lock()
		if len(n.dns) != 1 || n.dns[0].Ref != ref {
			t.Errorf("pictures without a server: got %v", n.dns)
		}
		n.mu.Unlock()
		n.script.up()
		time.Sleep(10 * time.Second)
		n.wantReady(tok(5))
	})
}

func TestAnEmptyListStopsNothing(t *testing.T) {
	box(t, func(t *testing.T, n *node) {
		n.script.say(wanted(10, n.life(5, records.GoalRun)))
		n.wantReady(tok(5))
		n.script.say(wanted(11))
		n.wantReady(tok(5))
		n.kill()
		n.script.always(wanted(12))
		n.run()
		n.wantReady(tok(5))
		if got := n.host.RunningTokens(db0); len(got) != 1 {
			t.Errorf("running: %v", got)
		}
	})
}

func TestAListThatGoesBackIsRefused(t *testing.T) {
	box(t, func(t *testing.T, n *node) {
		n.script.say(wanted(10, n.life(5, records.GoalRun)))
		n.wantReady(tok(5))
		n.script.say(wanted(9, n.life(5, records.GoalStop)))
		n.wantReady(tok(5))
		n.kill()
		n.script.always(wanted(9, n.life(5, records.GoalStop)))
		n.run()
		n.wantReady(tok(5))
		n.script.with(func() {
			last := n.script.hellos[len(n.script.hellos)-1]
			if got := wire.ToSequence(last.GetNewest()); got != (spec.Sequence{Epoch: 1, Rev: 10}) {
				t.Errorf("newest: got %v", got)
			}
			if len(n.script.hellos) < 3 {
				t.Errorf("the session went on after the list was refused: %d hellos", len(n.script.hellos))
			}
		})
	})
}

func TestALifeOfAnotherMachineIsNotEvenRefused(t *testing.T) {
	box(t, func(t *testing.T, n *node) {
		other, elsewhere := n.life(5, records.GoalRun), n.life(6, records.GoalRun)
		other.Member.NodeUID, elsewhere.Member.Node = "another", "n2"
		n.script.say(wanted(10, other, elsewhere))
		time.Sleep(time.Minute)
		n.script.with(func() {
			if len(n.script.reports) != 0 {
				t.Errorf("reported: %+v", n.script.reports)
			}
		})
		if got := n.host.Starts(db0); len(got) != 0 {
			t.Errorf("started: %v", got)
		}
	})
}

func TestALifeAssignedForAnotherBootIsRefused(t *testing.T) {
	box(t, func(t *testing.T, n *node) {
		l := n.life(5, records.GoalRun)
		l.Member.Boot = "b0"
		n.script.say(wanted(10, l))
		n.want("failed", tok(5), func(r records.Report) bool { return r.Phase == records.PhaseFailed && r.Cause == "OtherBoot" })
		l.Member.Boot = "b1"
		n.script.say(wanted(11, l))
		time.Sleep(time.Minute)
		n.wantStarts(tok(5), 0)
	})
}

func TestARebootEndsEveryLife(t *testing.T) {
	box(t, func(t *testing.T, n *node) {
		n.script.say(wanted(10, n.life(5, records.GoalRun)))
		n.wantReady(tok(5))
		n.kill()
		n.host.Reboot()
		n.boot = "b2"
		n.script.down()
		n.run()
		time.Sleep(10 * time.Minute)
		n.wantStarts(tok(5), 1) // a rebooted agent without a server starts nothing
		n.script.up()
		time.Sleep(10 * time.Second)
		n.want("ended by reboot", tok(5), func(r records.Report) bool { return r.Phase == records.PhaseStopped && r.Cause == "Reboot" })
		n.script.say(pictures(20, true, picture(20, 1)))
		n.script.say(wanted(20, n.life(6, records.GoalRun)))
		n.wantReady(tok(6))
		n.wantStarts(tok(5), 1)
	})
}

func TestANewerLifeEndsTheOlderFirst(t *testing.T) {
	box(t, func(t *testing.T, n *node) {
		n.script.say(wanted(10, n.life(5, records.GoalRun)))
		n.wantReady(tok(5))
		n.script.say(wanted(11, n.life(6, records.GoalRun)))
		n.wantReady(tok(6))
		if r := n.report(tok(5)); r.Phase != records.PhaseStopped {
			t.Errorf("the older life: got %+v", r)
		}
		if got := n.host.RunningTokens(db0); len(got) != 1 || got[0] != tok(6) {
			t.Errorf("running: %v", got)
		}
	})
}

func TestALifeSaidToBeOverEnds(t *testing.T) {
	box(t, func(t *testing.T, n *node) {
		n.script.say(wanted(10, n.life(5, records.GoalRun)))
		n.wantReady(tok(5))
		m := wanted(11)
		m.GetWanted().Over = []*proto.Holding{{Id: wire.Identity(db0), Token: wire.Token(tok(5))}}
		n.script.say(m)
		n.wantStopped(tok(5))
	})
}

func TestAServerThatAnswersNoPingIsLeft(t *testing.T) {
	boxOf(t, time.Second, func(t *testing.T, n *node) {
		n.script.with(func() { n.script.mute = true })
		time.Sleep(5 * time.Second)
		n.script.with(func() {
			if len(n.script.hellos) < 2 {
				t.Errorf("%d hellos", len(n.script.hellos))
			}
		})
	})
}

func TestAnotherClusterIsRefused(t *testing.T) {
	box(t, func(t *testing.T, n *node) {
		n.script.say(wanted(10, n.life(5, records.GoalRun)))
		n.wantReady(tok(5))
		n.kill()
		n.script.with(func() { n.script.cluster = "fedcba98" })
		n.script.always(wanted(11, n.life(5, records.GoalStop)))
		n.run()
		time.Sleep(time.Minute)
		if got := n.host.RunningTokens(db0); len(got) != 1 {
			t.Errorf("running: %v", got)
		}
		if n.home.Cluster() != cluster {
			t.Errorf("cluster: got %s", n.home.Cluster())
		}
	})
}

func TestUnkillableIsNeverStopped(t *testing.T) {
	box(t, func(t *testing.T, n *node) {
		n.host.OnStart(func(runtime.Container) fakert.Behaviour { return fakert.Behaviour{Unkillable: true, IgnoreTerm: true} })
		n.script.say(wanted(10, n.life(5, records.GoalRun)))
		n.wantReady(tok(5))
		n.script.say(wanted(11, n.life(6, records.GoalRun)))
		time.Sleep(10 * time.Minute)
		n.want("still stopping", tok(5), func(r records.Report) bool { return r.Phase == records.PhaseStopping && r.Cause != "" })
		n.wantStarts(tok(6), 0)
		n.kill()
		n.run()
		time.Sleep(10 * time.Minute)
		n.want("still stopping", tok(5), func(r records.Report) bool { return r.Phase == records.PhaseStopping })
		n.wantStarts(tok(6), 0)
	})
}

// What it was told to run and has not begun yet may begin at any moment: a server whose
// store is restored must hear of it before it decides anything.
func TestAHelloNamesWhatIsPending(t *testing.T) {
	box(t, func(t *testing.T, n *node) {
		n.host.OnStart(func(runtime.Container) fakert.Behaviour { return fakert.Behaviour{Unkillable: true, IgnoreTerm: true} })
		n.script.say(wanted(10, n.life(5, records.GoalRun)))
		n.wantReady(tok(5))
		n.script.say(wanted(11, n.life(6, records.GoalRun)))
		time.Sleep(time.Minute)
		n.wantStarts(tok(6), 0)
		n.script.down()
		n.script.up()
		time.Sleep(time.Minute)
		n.script.with(func() {
			held := map[spec.Token]bool{}
			for _, h := range n.script.hellos[len(n.script.hellos)-1].GetInventory().GetHoldings() {
				held[wire.ToToken(h.GetToken())] = true
			}
			if len(held) != 2 || !held[tok(5)] || !held[tok(6)] {
				t.Errorf("held: %v, want the open life and the one that waits for its end", held)
			}
		})
	})
}
