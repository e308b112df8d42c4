//go:build race

package sim

// quick: under the race detector a run takes ten times as long, and has one goroutine.
const quick = true
