package agent

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stead-project/stead/agent/runtime/fakert"
	"github.com/stead-project/stead/records"
)

var errCrash = errors.New("the agent is gone")

// crashAt makes the agent end at the n-th call to its host (from 1): before the call
// has its effect, or after it. It tells whether there was such a call.
func (n *node) crashAt(call int, before bool) (crashed func() bool) {
	seen := 0
	cancel := n.cancel
	n.host.OnCall(func(context.Context, fakert.Call) error {
		n.mu.Lock()
		defer n.mu.Unlock()
		seen++
		if seen < call {
			return nil
		}
		cancel()
		if before || seen > call {
			return errCrash // nothing more reaches the host
		}
		return nil
	})
	return func() bool {
		synctest.Wait()
		n.mu.Lock()
		defer n.mu.Unlock()
		return seen >= call
	}
}

// At every call an agent makes to its host while it starts a life, ends it and
// starts the next one, it is killed; the next agent brings it to the same end.
func TestACrashAtAnyPointLosesNothingAndDoublesNothing(t *testing.T) {
	tell := func(n *node, rev int64) {
		n.script.always(pictures(rev, true, picture(rev, 1)), wanted(rev, n.life(5, records.GoalRun)))
	}
	for _, before := range []bool{true, false} {
		for call, more := 1, true; more; call++ {
			if call > 300 {
				t.Fatal("the calls do not come to an end")
			}
			t.Run(fmt.Sprintf("call %d, before its effect %v", call, before), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					n := newNode(t)
					n.script.ttl = 10 * time.Second // no session is lost here: fewer pings
					n.run()
					crashed := n.crashAt(call, before)
					tell(n, 10)
					n.script.say(pictures(10, true, picture(10, 1)))
					n.script.say(wanted(10, n.life(5, records.GoalRun)))
					time.Sleep(3 * time.Second)
					for _, next := range []struct {
						rev  int64
						life records.Life
					}{{11, n.life(5, records.GoalStop)}, {12, n.life(6, records.GoalRun)}} {
						n.script.always(pictures(next.rev, true, picture(next.rev, 1)), wanted(next.rev, next.life))
						if !crashed() {
							n.script.say(wanted(next.rev, next.life))
						} else if n.cancel != nil {
							n.restart()
						}
						time.Sleep(20 * time.Second)
					}
					more = crashed()
					if more {
						n.restart()
					}
					n.wantReady(tok(6))
					if r := n.report(tok(5)); r.Phase != records.PhaseStopped && n.host.StartsOf(cid, tok(5)) > 0 {
						t.Errorf("the first life: got %+v", r)
					}
					if got := n.host.StartsOf(cid, tok(5)); got > 1 {
						t.Errorf("the first life was started %d times", got)
					}
					n.wantStarts(tok(6), 1)
					if got := n.host.RunningTokens(db0); len(got) != 1 || got[0] != tok(6) {
						t.Errorf("running: %v", got)
					}
				})
			})
		}
	}
}

func (n *node) restart() {
	n.kill()
	n.host.OnCall(nil)
	n.run()
}
