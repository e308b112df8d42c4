package bench

import (
	"fmt"
	"testing"
	"time"
)

// guardRuns is how often each workload of BenchmarkGuard is run; the least of each figure counts, for
// what else a machine does only adds to it.
const guardRuns = 3

// guardRest is how long the store must rest before a phase counts as over, so that what is written
// behind it counts.
const guardRest = time.Second

// guardParallel is how many members are created in parallel: with fewer, how they fall together is
// chance.
const guardParallel = 500

// BenchmarkGuard are small workloads of which nothing is timed: `make bench-guard` compares what
// is counted with what was.
func BenchmarkGuard(b *testing.B) {
	for _, size := range []scaled{{"light", 10, 100}, {"agent", 1, 100}} {
		b.Run(fmt.Sprintf("%s/%dx%d", size.kind, size.hosts, size.members), func(b *testing.B) {
			var names []string
			least := map[string]map[string]float64{}
			for range guardRuns {
				b.Run("run", func(b *testing.B) {
					names = nil
					h := newApart(b, size.kind, size.hosts)
					for _, p := range h.fourPhases(size.members, guardParallel) {
						names = append(names, p.name)
						keepLeast(least, p.name, h.measure(p, guardRest).counted())
					}
					for b.Loop() {
					}
				})
			}
			for _, name := range names {
				b.Run(name, func(b *testing.B) {
					for b.Loop() {
					}
					b.ReportMetric(0, "ns/op")
					for unit, figure := range least[name] {
						b.ReportMetric(figure, unit)
					}
				})
			}
		})
	}
}

func keepLeast(least map[string]map[string]float64, name string, figures map[string]float64) {
	if least[name] == nil {
		least[name] = figures
	}
	for unit, figure := range figures {
		least[name][unit] = min(least[name][unit], figure)
	}
}
