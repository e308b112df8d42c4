package worker

import (
	"log/slog"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stead-project/stead/agent/files"
	"github.com/stead-project/stead/agent/runtime"
	"github.com/stead-project/stead/agent/runtime/fakert"
	"github.com/stead-project/stead/records"
)

func TestAnAgentWithoutTroubleWarnsOfNothing(t *testing.T) {
	scenario(t, func(t *testing.T, n *node) {
		var log strings.Builder
		confirmed := atomic.Int64{}
		confirmed.Store(int64(time.Minute))
		n.change = func(c *Config) {
			c.Logger = slog.New(slog.NewTextHandler(&log, nil))
		}
		n.pictures = func(c *files.SetFilesConfig) {
			c.Confirmed = func() time.Duration { return time.Duration(confirmed.Load()) }
		}
		n.run()
		n.w.Tell(life(5, records.GoalRun))
		n.wantReady()
		confirmed.Add(int64(time.Minute))
		n.sets.ConfirmedMoved()
		n.w.Confirmed()
		time.Sleep(time.Hour)
		n.w.Tell(life(6, records.GoalRun))
		time.Sleep(time.Hour)
		n.w.Tell(life(6, records.GoalStop))
		n.wantStopped(tok(6))
		if text := log.String(); strings.Contains(text, "WARN") || strings.Contains(text, "container runtime") {
			t.Error(text)
		}
	})
}

func TestARuntimeThatIsAwayIsTriedEachSecondAndNamedOnce(t *testing.T) {
	scenario(t, func(t *testing.T, n *node) {
		var log strings.Builder
		n.change = func(c *Config) { c.Logger = slog.New(slog.NewTextHandler(&log, nil)) }
		n.run()
		n.w.Tell(life(5, records.GoalRun))
		n.wantReady()
		calls := n.count(nil)
		n.host.Down(true)
		time.Sleep(time.Minute)
		if got := calls.of("Status", "Wait"); got < 50 || got > 70 {
			t.Errorf("asked %d times in a minute", got)
		}
		n.host.Down(false)
		time.Sleep(2 * time.Second)
		n.wantLast("no trouble", func(r records.Report) bool { return r.Ready && r.Cause == "" })
		if got := strings.Count(log.String(), "container runtime"); got != 2 {
			t.Errorf("logged %d times:\n%s", got, &log)
		}

		// It misses one look in between; nobody says when it is back.
		var missed atomic.Bool
		n.count(func(c fakert.Call) error {
			if c.Op == "Status" && missed.CompareAndSwap(false, true) {
				return runtime.ErrUnavailable
			}
			return nil
		})
		for !missed.Load() {
			time.Sleep(time.Second)
		}
		time.Sleep(2 * time.Second)
		n.wantLast("no trouble", func(r records.Report) bool { return r.Ready && r.Cause == "" })
	})
}

func TestAFailureIsLoggedOnceUntilItChanges(t *testing.T) {
	scenario(t, func(t *testing.T, n *node) {
		var log strings.Builder
		n.change = func(c *Config) { c.Logger = slog.New(slog.NewTextHandler(&log, nil)) }
		n.run()
		for i, err := range []error{os.ErrPermission, os.ErrClosed} {
			n.count(func(c fakert.Call) error {
				if c.Op == "Attach" {
					return err
				}
				return nil
			})
			n.w.Tell(life(5, records.GoalRun))
			time.Sleep(10 * time.Minute)
			synctest.Wait()
			if got := strings.Count(log.String(), "operation failed"); got != i+1 {
				t.Errorf("logged %d times, want %d:\n%s", got, i+1, &log)
			}
		}
	})
}
