package agent

import (
	"testing"
	"time"

	"github.com/stead-project/stead/records"
)

func TestTheTimeOfAShutdown(t *testing.T) {
	const second = time.Second
	minutes := func(s shutdown) shutdown {
		s.limit = 5 * time.Minute
		return s
	}
	for _, c := range []struct {
		name string
		now  shutdown
		want shutdownStage
	}{
		{"servers do it in order", minutes(shutdown{open: 3, grace: 30 * second}), inOrder},
		{"and as long as the longest grace leaves", minutes(shutdown{open: 3, grace: 30 * second, passed: 254 * second}), inOrder},
		{"then all that are left", minutes(shutdown{open: 3, grace: 30 * second, passed: 255 * second}), atOnce},
		{"then the agent does it", minutes(shutdown{open: 3, grace: 30 * second, passed: 265 * second}), byAgent},
		{"until the time is over", minutes(shutdown{open: 3, grace: 30 * second, passed: 300 * second}), ended},
		{"a grace that is longer than the time", minutes(shutdown{open: 1, grace: time.Hour}), byAgent},
		{"a server that was away for a moment", minutes(shutdown{open: 1, away: 9 * second}), inOrder},
		{"no server", minutes(shutdown{open: 1, away: 10 * second}), byAgent},
		{"nothing is left", minutes(shutdown{}), ended},
		{"but an end that is not stored", minutes(shutdown{untold: 1}), inOrder},
		{"which is not waited for for long", minutes(shutdown{untold: 1, clear: 3 * second}), ended},
		{"nor without a server", minutes(shutdown{untold: 1, away: 1}), ended},
	} {
		if got := c.now.stage(); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

// shutDown has the host of the node be shut down, and returns how long its members took.
func (n *node) shutDown(limit time.Duration) time.Duration {
	begun := time.Now()
	n.agent.Shutdown(n.t.Context(), limit)
	return time.Since(begun)
}

func TestServersHaveMembersStopBeforeTheirHost(t *testing.T) {
	box(t, func(t *testing.T, n *node) {
		n.script.say(wanted(10, n.life(5, records.GoalRun)))
		n.wantReady(tok(5))
		time.AfterFunc(20*time.Second, func() {
			if said, _ := n.short(); said != records.ShuttingDown {
				t.Errorf("servers were told %q", said)
			}
			stop := n.life(5, records.GoalStop)
			stop.Member.StopReason = records.ReasonNodeShutdown
			n.script.say(wanted(11, stop))
		})
		if took := n.shutDown(5 * time.Minute); took < 20*time.Second || took > 30*time.Second {
			t.Errorf("it took %s", took)
		}
		n.wantStopped(tok(5))
	})
}

func TestWhatServersDoNotStopInTimeTheAgentDoes(t *testing.T) {
	box(t, func(t *testing.T, n *node) {
		n.script.say(wanted(10, n.life(5, records.GoalRun)))
		n.wantReady(tok(5))
		if took := n.shutDown(time.Minute); took < 45*time.Second || took > 56*time.Second {
			t.Errorf("it took %s, and has a grace of 5 s", took)
		}
		n.wantStopped(tok(5))
		n.script.say(wanted(12, n.life(5, records.GoalRun))) // by one that did not hear of it
		n.wantStopped(tok(5))
		n.wantStarts(tok(5), 1)
	})
}

func TestWithoutAServerTheAgentStopsMembersWithTheirHost(t *testing.T) {
	box(t, func(t *testing.T, n *node) {
		n.script.say(wanted(10, n.life(5, records.GoalRun)))
		n.wantReady(tok(5))
		n.script.down()
		if took := n.shutDown(5 * time.Minute); took < awayTime || took > 40*time.Second {
			t.Errorf("it took %s", took)
		}
		if open := n.agent.ledger.Look(db0).Open; !open.IsZero() {
			t.Errorf("token %s is open", open)
		}
		n.kill()
		n.run0()
		n.script.up()
		n.wantStopped(tok(5))
		n.wantStarts(tok(5), 1)
	})
}

// An agent that began without a server was never told of the life that is here.
func TestALifeThatNobodySpokeOfStopsWithItsHost(t *testing.T) {
	box(t, func(t *testing.T, n *node) {
		n.script.say(wanted(10, n.life(5, records.GoalRun)))
		n.wantReady(tok(5))
		n.kill()
		n.script.down()
		n.run0()
		if took := n.shutDown(5 * time.Minute); took < awayTime || took > time.Minute {
			t.Errorf("it took %s", took)
		}
		if open := n.agent.ledger.Look(db0).Open; !open.IsZero() {
			t.Errorf("token %s is open", open)
		}
	})
}
