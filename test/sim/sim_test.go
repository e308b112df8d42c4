package sim

import (
	"testing"
)

func TestSim(t *testing.T) {
	steps := 0
	counts := map[string]int{}
	for seed := range uint64(300) {
		w := New(seed, Plant{})
		var log []string
		w.Trace = func(s string) { log = append(log, s) }
		if v := w.Run(1200); v != nil {
			for _, l := range log[max(0, len(log)-30):] {
				t.Log(l)
			}
			t.Fatalf("seed %d: %v", seed, v)
		}
		steps += w.Steps
		for k, n := range w.Counts {
			counts[k] += n
		}
	}
	t.Log(steps, counts)
}
