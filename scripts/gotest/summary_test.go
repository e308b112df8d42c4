package main

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
	"testing"
)

// feed turns "action package test output" lines into events.
func feed(t *testing.T, lines ...event) (*Summary, string) {
	t.Helper()
	var in, out bytes.Buffer
	for _, e := range lines {
		if err := json.NewEncoder(&in).Encode(e); err != nil {
			t.Fatal(err)
		}
	}
	s := NewSummary(&out)
	if err := s.Read(&in); err != nil {
		t.Fatal(err)
	}
	return s, out.String()
}

func TestASkipCarriesItsMessage(t *testing.T) {
	s, _ := feed(t,
		event{Action: "run", Package: "p", Test: "TestA"},
		event{Action: "output", Package: "p", Test: "TestA", Output: "=== RUN   TestA\n"},
		event{Action: "output", Package: "p", Test: "TestA", Output: "    a_test.go:7: needs root: run as root\n"},
		event{Action: "skip", Package: "p", Test: "TestA"},
		event{Action: "pass", Package: "p"})
	want := []Skip{{Test: "p/TestA", Message: "needs root: run as root"}}
	if !reflect.DeepEqual(s.Skips, want) {
		t.Fatalf("got %+v, want %+v", s.Skips, want)
	}
	if Allowed(s.Skips[0].Message, ParseSkips("# nothing\n")) {
		t.Fatal("an empty list allowed a skip")
	}
	if !Allowed(s.Skips[0].Message, ParseSkips("needs XFS quota # kernel\nneeds root\n")) {
		t.Fatal("a listed need was not allowed")
	}
}

func TestSubtestsCountAndTheirParentDoesNot(t *testing.T) {
	s, _ := feed(t,
		event{Action: "run", Package: "p", Test: "TestA"},
		event{Action: "run", Package: "p", Test: "TestA/one"},
		event{Action: "run", Package: "p", Test: "TestA/one/deep"},
		event{Action: "pass", Package: "p", Test: "TestA/one/deep"},
		event{Action: "pass", Package: "p", Test: "TestA/one"},
		event{Action: "pass", Package: "p", Test: "TestA"},
		event{Action: "pass", Package: "p"})
	if s.Passed != 1 || s.Failed != 0 {
		t.Fatalf("got %d passed, %d failed, want 1 and 0", s.Passed, s.Failed)
	}
}

func TestAFailurePrintsItsOutputAndOthersDoNot(t *testing.T) {
	s, out := feed(t,
		event{Action: "run", Package: "p", Test: "TestA"},
		event{Action: "output", Package: "p", Test: "TestA", Output: "quiet\n"},
		event{Action: "pass", Package: "p", Test: "TestA"},
		event{Action: "run", Package: "p", Test: "TestB"},
		event{Action: "output", Package: "p", Test: "TestB", Output: "loud\n"},
		event{Action: "fail", Package: "p", Test: "TestB"},
		event{Action: "fail", Package: "p"})
	if s.Passed != 1 || s.Failed != 1 || s.BrokenPackages != 0 {
		t.Fatalf("got %+v", s)
	}
	if !strings.Contains(out, "loud") || strings.Contains(out, "quiet") {
		t.Fatalf("printed %q", out)
	}
}

func TestAPackageThatDiesOutsideATestIsBroken(t *testing.T) {
	s, out := feed(t,
		event{Action: "build-output", ImportPath: "p", Output: "p.go:1: undefined: x\n"},
		event{Action: "fail", Package: "p"},
		event{Action: "run", Package: "q", Test: "TestHang"},
		event{Action: "output", Package: "q", Test: "TestHang", Output: "panic: test timed out\n"},
		event{Action: "fail", Package: "q"})
	if s.BrokenPackages != 2 {
		t.Fatalf("got %d broken packages, want 2", s.BrokenPackages)
	}
	for _, want := range []string{"undefined: x", "panic: test timed out"} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is not printed in %q", want, out)
		}
	}
}

func TestTheSlowestTestsComeFirst(t *testing.T) {
	s, _ := feed(t,
		event{Action: "pass", Package: module + "/p", Test: "TestQuick", Elapsed: 9.9},
		event{Action: "pass", Package: module + "/p", Test: "TestSlow/part", Elapsed: 11},
		event{Action: "pass", Package: module + "/p", Test: "TestSlow", Elapsed: 12},
		event{Action: "fail", Package: module + "/p", Test: "TestSlower", Elapsed: 13})
	if want := []Slow{{"p/TestSlower", 13}, {"p/TestSlow", 12}}; !reflect.DeepEqual(s.Slow, want) {
		t.Fatalf("got %v, want %v", s.Slow, want)
	}
}
