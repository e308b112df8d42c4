package worker

import (
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stead-project/stead/agent/ledger"
	"github.com/stead-project/stead/agent/runtime"
	"github.com/stead-project/stead/agent/runtime/fakert"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/spec/causes"
)

// A restored store may ask for tokens that this node has closed. Its deadline closes a
// token while a process of it hangs in the kernel.
func TestNoOldTokenIsToldOverWhileAProcessIsLeft(t *testing.T) {
	scenario(t, func(t *testing.T, n *node) {
		n.host.OnStart(func(runtime.Container) fakert.Behaviour {
			return fakert.Behaviour{IgnoreTerm: true, Unkillable: true}
		})
		n.run()
		n.w.Tell(life(5, records.GoalRun))
		n.wantReady()
		n.kill()
		l, err := ledger.Open(filepath.Join(n.dir, "ledger"), n.boot)
		must(t, err)
		must(t, l.CloseToken(db0, tok(5), causes.DeadlinePassed))
		must(t, l.Close())
		n.run()
		over := func() (tokens []spec.Token) {
			synctest.Wait()
			n.mu.Lock()
			defer n.mu.Unlock()
			for _, r := range n.reports {
				if r.Phase.Over() {
					tokens = append(tokens, r.Token)
				}
			}
			return tokens
		}
		n.w.Tell(life(6, records.GoalRun))
		n.w.Tell(life(5, records.GoalStop))
		n.w.Tell(life(4, records.GoalRun))
		time.Sleep(10 * time.Minute)
		if got := over(); len(got) > 0 {
			t.Fatalf("told over while a process is left: %v", got)
		}
		n.host.OnStart(nil)
		n.host.Exit(cid, runtime.Exit{Code: 137})
		time.Sleep(2 * time.Minute)
		told := map[spec.Token]bool{}
		for _, token := range over() {
			told[token] = true
		}
		if !told[tok(5)] || !told[tok(4)] || told[tok(6)] {
			t.Errorf("told over: %v, want 4 and 5", told)
		}
		n.wantStarts(tok(6), 1)
	})
}
