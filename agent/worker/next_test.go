package worker

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stead-project/stead/agent/step"
	"github.com/stead-project/stead/records"
)

func TestAWorkerSleepsUntilTheNextThingThatIsDue(t *testing.T) {
	const never = time.Duration(-1)
	open := func(w *Worker) { w.standing = step.Open }
	ahead := func(d time.Duration) time.Time { return time.Now().Add(d) }
	ready := func(minReady int32, told records.Report) func(*Worker) {
		return func(w *Worker) {
			w.life, w.last, w.state.ReadySince = &records.Life{MinReadySeconds: minReady}, &told, w.c.Clock()-4*time.Second
		}
	}
	for _, c := range []struct {
		name  string
		there []func(*Worker)
		want  time.Duration
	}{
		{"nothing is due where nothing runs", nil, never},
		{"what runs is looked at", []func(*Worker){open}, 30 * time.Second},
		{"so is what is strange", []func(*Worker){func(w *Worker) { w.unknownContainer = "a container" }}, 30 * time.Second},
		{"and what is left of no life", []func(*Worker){func(w *Worker) { w.processesLeft = true }}, 30 * time.Second},
		{"a runtime that is away is tried soon", []func(*Worker){open, func(w *Worker) { w.runtimeDown = true }}, time.Second},
		{"what failed is tried again", []func(*Worker){open, func(w *Worker) {
			w.held[holdKey{step.OpenToken, ""}] = &hold{until: ahead(20 * time.Second)}
			w.held[holdKey{step.EnsureVolumes, ""}] = &hold{until: ahead(3 * time.Second)}
			w.held[holdKey{step.WriteFiles, ""}] = &hold{until: ahead(25 * time.Second)}
		}}, 3 * time.Second},
		{"a back-off ends", []func(*Worker){open, func(w *Worker) { w.containers["db"].due = ahead(4 * time.Second) }}, 4 * time.Second},
		{"so does an unhealthy container's time to end", []func(*Worker){open, func(w *Worker) { w.containers["db"].deadline = ahead(5 * time.Second) }}, 5 * time.Second},
		{"a watch begins anew", []func(*Worker){open, func(w *Worker) { w.containers["db"].rewatch = ahead(6 * time.Second) }}, 6 * time.Second},
		{"the grace is over", []func(*Worker){open, func(w *Worker) { w.stopAt = ahead(7 * time.Second) }}, 7 * time.Second},
		{"what is past wakes nobody", []func(*Worker){open, func(w *Worker) {
			past := ahead(-time.Second)
			w.held[holdKey{step.EnsureVolumes, ""}] = &hold{until: past}
			w.containers["db"].due, w.containers["db"].deadline, w.containers["db"].rewatch, w.stopAt = past, past, past, past
		}}, 30 * time.Second},
		{"files are written again", []func(*Worker){open, func(w *Worker) { w.rewriteFiles = ahead(8 * time.Second) }}, 8 * time.Second},
		{"the watchdog is asked soon", []func(*Worker){func(w *Worker) { w.guardWait = true }}, guardAgain},
		{"a ready member becomes available", []func(*Worker){open, ready(10, records.Report{Ready: true})}, 6 * time.Second},
		{"one that is late to be told so is told now", []func(*Worker){open, ready(3, records.Report{Ready: true})}, 0},
		{"one that was told so is not told again", []func(*Worker){open, ready(3, records.Report{Ready: true, ReadyFor: 3 * time.Second})}, 30 * time.Second},
		{"one that is not ready does not", []func(*Worker){open, ready(10, records.Report{})}, 30 * time.Second},
		{"nor one of which nothing was told", []func(*Worker){open, ready(10, records.Report{}), func(w *Worker) { w.last = nil }}, 30 * time.Second},
		{"nor one of a life that is not known", []func(*Worker){open, ready(10, records.Report{Ready: true}), func(w *Worker) { w.life = nil }}, 30 * time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := &Worker{subject: &subject{
					mailbox: &mailbox{c: &Config{Tuning: Tuning{}.Filled(), Now: time.Now, Clock: func() time.Duration { return time.Hour }}},
					held:    map[holdKey]*hold{}, containers: map[string]*container{"db": {}, "side": {}}, lookedAt: time.Now(),
				}}
				for _, there := range c.there {
					there(w)
				}
				got := never
				if at := w.next(); !at.IsZero() {
					got = time.Until(at)
				}
				if got != c.want {
					t.Errorf("got %s, want %s", got, c.want)
				}
			})
		})
	}
}
