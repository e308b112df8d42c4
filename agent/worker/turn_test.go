package worker

import (
	"context"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stead-project/stead/agent/ledger"
	"github.com/stead-project/stead/agent/probe"
	"github.com/stead-project/stead/agent/runtime"
	"github.com/stead-project/stead/agent/step"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
)

// byHand is Background that waits to be asked.
type byHand struct{ ended func() }

func (b *byHand) Watch(_ context.Context, _ runtime.ContainerID, ended func()) { b.ended = ended }

func (b *byHand) Probe(context.Context, probe.Target, func(probe.Health)) {}

func (b *byHand) Hook(context.Context, probe.Target, spec.Hook, func(error)) {}

func (b *byHand) Pull(ctx context.Context, pull func(context.Context)) { pull(ctx) }

func (b *byHand) Order(context.Context, probe.Target, spec.MemberHook, []string, func(error)) {}

// TestATurnIsOneOperation: the simulation takes turns of the worker without a goroutine.
func TestATurnIsOneOperation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNode(t)
		var c *Config
		n.change = func(made *Config) { c = made }
		n.run()
		n.kill()
		l, err := ledger.Open(filepath.Join(n.dir, "ledger"), n.boot)
		must(t, err)
		defer l.Close()
		var chosen []step.Kind
		hand := &byHand{}
		c.Ledger, c.Background = l, hand
		c.Next = func(_ spec.Identity, _ spec.Token, wanted step.Wanted, seen step.Seen) step.Op {
			op := step.Next(wanted, seen)
			chosen = append(chosen, op.Kind)
			return op
		}
		w := New(c, db0, Found{Clean: true})
		rests := func(want time.Duration) {
			t.Helper()
			acted, next := w.Turn(t.Context())
			if acted || next.IsZero() != (want == 0) || want > 0 && time.Until(next) != want {
				t.Fatalf("acted %v, next in %s, want %s", acted, time.Until(next), want)
			}
		}
		rests(0)
		w.Tell(life(5, records.GoalRun))
		for turns := len(chosen); ; turns++ {
			acted, _ := w.Turn(t.Context())
			if got := len(chosen) - turns; got != 1 {
				t.Fatalf("%d operations chosen in a turn", got)
			}
			if !acted {
				break
			}
		}
		if last := chosen[len(chosen)-2]; last != step.StartContainer {
			t.Errorf("the last operation is %s", last)
		}
		if r, ok := w.Last(); !ok || !r.Ready {
			t.Errorf("the member is not ready: %+v", r)
		}
		rests(30 * time.Second)
		n.host.Exit(cid, runtime.Exit{Code: 1})
		rests(30 * time.Second) // nobody said so
		hand.ended()
		if acted, _ := w.Turn(t.Context()); !acted {
			t.Error("the end of the container is not seen")
		}
	})
}
