package worker

import (
	"strings"
	"testing"
	"time"

	"github.com/stead-project/stead/agent/logs"
	"github.com/stead-project/stead/agent/runtime"
	"github.com/stead-project/stead/agent/runtime/fakert"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec/causes"
)

func TestTheLastLineIsToldOfAnExitAlone(t *testing.T) {
	for _, c := range []struct {
		name   string
		exit   runtime.Exit
		quoted bool
	}{
		{"a program that gave up says why", runtime.Exit{Code: 2}, true},
		{"one that was killed could not", runtime.Exit{Code: 137, OOM: true}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			scenario(t, func(t *testing.T, n *node) {
				n.host.OnStart(func(made runtime.Container) fakert.Behaviour {
					w := n.logger(made.Attempt)
					must(t, w.Copy("stderr", strings.NewReader("listening\n")))
					w.Close()
					return fakert.Behaviour{}
				})
				n.run()
				n.w.Tell(life(5, records.GoalRun))
				for range 2 {
					n.wantReady()
					n.host.Exit(cid, c.exit)
				}
				r := n.wantLast("not ready", func(r records.Report) bool { return !r.Ready })
				if strings.Contains(r.Message, `"listening"`) != c.quoted {
					t.Errorf("got %q", r.Message)
				}
			})
		})
	}
}

// The grace of a member is its own; nobody reads the last line of what was told to stop.
func TestAStopDoesNotWaitForTheLogger(t *testing.T) {
	scenario(t, func(t *testing.T, n *node) {
		var logger *logs.Writer
		n.host.OnStart(func(made runtime.Container) fakert.Behaviour {
			logger = n.logger(made.Attempt)
			return fakert.Behaviour{TermCode: 1}
		})
		n.run()
		n.w.Tell(life(5, records.GoalRun))
		n.wantReady()
		defer logger.Close()
		n.w.Tell(life(5, records.GoalStop))
		n.wantStopped(tok(5)) // at once, on the bubble's clock
	})
}

func TestALoggerMayBeAwayForAMoment(t *testing.T) {
	scenario(t, func(t *testing.T, n *node) {
		n.tuning.Look = loggerDeadAfter
		n.run()
		n.w.Tell(life(5, records.GoalRun))
		n.wantReady()
		n.logger(0).Close()
		time.Sleep(loggerDeadAfter) // the first look after its death
		n.wantLast("no trouble", func(r records.Report) bool { return r.Ready && r.Cause == "" })
		time.Sleep(loggerDeadAfter)
		n.wantLast("what is lost", func(r records.Report) bool { return r.Ready && r.Cause == causes.LogLost })
	})
}

func TestCut(t *testing.T) {
	for _, c := range []struct {
		text string
		most int
		want string
	}{
		{"", 3, ""},
		{"abc", 3, "abc"},
		{"abcd", 3, "abc…"},
		{"aéé", 2, "a…"},
		{"aéé", 3, "aé…"},
		{"é", 1, "…"},
		{"\x80\x80", 1, "…"},
	} {
		if got := cut(c.text, c.most); got != c.want {
			t.Errorf("cut(%q, %d): got %q, want %q", c.text, c.most, got, c.want)
		}
	}
}
