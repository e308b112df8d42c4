package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/stead-project/stead/test/judge"
)

// mostAgain is how many failed tests of one run may have been luck.
const mostAgain = 2

// Failure is a test that failed, with its subtests.
type Failure struct {
	Package, Test string // Test has no slash in it
	Output        string // all that it and its failed subtests said
}

func (f Failure) name() string { return short(f.Package) + "/" + f.Test }

// Chances lists the failed tests that may be run once more, or says why none may: they
// are too many to be luck, something other than a test failed, or one of them said what
// no second run takes back (judge.Final).
func (s *Summary) Chances() (tests []Failure, why string) {
	switch {
	case s.BrokenPackages > 0:
		return nil, "a package failed outside of its tests"
	case len(s.Unended) > 0:
		return nil, "these did not end: " + strings.Join(s.Unended, " ")
	case len(s.Failures) > mostAgain:
		return nil, fmt.Sprintf("%d tests failed, and more than %d cannot be luck", len(s.Failures), mostAgain)
	}
	for _, word := range judge.Final {
		if strings.Contains(s.rest, word) {
			return nil, fmt.Sprintf("a package says %q", word)
		}
		for _, f := range s.Failures {
			if strings.Contains(f.Output, word) {
				return nil, fmt.Sprintf("%s says %q", f.name(), word)
			}
		}
	}
	return s.Failures, ""
}

// Forgive counts a failed test as flaky instead.
func (s *Summary) Forgive(f Failure) {
	before := len(s.FailedNames)
	s.FailedNames = slices.DeleteFunc(s.FailedNames, func(name string) bool {
		return name == f.name() || strings.HasPrefix(name, f.name()+"/")
	})
	s.Failed -= before - len(s.FailedNames)
	s.Flaky = append(s.Flaky, f)
}

// secondChances runs what failed once more, each test alone.
func (r *runner) secondChances(sum *Summary) {
	tests, why := sum.Chances()
	if why != "" {
		fmt.Fprintln(r.out, "no second chance:", why)
		return
	}
	for _, f := range slices.Clone(tests) {
		err := os.MkdirAll(r.again, 0o755)
		if err == nil {
			err = os.WriteFile(r.kept(f), []byte(f.Output), 0o600)
		}
		if err != nil {
			fmt.Fprintln(r.out, "no second chance:", err)
			return
		}
		fmt.Fprintf(r.out, "\n%s failed; it is run once more, alone\n", f.name())
		second, err := r.test(alone(r.args, f))
		if err == nil && second.Passed > 0 && second.Failed == 0 && second.BrokenPackages == 0 && len(second.Skips) == 0 {
			sum.Forgive(f)
		}
	}
}

// kept is the file that holds what a test said when it failed.
func (r *runner) kept(f Failure) string {
	return filepath.Join(r.again, strings.ReplaceAll(short(f.Package), "/", ".")+"."+f.Test)
}

// alone are go test's arguments for one test of those it ran.
func alone(args []string, f Failure) []string {
	args = slices.DeleteFunc(slices.Clone(args), func(a string) bool { // packages
		return a == "." || strings.HasPrefix(a, "./") || strings.HasPrefix(a, module)
	})
	return append(args, "-count=1", "-run", "^"+f.Test+"$", f.Package)
}
