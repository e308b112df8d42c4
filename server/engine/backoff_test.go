package engine

import (
	"testing"
	"time"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
)

func TestARestGrowsWithEachFailureAndIsForgotten(t *testing.T) {
	id, began := member(0), time.Unix(1000, 0)
	failed, runs := &records.Report{Phase: records.PhaseFailed}, &records.Report{Phase: records.PhaseRunning}
	for _, c := range []struct {
		name   string
		begun  []time.Duration // when lives began in the place of failed ones
		at     time.Duration   // after the last
		report *records.Report // of the life then
		want   time.Duration
	}{
		{"nothing failed", nil, 0, failed, 0},
		{"the first try", []time.Duration{0}, 0, failed, time.Second},
		{"half of the rest is over", []time.Duration{0}, 500 * time.Millisecond, failed, 500 * time.Millisecond},
		{"the rest is over", []time.Duration{0}, time.Second, failed, 0},
		{"the third", []time.Duration{0, 0, 0}, 0, failed, 4 * time.Second},
		{"one of many", make([]time.Duration, 50), 0, failed, longRest},
		{"the last but one was so long ago", []time.Duration{0, forgetRest}, 0, failed, 2 * time.Second},
		{"and longer", []time.Duration{0, forgetRest + 1}, 0, failed, time.Second},
		{"it runs", []time.Duration{0}, 0, runs, 0},
		{"it has not said anything", []time.Duration{0}, 0, nil, 0},
	} {
		tries := replaceBackoff{}
		now := began
		for _, at := range c.begun {
			now = began.Add(at)
			tries.replaced(id, now)
		}
		reports := map[spec.Identity]*records.Report{member(1): failed, id: c.report}
		rests := tries.waits(func(id spec.Identity) *records.Report { return reports[id] }, now.Add(c.at))
		want := 1
		if c.want == 0 {
			want = 0
		}
		if rests[id] != c.want || len(rests) != want {
			t.Errorf("%s: rests %v, want %s", c.name, rests, c.want)
		}
	}
}

func TestEachOfManyFailedLivesRests(t *testing.T) {
	tries, now := replaceBackoff{}, time.Unix(1000, 0)
	reports := map[spec.Identity]*records.Report{}
	of := func(id spec.Identity) *records.Report { return reports[id] }
	for i := range 3 {
		tries.replaced(member(i), now)
		reports[member(i)] = &records.Report{Phase: records.PhaseFailed}
	}
	if rests := tries.waits(of, now); len(rests) != 3 {
		t.Errorf("rests %v, want three", rests)
	}
	reports[member(0)] = &records.Report{Phase: records.PhaseRunning, Ready: true}
	tries.waits(of, now)
	reports[member(0)] = &records.Report{Phase: records.PhaseFailed}
	if rests := tries.waits(of, now); rests[member(0)] != 0 || len(rests) != 2 {
		t.Errorf("rests %v; want none for the one that was ready meanwhile", rests)
	}
}
