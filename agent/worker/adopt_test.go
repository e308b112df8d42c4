package worker

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stead-project/stead/agent/files"
	"github.com/stead-project/stead/agent/probe"
	"github.com/stead-project/stead/agent/runtime"
	"github.com/stead-project/stead/agent/runtime/fakert"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/spec/causes"
	"github.com/stead-project/stead/spec/scalar"
)

func scenario(t *testing.T, f func(t *testing.T, n *node)) {
	synctest.Test(t, func(t *testing.T) { f(t, newNode(t)) })
}

func TestBeingAvailableIsReported(t *testing.T) {
	scenario(t, func(t *testing.T, n *node) {
		n.run()
		n.w.Tell(with(life(5, records.GoalRun), func(l *records.Life) { l.MinReadySeconds = 10 }))
		if r := n.wantReady(); r.ReadyFor != 0 {
			t.Fatalf("got %+v", r)
		}
		time.Sleep(5 * time.Second)
		n.kill() // the next agent counts on
		n.run()
		time.Sleep(6 * time.Second)
		if r := n.wantReady(); r.ReadyFor < 10*time.Second || r.ReadyFor > 11*time.Second {
			t.Fatalf("got ready for %s", r.ReadyFor)
		}
	})
}

func TestTheReportSaysThatTheMemberWasReadyInThisLife(t *testing.T) {
	scenario(t, func(t *testing.T, n *node) {
		p := &tellProber{now: probe.Health{Started: true}}
		n.prober = p
		n.run()
		n.w.Tell(with(life(5, records.GoalRun), probed))
		want := func(ready, once bool) {
			t.Helper()
			time.Sleep(time.Second)
			if r := n.last(); r.Ready != ready || r.ReadyOnce != once {
				t.Fatalf("got ready %v, once %v; want %v, %v", r.Ready, r.ReadyOnce, ready, once)
			}
		}
		want(false, false)
		p.say(probe.Health{Started: true, Ready: true})
		want(true, true)
		p.say(probe.Health{Started: true})
		want(false, true)
		n.kill() // the next agent knows it
		n.run()
		p.say(probe.Health{Started: true, Message: "not yet"})
		want(false, true)
		n.w.Tell(with(life(6, records.GoalRun), probed))
		want(false, false)
	})
}

func TestAnAdoptedMemberStaysReadyAndKeepsItsCounts(t *testing.T) {
	scenario(t, func(t *testing.T, n *node) {
		p := &tellProber{now: probe.Health{Started: true, Ready: true}}
		n.prober = p
		n.run()
		n.w.Tell(with(life(5, records.GoalRun), probed))
		n.wantReady()
		n.host.Exit(cid, runtime.Exit{Code: 1})
		n.wantReady()
		n.kill()
		silent := &silentProber{}
		n.prober = silent
		n.run()
		if r := n.wantReady(); r.Containers[0].Restarts != 1 {
			t.Fatalf("got %+v", r)
		}
		if !silent.target.Adopted || !silent.target.Health.Ready {
			t.Fatalf("target: got %+v", silent.target)
		}
		n.wantStarts(tok(5), 2)
		n.host.Exit(cid, runtime.Exit{Code: 1}) // the second in a row waits, also here
		n.wantStarts(tok(5), 2)
		n.kill()
		n.run()
		n.wantStarts(tok(5), 2)
		time.Sleep(11 * time.Second)
		n.wantStarts(tok(5), 3)
	})
}

type silentProber struct {
	noHooks
	target probe.Target
}

func (p *silentProber) Probe(ctx context.Context, t probe.Target, _ func(probe.Health)) {
	p.target = t
	<-ctx.Done()
}

