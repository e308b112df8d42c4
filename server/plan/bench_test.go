package plan

import (
	"fmt"
	"testing"
)

// BenchmarkNext is one step of a set at rest, and of one whose last member is to
// start: what each report of a large set costs.
func BenchmarkNext(b *testing.B) {
	for _, n := range []int{3, 100, 1000, 10000} {
		for _, state := range []string{"rest", "last"} {
			b.Run(fmt.Sprint(state, n), func(b *testing.B) {
				line := fmt.Sprint("ordered ", n, " n1")
				present := n
				if state == "last" {
					present--
				}
				for i := range present {
					line += fmt.Sprintf(" %d:ready", i)
				}
				w := world(b, line)
				w.Table = n <= 100
				b.ReportAllocs()
				for b.Loop() {
					Next(w)
				}
			})
		}
	}
}
