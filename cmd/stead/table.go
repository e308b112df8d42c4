package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/stead-project/stead/spec/scalar"
)

// table prints aligned columns; an empty cell shows as "-".
type table struct {
	w *tabwriter.Writer
}

func newTable(out io.Writer, head ...string) *table {
	t := bareTable(out)
	t.row(toAny(head)...)
	return t
}

func toAny(words []string) []any {
	out := make([]any, len(words))
	for i, w := range words {
		out[i] = w
	}
	return out
}

func (t *table) row(cells ...any) {
	words := make([]string, len(cells))
	for i, c := range cells {
		words[i] = scalar.Plain(fmt.Sprint(c))
		if words[i] == "" {
			words[i] = "-"
		}
	}
	fmt.Fprintln(t.w, strings.Join(words, "\t"))
}

func (t *table) flush() error { return t.w.Flush() }

// age is the time since a moment, as kubectl shows it: 5s, 3m, 2h, 4d.
func age(since time.Time) string {
	if since.IsZero() {
		return "-"
	}
	return span(time.Since(since))
}

// span is a length of time in its largest unit.
func span(d time.Duration) string {
	d = max(d, 0)
	switch {
	case d < 2*time.Minute:
		return fmt.Sprintf("%ds", int(d.Seconds()))
	case d < 2*time.Hour:
		return fmt.Sprintf("%dm", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh", int(d.Hours()))
	}
	return fmt.Sprintf("%dd", int(d.Hours()/24))
}

// bytesText is a size in the largest binary unit that keeps it readable.
func bytesText(n int64) string {
	units := []string{"B", "Ki", "Mi", "Gi", "Ti", "Pi"}
	f, i := float64(n), 0
	for f >= 1024 && i < len(units)-1 {
		f, i = f/1024, i+1
	}
	return strings.TrimSuffix(fmt.Sprintf("%.1f", f), ".0") + units[i]
}

// bareTable is a table without a header.
func bareTable(out io.Writer) *table {
	return &table{w: tabwriter.NewWriter(out, 0, 0, 3, ' ', 0)}
}

func sorted(words []string) []string {
	slices.Sort(words)
	return words
}

// firstOf is the first word that is not empty.
func firstOf(words ...string) string {
	for _, w := range words {
		if w != "" {
			return w
		}
	}
	return ""
}
