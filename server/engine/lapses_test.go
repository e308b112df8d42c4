package engine

import (
	"testing"
	"time"

	"github.com/stead-project/stead/server/plan"
	"github.com/stead-project/stead/spec"
)

func TestALapseIsMeasuredFromWhenItWasFirstSeen(t *testing.T) {
	id, life, other := spec.Identity{Set: "db"}, spec.Token{Epoch: 1, Number: 5}, spec.Token{Epoch: 1, Number: 6}
	began := time.Now()
	l := lapses{}
	steps := []struct {
		name   string
		after  time.Duration
		ready  bool
		token  spec.Token // of the report
		was    spec.Token // the newest life that was ready
		phase  spec.Phase
		want   time.Duration
		listed bool
	}{
		{"not ready yet in this life", 0, false, life, spec.Token{}, spec.PhaseRunning, 0, false},
		{"ready", time.Second, true, life, life, spec.PhaseRunning, 0, false},
		{"not ready any more", 2 * time.Second, false, life, life, spec.PhaseRunning, 0, true},
		{"for a while", 9 * time.Second, false, life, life, spec.PhaseRunning, 7 * time.Second, true},
		{"ready again", 10 * time.Second, true, life, life, spec.PhaseRunning, 0, false},
		{"it counts anew", 12 * time.Second, false, life, life, spec.PhaseRunning, 0, true},
		{"another life counts its own", 19 * time.Second, false, other, other, spec.PhaseRunning, 0, true},
		{"another life has not been ready", 20 * time.Second, false, other, life, spec.PhaseRunning, 0, false},
		{"one that stops is none", 30 * time.Second, false, life, life, spec.PhaseStopping, 0, false},
	}
	for _, s := range steps {
		w := plan.World{Slots: []plan.Slot{{
			ID: id, Identity: &spec.IdentityRecord{ID: id, ReadyToken: s.was},
			Report: &spec.Report{ID: id, Token: s.token, Phase: s.phase, Ready: s.ready},
		}}}
		got, listed := l.unready(w, began.Add(s.after))[id]
		if got != s.want || listed != s.listed {
			t.Errorf("%s: got %s (%v); want %s (%v)", s.name, got, listed, s.want, s.listed)
		}
	}
}