// An agent that begins while the runtime is away leaves what was told to stand for a while
// only: the member may have ended meanwhile.
func TestARuntimeThatIsAwayChangesNothing(t *testing.T) {
	scenario(t, func(t *testing.T, n *node) {
		n.run()
		n.w.Tell(life(5, records.GoalRun))
		n.wantReady()
		n.host.Down(true)
		time.Sleep(10 * time.Second)
		n.wantLast("ready all the same", func(r records.Report) bool { return r.Ready && r.Cause == causes.RuntimeUnavailable })
		n.kill()
		before := len(n.all())
		n.run() // an agent that begins while the runtime is away
		time.Sleep(10 * time.Second)
		for _, r := range n.all()[before:] {
			if !r.Ready {
				t.Fatalf("said not ready of what it cannot see: %+v", r)
			}
		}
		time.Sleep(blindTime - 10*time.Second)
		n.wantLast("not ready, for nobody can see it", func(r records.Report) bool {
			return !r.Ready && r.ReadyOnce && r.Phase == records.PhaseRunning && r.Cause == causes.RuntimeUnavailable
		})
		n.host.Down(false)
		time.Sleep(5 * time.Second)
		n.wantLast("ready", func(r records.Report) bool { return r.Ready && r.Cause == "" })
		n.wantStarts(tok(5), 1)
		n.host.Down(true)
		n.host.Lose(cid)
		time.Sleep(10 * time.Second)
		n.host.Down(false)
		time.Sleep(5 * time.Second)
		n.wantReady()
		n.wantStarts(tok(5), 2)
	})
}

func TestAnOOMKillIsToldAsSuch(t *testing.T) {
	scenario(t, func(t *testing.T, n *node) {
		n.run()
		n.w.Tell(life(5, records.GoalRun))
		n.wantReady()
		for range 2 {
			n.host.Exit(cid, runtime.Exit{Code: 137, OOM: true})
			synctest.Wait()
		}
		n.wantLast("OOMKilled", func(r records.Report) bool { return r.Cause == "OOMKilled" && !r.Ready })
	})
}

func TestAStopBreaksOffAPull(t *testing.T) {
	scenario(t, func(t *testing.T, n *node) {
		n.host.OnCall(func(ctx context.Context, c fakert.Call) error {
			if c.Op == "EnsureImage" {
				<-ctx.Done()
				return ctx.Err()
			}
			return nil
		})
		n.run()
		n.w.Tell(life(5, records.GoalRun))
		synctest.Wait()
		n.w.Tell(life(5, records.GoalStop))
		n.wantStopped(tok(5))
	})
}

func TestALifeThatWasNeverOpenedIsNotBegunWithoutServer(t *testing.T) {
	scenario(t, func(t *testing.T, n *node) {
		dir := filepath.Join(n.dir, "run-b1", "lives", "default")
		doc, err := json.Marshal(life(5, records.GoalRun))
		must(t, err)
		must(t, os.MkdirAll(dir, 0o755))
		must(t, os.WriteFile(filepath.Join(dir, "db-0.json"), doc, 0o600))
		n.run()
		time.Sleep(time.Minute)
		n.wantStarts(tok(5), 0)
		n.w.Tell(life(5, records.GoalRun))
		n.wantReady()
	})
}

func TestAStopOutlastsTheAgent(t *testing.T) {
	scenario(t, func(t *testing.T, n *node) {
		n.host.OnStart(func(runtime.Container) fakert.Behaviour { return fakert.Behaviour{IgnoreTerm: true} })
		signals := 0
		n.host.OnCall(func(_ context.Context, c fakert.Call) error {
			if c.Op == "Signal" {
				signals++
			}
			return nil
		})
		n.run()
		n.w.Tell(life(5, records.GoalRun))
		n.wantReady()
		n.w.Over(tok(5))
		synctest.Wait()
		n.kill()
		n.run() // and no server says anything
		time.Sleep(25 * time.Second)
		n.wantLast("its grace", func(r records.Report) bool { return r.Phase == records.PhaseStopping })
		if got := n.host.RunningTokens(db0); len(got) != 1 {
			t.Fatal("it was killed before its grace was over")
		}
		time.Sleep(6 * time.Second)
		n.wantStopped(tok(5))
		if signals != 1 {
			t.Errorf("%d stop signals, want 1", signals)
		}
	})
}

func TestWhatTheLedgerDoesNotKnowIsLeftAlone(t *testing.T) {
	scenario(t, func(t *testing.T, n *node) {
		stranger(t, n.host, tok(9))
		n.run()
		n.w.Tell(life(10, records.GoalRun))
		time.Sleep(time.Minute)
		n.wantLast("stray", func(r records.Report) bool { return r.Cause == causes.Stray })
		if got := n.host.RunningTokens(db0); len(got) != 1 || got[0] != tok(9) {
			t.Fatalf("running: %v", got)
		}
	})
}

// stranger starts a container behind the agent's back.
func stranger(t *testing.T, h *fakert.Host, token spec.Token) {
	t.Helper()
	ctx := t.Context()
	h.AddImage("img:1")
	_, err := h.EnsureSandbox(ctx, runtime.Sandbox{ID: db0, Token: token, Hostname: "db-0"})
	must(t, err)
	must(t, h.Create(ctx, runtime.Container{ID: cid, Token: token, Image: "img:1"}))
	must(t, h.Start(ctx, cid))
}

