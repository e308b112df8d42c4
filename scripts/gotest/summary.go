package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
)

// event is one line of `go test -json` (go doc test2json).
type event struct {
	Action     string
	Package    string
	ImportPath string // of build-output
	Test       string
	Elapsed    float64
	Output     string
}

// Skip is one skipped test and what it said.
type Skip struct {
	Test    string // package/TestName
	Message string
}

// slowFrom is how many seconds a test takes that is worth a look.
const slowFrom = 10

// Slow is a test that took long.
type Slow struct {
	Test    string // package/TestName
	Seconds float64
}

// Summary is what a run of go test came to. Tests that only group others are not
// counted apart from them, unless they fail by themselves.
type Summary struct {
	Passed, Failed int
	// BrokenPackages failed outside of any test: build, vet, panic, time-out.
	BrokenPackages int
	FailedNames    []string
	Skips          []Skip
	Failures       []Failure // each test with its subtests as one
	Flaky          []Failure // of them those that passed at a second run
	Unended        []string  // tests of failed packages that neither passed nor failed
	Slow           []Slow    // tests, with their subtests, that took slowFrom or longer, the slowest first

	out     io.Writer
	output  map[string][]string // by package and test, until it passed
	counts  map[string]int      // tests run, by package
	failed  map[string]bool     // packages with a failed test
	parent  map[string]bool     // tests that have subtests
	started map[string]string   // names of tests that have not ended, by package and test
	rest    string              // what failed packages said outside of tests that ended
}

// NewSummary writes progress to out.
func NewSummary(out io.Writer) *Summary {
	return &Summary{
		out: out, output: map[string][]string{}, counts: map[string]int{},
		failed: map[string]bool{}, parent: map[string]bool{}, started: map[string]string{},
	}
}

// Read takes events until the end of r.
func (s *Summary) Read(r io.Reader) error {
	lines := bufio.NewReader(r)
	for {
		line, err := lines.ReadBytes('\n')
		if len(line) > 0 {
			var e event
			if json.Unmarshal(line, &e) != nil {
				fmt.Fprint(s.out, string(line)) // not ours: show it
			} else {
				s.Take(e)
			}
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// Take counts one event.
func (s *Summary) Take(e event) {
	key := e.Package + " " + e.Test
	switch e.Action {
	case "output":
		s.output[key] = append(s.output[key], e.Output)
	case "build-output":
		fmt.Fprint(s.out, e.Output)
	case "run":
		s.started[key] = short(e.Package) + "/" + e.Test
		for i, c := range e.Test {
			if c == '/' {
				s.parent[e.Package+" "+e.Test[:i]] = true
			}
		}
	case "pass", "fail", "skip":
		if e.Test == "" {
			s.takePackage(e)
		} else {
			s.takeTest(e, key)
		}
		delete(s.output, key)
		delete(s.started, key)
	}
}

func (s *Summary) takeTest(e event, key string) {
	name := short(e.Package) + "/" + e.Test
	if e.Elapsed >= slowFrom && !strings.Contains(e.Test, "/") {
		s.Slow = append(s.Slow, Slow{name, e.Elapsed})
		slices.SortStableFunc(s.Slow, func(a, b Slow) int { return cmp.Compare(b.Seconds, a.Seconds) })
	}
	if e.Action == "fail" {
		s.failed[e.Package] = true
		text := strings.Join(s.output[key], "")
		fmt.Fprintf(s.out, "%s\n", text)
		s.keep(e, text)
	}
	if s.parent[key] && e.Action != "skip" && (e.Action != "fail" || s.named(name+"/")) {
		return
	}
	s.counts[e.Package]++
	switch e.Action {
	case "pass":
		s.Passed++
	case "fail":
		s.Failed++
		s.FailedNames = append(s.FailedNames, name)
	case "skip":
		s.Skips = append(s.Skips, Skip{Test: name, Message: skipMessage(s.output[key])})
	}
}

// named reports whether a failed test's name begins so.
func (s *Summary) named(prefix string) bool {
	return slices.ContainsFunc(s.FailedNames, func(name string) bool { return strings.HasPrefix(name, prefix) })
}

// keep adds what a failed test said to its failure.
func (s *Summary) keep(e event, text string) {
	top, _, _ := strings.Cut(e.Test, "/")
	for i := range s.Failures {
		if f := &s.Failures[i]; f.Package == e.Package && f.Test == top {
			f.Output += text
			return
		}
	}
	s.Failures = append(s.Failures, Failure{Package: e.Package, Test: top, Output: text})
}

func (s *Summary) takePackage(e event) {
	switch {
	case e.Action == "fail":
		if !s.failed[e.Package] {
			s.BrokenPackages++
			s.FailedNames = append(s.FailedNames, short(e.Package))
		}
		// What the package printed outside of tests, and of tests that never ended.
		for key, lines := range s.output {
			if strings.HasPrefix(key, e.Package+" ") {
				s.rest += strings.Join(lines, "")
				fmt.Fprint(s.out, strings.Join(lines, ""))
			}
		}
		for key, name := range s.started {
			if strings.HasPrefix(key, e.Package+" ") {
				s.Unended = append(s.Unended, name)
			}
		}
		slices.Sort(s.Unended)
		fmt.Fprintf(s.out, "FAIL %-32s %6.1fs\n", short(e.Package), e.Elapsed)
	case s.counts[e.Package] > 0:
		fmt.Fprintf(s.out, "ok   %-32s %6.1fs %4d tests\n", short(e.Package), e.Elapsed, s.counts[e.Package])
	}
}

// skipMessage finds what t.Skip said among a test's output: the indented line
// "    file_test.go:12: needs root".
func skipMessage(output []string) string {
	for _, line := range output {
		line = strings.TrimSpace(line)
		if _, rest, ok := strings.Cut(line, "_test.go:"); ok {
			if _, message, ok := strings.Cut(rest, ": "); ok {
				return message
			}
		}
	}
	return "(no reason given)"
}

// short cuts the module's path off a package's.
func short(pkg string) string {
	return strings.TrimPrefix(pkg, module+"/")
}

const module = "github.com/stead-project/stead"

// ParseSkips reads a skips file: one allowed message part a line; # begins a comment.
func ParseSkips(text string) []string {
	var parts []string
	for line := range strings.Lines(text) {
		line, _, _ = strings.Cut(line, "#")
		line = strings.TrimSpace(line)
		if line != "" {
			parts = append(parts, line)
		}
	}
	return parts
}

// Allowed reports whether a skip message contains one of the parts.
func Allowed(message string, parts []string) bool {
	return slices.ContainsFunc(parts, func(p string) bool { return strings.Contains(message, p) })
}
