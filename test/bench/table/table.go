package main

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
)

// figures are the results by benchmark (without Benchmark and the number of
// processors) and unit.
type figures map[string]map[string]float64

var processors = regexp.MustCompile(`-\d+$`)

// read takes the results out of what `go test -bench` printed; other lines are
// left alone.
func (f figures) read(text []byte) {
	for line := range bytes.Lines(text) {
		fields := strings.Fields(string(line))
		if len(fields) < 4 || !strings.HasPrefix(fields[0], "Benchmark") {
			continue
		}
		name := processors.ReplaceAllString(strings.TrimPrefix(fields[0], "Benchmark"), "")
		units := map[string]float64{}
		for i := 2; i+1 < len(fields); i += 2 {
			if v, err := strconv.ParseFloat(fields[i], 64); err == nil {
				units[fields[i+1]] = v
			}
		}
		f[name] = units
	}
}

// cell is one figure of the table: that of a benchmark times factor, or, without
// a benchmark, factor itself. The zero cell is empty.
type cell struct {
	bench, unit string
	factor      float64
	label       string // what is printed behind the number
}

// value is NaN for an empty cell and for a benchmark that was not run.
func (c cell) value(f figures) float64 {
	if c.bench == "" {
		if c.factor == 0 {
			return math.NaN()
		}
		return c.factor
	}
	v, ok := f[c.bench][c.unit]
	if !ok {
		return math.NaN()
	}
	return v * c.factor
}

func (c cell) text(f figures) string {
	if c == (cell{}) {
		return "-"
	}
	if c.bench != "" && math.IsNaN(c.value(f)) {
		return "not run"
	}
	return strings.TrimSpace(short(c.value(f)) + " " + c.label)
}

// missing are the figures that rows want and no benchmark told, but for those of benchmarks that were left out.
func missing(rows []row, f figures, silent []string) (out []string) {
	for _, r := range rows {
		for _, c := range []cell{r.ours, r.floor} {
			name, _, _ := strings.Cut(c.bench, "/")
			if c.bench != "" && !slices.Contains(silent, name) && math.IsNaN(c.value(f)) {
				out = append(out, c.bench+" "+c.unit)
			}
		}
	}
	return out
}

// short is three digits and no power of ten.
func short(v float64) string {
	if math.Abs(v) >= 100 {
		return strconv.FormatFloat(v, 'f', 0, 64)
	}
	if v == 0 {
		return "0"
	}
	digits := max(0, 2-int(math.Floor(math.Log10(math.Abs(v)))))
	text := strconv.FormatFloat(v, 'f', digits, 64)
	if strings.Contains(text, ".") {
		text = strings.TrimRight(strings.TrimRight(text, "0"), ".")
	}
	return text
}

// goal is what DESIGN 11 asks of a row; the zero goal asks nothing.
type goal struct {
	text string
	met  func(ours, floor float64) bool
}

func atMost(x float64, label string) goal {
	return goal{strings.TrimSpace("≤ " + short(x) + " " + label), func(ours, _ float64) bool { return ours <= x }}
}

func atLeast(x float64, label string) goal {
	return goal{strings.TrimSpace("≥ " + short(x) + " " + label), func(ours, _ float64) bool { return ours >= x }}
}

func ratioAtMost(x float64) goal {
	return goal{"≤ " + short(x) + " x", func(ours, floor float64) bool { return ours <= x*floor }}
}

func overAtMost(x float64, label string) goal {
	return goal{"≤ floor + " + short(x) + " " + label, func(ours, floor float64) bool { return ours <= floor+x }}
}

func (g goal) verdict(ours, floor float64) string {
	switch {
	case g.met == nil || math.IsNaN(ours):
		return ""
	case g.met(ours, floor):
		return "met"
	}
	return "missed"
}

// row is a line of the table; one without ours is a heading.
type row struct {
	what        string
	ours, floor cell
	goal        goal
}

// print writes the table, aligned.
func print(w io.Writer, rows []row, f figures) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "\tours\tfloor or peer\tratio\tgoal\t")
	for _, r := range rows {
		if r.ours == (cell{}) {
			fmt.Fprintf(t, "%s\t\t\t\t\t\n", strings.ToUpper(r.what))
			continue
		}
		ours, floor := r.ours.value(f), r.floor.value(f)
		ratio := "-"
		if !math.IsNaN(ours / floor) {
			ratio = short(ours / floor)
		}
		want := r.goal.text
		if want == "" {
			want = "-"
		}
		fmt.Fprintf(t, "  %s\t%s\t%s\t%s\t%s\t%s\n", r.what, r.ours.text(f), r.floor.text(f), ratio, want, r.goal.verdict(ours, floor))
	}
	return t.Flush()
}
