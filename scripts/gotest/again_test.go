package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stead-project/stead/test/judge"
)

// trials are tests that note that they ran, and fail the first time or always.
const trials = `package trial

import (
	"os"
	"testing"
)

// ran notes a run of a test and returns how many there were before.
func ran(t *testing.T) int {
	before, _ := os.ReadFile(t.Name() + ".ran")
	if err := os.WriteFile(t.Name()+".ran", append(before, '.'), 0o600); err != nil {
		t.Fatal(err)
	}
	return len(before)
}

func once(t *testing.T, words string) {
	if ran(t) == 0 {
		t.Error(words)
	}
}

func TestGood(t *testing.T)      { ran(t) }
func TestLuckA(t *testing.T)     { once(t, "unlucky A") }
func TestLuckB(t *testing.T)     { once(t, "unlucky B") }
func TestLuckC(t *testing.T)     { once(t, "unlucky C") }
func TestGrave(t *testing.T)     { once(t, "SAFETY: two lives") }
func TestPanics(t *testing.T)    { if ran(t) == 0 { panic("oh") } }
func TestBad(t *testing.T)       { ran(t); t.Error("always bad") }
func TestSkips(t *testing.T)     { if ran(t) == 0 { t.Error("bad") }; t.Skip("needs luck") }
func TestWithParts(t *testing.T) {
	before := ran(t)
	t.Run("part", func(t *testing.T) {
		if before == 0 {
			t.Error("an unlucky part")
		}
	})
	t.Run("other", func(*testing.T) {})
}
func TestItself(t *testing.T) {
	t.Run("part", func(*testing.T) {})
	once(t, "unlucky itself")
}
`

func TestASecondChanceIsForLuckOnly(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"go.mod": "module trial\n\ngo 1.26\n", "trial_test.go": trials} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		name, run string
		once      bool // no second chance was asked for
		well      bool
		says      string   // in the output
		twice     []string // tests that ran twice; all others at most once
	}{
		{name: "what was luck is told and forgiven", run: "Good|LuckA", well: true, says: "1 passed, 0 failed, 1 FLAKY, 0 skipped", twice: []string{"LuckA"}},
		{name: "nobody asked for it", run: "Good|LuckA", once: true, says: "FAIL: trial/TestLuckA"},
		{name: "two may be luck", run: "Luck[AB]", well: true, says: "2 FLAKY", twice: []string{"LuckA", "LuckB"}},
		{name: "three are none", run: "Luck", says: "no second chance: 3 tests failed"},
		{name: "a broken promise", run: "LuckA|Grave", says: "no second chance: trial/TestGrave says \"SAFETY:\""},
		{name: "a panic", run: "Panics|Good", says: "no second chance: trial/TestPanics says \"panic:\""},
		{name: "bad again beside luck", run: "Bad|LuckA", says: "0 passed, 1 failed, 1 FLAKY", twice: []string{"Bad", "LuckA"}},
		{name: "a skip is no pass", run: "Skips", says: "FAIL: trial/TestSkips", twice: []string{"Skips"}},
		{name: "a test and its parts are one", run: "WithParts", well: true, says: "FLAKY trial/TestWithParts", twice: []string{"WithParts"}},
		{name: "a test with parts that fails by itself", run: "Itself", well: true, says: "FLAKY trial/TestItself", twice: []string{"Itself"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var out bytes.Buffer
			r := runner{again: filepath.Join(t.TempDir(), "kept"), dir: dir, out: &out, args: []string{"-count=1", "-vet=off", "-run", "^Test(" + c.run + ")", "./..."}}
			if c.once {
				r.again = ""
			}
			if well := r.run(); well != c.well || !strings.Contains(out.String(), c.says) {
				t.Errorf("got %v, want %v and %q in\n%s", well, c.well, c.says, out.String())
			}
			notes, err := filepath.Glob(filepath.Join(dir, "*.ran"))
			if err != nil || len(notes) == 0 {
				t.Fatalf("nothing ran: %v", err)
			}
			for _, note := range notes {
				runs, err := os.ReadFile(note)
				want := 1
				if slices.Contains(c.twice, strings.TrimSuffix(strings.TrimPrefix(filepath.Base(note), "Test"), ".ran")) {
					want = 2
				}
				if err != nil || len(runs) != want {
					t.Errorf("%s ran %d times, want %d; %v", filepath.Base(note), len(runs), want, err)
				}
				if err := os.Remove(note); err != nil {
					t.Error(err)
				}
			}
			if strings.Contains(out.String(), "FLAKY trial/TestLuckA") {
				if kept, err := os.ReadFile(filepath.Join(r.again, "trial.TestLuckA")); err != nil || !strings.Contains(string(kept), "unlucky A") {
					t.Errorf("what it said is kept as %q, %v", kept, err)
				}
			}
		})
	}
}

func TestNoSecondChanceForWhatDidNotEndOrIsNoTest(t *testing.T) {
	failed := []event{
		{Action: "run", Package: "p", Test: "TestA"},
		{Action: "output", Package: "p", Test: "TestA", Output: "    a_test.go:7: late\n"},
		{Action: "fail", Package: "p", Test: "TestA"},
	}
	for _, c := range []struct {
		name string
		more []event
		why  string
	}{
		{"luck", []event{{Action: "fail", Package: "p"}}, ""},
		{"another was running when the package ended", []event{{Action: "run", Package: "p", Test: "TestB"}, {Action: "fail", Package: "p"}}, "these did not end: p/TestB"},
		{"a package does not build", []event{{Action: "fail", Package: "p"}, {Action: "fail", Package: "q"}}, "outside of its tests"},
		{"a race that no test is told of", []event{{Action: "output", Package: "p", Output: "WARNING: DATA RACE\n"}, {Action: "fail", Package: "p"}}, "a package says"},
		{"one that passed logs such words", []event{{Action: "run", Package: "p", Test: "TestB"},
			{Action: "output", Package: "p", Test: "TestB", Output: "log of SAFETY: fine\n"}, {Action: "pass", Package: "p", Test: "TestB"}, {Action: "fail", Package: "p"}}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, _ := feed(t, append(slices.Clone(failed), c.more...)...)
			tests, why := s.Chances()
			if (why == "") != (c.why == "") || !strings.Contains(why, c.why) || (len(tests) == 1) != (c.why == "") {
				t.Errorf("got %v, %q; want %q", tests, why, c.why)
			}
		})
	}
	for _, word := range judge.Final {
		s, _ := feed(t, failed[0], event{Action: "output", Package: "p", Test: "TestA", Output: fmt.Sprintln(word, "x")}, failed[2], event{Action: "fail", Package: "p"})
		if tests, why := s.Chances(); why == "" {
			t.Errorf("%q: %v", word, tests)
		}
	}
}
