//go:build race

package plan

// quick: under the race detector a world takes ten times as long, and has one goroutine.
const quick = true