func TestWhatIsLeftOfAClosedLifeIsClearedBeforeTheNext(t *testing.T) {
	scenario(t, func(t *testing.T, n *node) {
		n.run()
		must(t, n.ledger.CloseToken(db0, tok(9), "Stopped"))
		must(t, n.ledger.Stored(db0, tok(9)))
		n.kill()
		stranger(t, n.host, tok(9))
		n.run()
		n.w.Tell(life(10, records.GoalRun))
		n.wantReady()
		if got := n.host.RunningTokens(db0); len(got) != 1 || got[0] != tok(10) {
			t.Fatalf("running: %v", got)
		}
	})
}

func TestStoppedIsNotToldWhileScratchIsMounted(t *testing.T) {
	scenario(t, func(t *testing.T, n *node) {
		n.run()
		n.w.Tell(with(life(5, records.GoalRun), func(l *records.Life) {
			l.Template.Spec.Volumes = []spec.VolumeMedia{{Name: "tmp", EmptyDir: &spec.EmptyDir{Medium: "Memory"}}}
		}))
		n.wantReady()
		var stuck atomic.Bool
		stuck.Store(true)
		n.host.OnCall(func(_ context.Context, c fakert.Call) error {
			if c.Op == "Clean" && stuck.Load() {
				return os.ErrPermission // a mount that cannot be looked at
			}
			return nil
		})
		n.w.Tell(life(5, records.GoalStop))
		time.Sleep(time.Minute)
		n.wantLast("stopping", func(r records.Report) bool { return r.Phase == records.PhaseStopping && r.Cause != "" })
		stuck.Store(false)
		time.Sleep(2 * time.Minute)
		n.wantStopped(tok(5))
	})
}

func TestChangedConfigMapsReachARunningMember(t *testing.T) {
	scenario(t, func(t *testing.T, n *node) {
		put := func(rev int64, text string) {
			n.book.Put(false, []records.Files{{
				Kind: files.KindConfigMap, Namespace: "default", Name: "etc", Sequence: spec.Sequence{Epoch: 1, Rev: rev},
				Content: map[string]scalar.Bytes{"conf": scalar.Bytes(text)},
			}})
		}
		put(1, "one")
		n.run()
		n.w.Tell(with(life(5, records.GoalRun), func(l *records.Life) {
			l.Template.Spec.Volumes = []spec.VolumeMedia{{Name: "etc", ConfigMap: &spec.ConfigMapVolume{Name: "etc"}}}
		}))
		n.wantReady()
		path := filepath.Join(n.dir, "run-b1", "files", "default", "db-0", "etc", "conf")
		for rev, text := range []string{"one", "two"} {
			put(int64(rev+1), text)
			n.w.FilesChanged()
			time.Sleep(2 * time.Second)
			got, err := os.ReadFile(path)
			if err != nil || string(got) != text {
				t.Fatalf("got %q, %v, want %q", got, err, text)
			}
		}
		n.wantStarts(tok(5), 1)
	})
}

func TestAnOlderTokenThanTheOneDealtWithIsAnswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNode(t)
		n.run()
		n.w.Tell(life(5, records.GoalRun))
		n.wantReady()
		n.w.Tell(life(4, records.GoalRun)) // a restored store knows no better
		n.wantStopped(tok(4))
		n.w.Tell(life(5, records.GoalStop))
		n.wantLast("stopped", func(r records.Report) bool { return r.Token == tok(5) && r.Phase.Over() })
		n.wantStarts(tok(4), 0)
	})
}

func TestAvailabilityIsToldAnewWhenItsTimeWasChanged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNode(t)
		n.run()
		n.w.Tell(life(5, records.GoalRun))
		n.wantReady()
		n.kill()
		time.Sleep(10 * time.Second)
		n.run() // it reports ten seconds, which say nothing new while none are asked for
		n.w.Tell(life(5, records.GoalRun))
		n.wantReady()
		before := len(n.reports)
		n.w.Tell(with(life(5, records.GoalRun), func(l *records.Life) { l.MinReadySeconds = 5 }))
		if r := n.wantReady(); len(n.reports) == before || r.ReadyFor < 5*time.Second {
			t.Fatalf("nothing was told of %+v", r)
		}
	})
}
