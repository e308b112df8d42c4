// Command gotest runs `go test -json` with the arguments given, prints one line a
// package and the whole output of what failed, and counts. With -skips FILE a
// skipped test fails the run unless a line of FILE occurs in its skip message. With
// -again DIR a test that failed is run once more, alone, when that may have been luck
// (see Chances); if it passes then, the run goes on, the test is told as FLAKY, and
// what it said first is kept in DIR. The slowest tests are named:
//
//	gotest [-skips test/e2e/SKIPS] [-again .cache/flaky] [go test flags] packages
//
// It exits 0 when all passed, 1 when not, 2 on wrong use.
package main

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"
)

// mostSlow bounds the slow tests that are named.
const mostSlow = 15

// runner is one call of gotest.
type runner struct {
	skips   string   // file of allowed skips; empty: all are
	allowed []string // its lines
	again   string   // directory for what flaky tests said; empty: no test has a second chance
	args    []string // of go test
	dir     string   // it runs there; empty: here
	out     io.Writer
}

func main() {
	r := runner{args: os.Args[1:], out: os.Stdout}
	for len(r.args) >= 2 && (r.args[0] == "-skips" || r.args[0] == "-again") {
		if r.args[0] == "-skips" {
			r.skips = r.args[1]
		} else {
			r.again = r.args[1]
		}
		r.args = r.args[2:]
	}
	if len(r.args) == 0 {
		fmt.Fprintln(os.Stderr, "usage: gotest [-skips FILE] [-again DIR] [go test flags] packages")
		os.Exit(2)
	}
	if r.skips != "" {
		list, err := os.ReadFile(r.skips)
		if err != nil && !os.IsNotExist(err) {
			fmt.Fprintln(os.Stderr, "gotest:", err)
			os.Exit(2)
		}
		r.allowed = ParseSkips(string(list))
	}
	if !r.run() {
		os.Exit(1)
	}
}

// run runs the tests to their end, some once more, and reports whether all is well.
func (r *runner) run() bool {
	began := time.Now()
	sum, err := r.test(r.args)
	if r.again != "" && err == nil && sum.Failed > 0 {
		r.secondChances(sum)
	}
	unlisted := r.tellSkips(sum)
	for _, f := range sum.Flaky {
		fmt.Fprintf(r.out, "FLAKY %s: it failed, and passed when it was run again alone; what it said first is in %s\n", f.name(), r.kept(f))
	}
	for _, t := range sum.Slow[:min(len(sum.Slow), mostSlow)] {
		fmt.Fprintf(r.out, "slow %-60s %6.1fs\n", t.Test, t.Seconds)
	}
	flaky := ""
	if len(sum.Flaky) > 0 {
		flaky = fmt.Sprintf("%d FLAKY, ", len(sum.Flaky))
	}
	fmt.Fprintf(r.out, "%d passed, %d failed, %s%d skipped in %s\n",
		sum.Passed, sum.Failed, flaky, len(sum.Skips), time.Since(began).Round(100*time.Millisecond))
	switch {
	case err != nil:
		fmt.Fprintln(r.out, "FAIL:", err)
	case sum.Failed > 0 || sum.BrokenPackages > 0:
		fmt.Fprintln(r.out, "FAIL:", strings.Join(sum.FailedNames, " "))
	case unlisted > 0:
		fmt.Fprintf(r.out, "FAIL: %d tests were skipped whose need is not listed in the skips file\n", unlisted)
	case sum.Passed+len(sum.Skips)+len(sum.Flaky) == 0:
		fmt.Fprintln(r.out, "FAIL: not a single test ran")
	default:
		return true
	}
	return false
}

// test runs go test with args. The error says that it failed without naming a test or
// a package.
func (r *runner) test(args []string) (*Summary, error) {
	sum := NewSummary(r.out)
	cmd := exec.Command("go", append([]string{"test", "-json"}, args...)...)
	cmd.Stderr, cmd.Dir = os.Stderr, r.dir
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return sum, err
	}
	readErr := sum.Read(out)
	if readErr != nil { // go test must not block on a full pipe
		_, _ = io.Copy(io.Discard, out)
	}
	waitErr := cmd.Wait()
	switch {
	case readErr != nil:
		return sum, fmt.Errorf("the output of go test could not be read: %w", readErr)
	case waitErr != nil && sum.Failed == 0 && sum.BrokenPackages == 0:
		return sum, fmt.Errorf("go test: %w", waitErr)
	}
	return sum, nil
}

// tellSkips names the skipped tests, when there is a list, and counts those that are
// not on it.
func (r *runner) tellSkips(sum *Summary) (unlisted int) {
	for _, s := range sum.Skips {
		switch {
		case r.skips == "":
		case Allowed(s.Message, r.allowed):
			fmt.Fprintf(r.out, "skipped %s: %s\n", s.Test, s.Message)
		default:
			unlisted++
			fmt.Fprintf(r.out, "SKIPPED %s: %s\n", s.Test, s.Message)
		}
	}
	return unlisted
}
