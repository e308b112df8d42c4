// Command gotest runs `go test -json` with the arguments given, prints one line a
// package and the whole output of what failed, and counts. With -skips FILE a
// skipped test fails the run unless a line of FILE occurs in its skip message:
//
//	gotest [-skips test/e2e/SKIPS] [go test flags] packages
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

func main() {
	args := os.Args[1:]
	var allowed []string
	strict := false
	if len(args) >= 2 && args[0] == "-skips" {
		strict = true
		list, err := os.ReadFile(args[1])
		if err != nil && !os.IsNotExist(err) {
			fmt.Fprintln(os.Stderr, "gotest:", err)
			os.Exit(2)
		}
		allowed, args = ParseSkips(string(list)), args[2:]
	}
	if len(args) == 0 {
		fmt.Fprintln(os.Stderr, "usage: gotest [-skips FILE] [go test flags] packages")
		os.Exit(2)
	}
	if !run(args, strict, allowed) {
		os.Exit(1)
	}
}

// run runs the tests to their end and reports whether all is well.
func run(args []string, strict bool, allowed []string) bool {
	began := time.Now()
	cmd := exec.Command("go", append([]string{"test", "-json"}, args...)...)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "gotest:", err)
		return false
	}
	sum := NewSummary(os.Stdout)
	readErr := sum.Read(out)
	if readErr != nil { // go test must not block on a full pipe
		_, _ = io.Copy(io.Discard, out)
	}
	waitErr := cmd.Wait()

	unlisted := 0
	for _, s := range sum.Skips {
		switch {
		case !strict:
		case Allowed(s.Message, allowed):
			fmt.Printf("skipped %s: %s\n", s.Test, s.Message)
		default:
			unlisted++
			fmt.Printf("SKIPPED %s: %s\n", s.Test, s.Message)
		}
	}
	fmt.Printf("%d passed, %d failed, %d skipped in %s\n",
		sum.Passed, sum.Failed, len(sum.Skips), time.Since(began).Round(100*time.Millisecond))
	switch {
	case readErr != nil:
		fmt.Println("FAIL: the output of go test could not be read:", readErr)
	case waitErr != nil && sum.Failed == 0 && sum.BrokenPackages == 0:
		fmt.Println("FAIL: go test:", waitErr)
	case sum.Failed > 0 || sum.BrokenPackages > 0 || waitErr != nil:
		fmt.Println("FAIL:", strings.Join(sum.FailedNames, " "))
	case unlisted > 0:
		fmt.Printf("FAIL: %d tests were skipped whose need is not listed in the skips file\n", unlisted)
	case sum.Passed+len(sum.Skips) == 0:
		fmt.Println("FAIL: not a single test ran")
	default:
		return true
	}
	return false
}
