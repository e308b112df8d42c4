// Package judge is how tests on real hosts say that a promise of Stead was broken, and
// not only that something came late or otherwise than expected: two lives of one member,
// an acknowledged write or a volume lost, a member touched that nobody concerned, a
// Secret in clear, something left behind on a host. The runner (scripts/gotest) gives a
// test that fails a second chance, but never one that said such a thing: a safety that
// holds at the second try does not hold.
package judge

import "fmt"

// Marker begins what a judge says.
const Marker = "SAFETY:"

// Final are the words in a failed test's output that no second run can take back:
// those of judges, of the Go runtime, of the race detector, and of e2e's sweep, which
// found what a killed program left on the host.
var Final = []string{Marker, "panic:", "fatal error:", "WARNING: DATA RACE", "an abandoned lab"}

// T is what a judge needs of a test.
type T interface {
	Helper()
	Error(args ...any)
}

// Broken fails a test for good: a promise was broken, as the format says.
func Broken(t T, format string, args ...any) {
	t.Helper()
	t.Error(Marker + " " + fmt.Sprintf(format, args...))
}
