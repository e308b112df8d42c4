package main

import (
	"errors"
	"slices"
	"strings"
	"testing"
)

const output = `goos: linux
BenchmarkReady/OrderedReady/10-2         	       5	  32989469 ns/op	        12.73 hops/member	         2.000 revisions/member
some log line of 4 words
BenchmarkStart-16  	20	51.50 bare-ms	78.72 stead-ms
PASS
`

func read(text string) figures {
	f := figures{}
	f.read([]byte(text))
	return f
}

func TestFiguresAreFoundByBenchmarkAndUnit(t *testing.T) {
	f := read(output)
	if len(f) != 2 || f["Ready/OrderedReady/10"]["hops/member"] != 12.73 || f["Start"]["stead-ms"] != 78.72 {
		t.Fatalf("got %v", f)
	}
}

func TestATableShowsRatioGoalAndVerdict(t *testing.T) {
	ours, bare := cell{"Start", "stead-ms", 1, "ms"}, cell{"Start", "bare-ms", 2, "ms"}
	var out strings.Builder
	err := print(&out, []row{
		{what: "head"},
		{"twice bare", ours, bare, ratioAtMost(1.1)},
		{"too slow", ours, cell{}, atMost(78, "ms")},
		{"late", ours, bare, overAtMost(1, "ms")},
		{"few", ours, bare, atLeast(79, "ms")},
		{"gone", cell{"Start", "none", 1, ""}, bare, atMost(1, "")},
	}, read(output))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for line := range strings.Lines(out.String()) {
		got = append(got, strings.Join(strings.Fields(line), " "))
	}
	want := []string{
		"ours floor or peer ratio goal", "HEAD",
		"twice bare 78.7 ms 103 ms 0.764 ≤ 1.1 x met",
		"too slow 78.7 ms - - ≤ 78 ms missed",
		"late 78.7 ms 103 ms 0.764 ≤ floor + 1 ms met",
		"few 78.7 ms 103 ms 0.764 ≥ 79 ms missed",
		"gone not run 103 ms - ≤ 1",
	}
	if !slices.Equal(got, want) {
		t.Fatalf("got:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestAFigureThatNobodyTellsIsNamed(t *testing.T) {
	rows := []row{{what: "head"}, {what: "a", ours: cell{"Start", "bare-ms", 1, ""}, floor: cell{"Start", "none", 1, ""}}}
	if got := missing(rows, read(output), []string{"Probe"}); !slices.Equal(got, []string{"Start none"}) {
		t.Fatalf("got %q", got)
	}
	if got := missing(rows, read(output), []string{"Start"}); len(got) > 0 {
		t.Fatalf("of benchmarks that were left out: got %q", got)
	}
}

func TestARunIsLeftOutForWhatItLacks(t *testing.T) {
	there := func(program string) (string, error) {
		if program == "ctr" || program == "runc" {
			return "", errors.New("not found")
		}
		return "/usr/bin/" + program, nil
	}
	containers, plain := run{needs: containerPrograms}, run{}
	for _, c := range []struct {
		r    *run
		root bool
		want string
	}{{&plain, false, ""}, {&plain, true, ""}, {&containers, false, "root"}, {&containers, true, "ctr, runc"}} {
		if got := c.r.lacks(c.root, there); got != c.want {
			t.Errorf("%v as root %v: got %q, want %q", c.r.needs, c.root, got, c.want)
		}
	}
}

// A row of a benchmark that may be left out is found by the name that its run tells of.
func TestEveryRunTellsOfItsRows(t *testing.T) {
	var all []string
	for _, r := range runs {
		all = append(all, r.tells...)
		if len(r.needs) > 0 && len(r.tells) == 0 {
			t.Errorf("%s %s may be left out, and does not say what of", r.pkg, r.bench)
		}
	}
	for _, name := range all {
		if !slices.ContainsFunc(rows(), func(r row) bool { return strings.HasPrefix(r.ours.bench, name) }) {
			t.Errorf("no row is told by %s", name)
		}
	}
}

func TestNumbersHaveThreeDigits(t *testing.T) {
	for v, want := range map[float64]string{0: "0", 0.0105: "0.0105", 1: "1", 2.1: "2.1", 12.34: "12.3", 99.96: "100", 2461.4: "2461"} {
		if got := short(v); got != want {
			t.Errorf("%v: got %q, want %q", v, got, want)
		}
	}
}
