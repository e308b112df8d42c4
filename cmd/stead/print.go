package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/stead-project/stead/manifest"
	"github.com/stead-project/stead/proto"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec/scalar"
)

// printer shows objects in the chosen form.
type printer struct {
	out       io.Writer
	form      string // "", wide, yaml, json, name
	kind      string
	namespace bool // show the column
}

func newPrinter(out io.Writer, form, kind string, namespace bool) (*printer, error) {
	switch form {
	case "", "wide", "yaml", "json", "name":
		return &printer{out: out, form: form, kind: kind, namespace: namespace}, nil
	}
	return nil, misuse("-o %q: write wide, yaml, json or name", form)
}

func (p *printer) isTable() bool { return p.form == "" || p.form == "wide" }

// all shows a list; yaml and json show a single object without a list around it.
func (p *printer) all(objects []*proto.Object, single bool) error {
	switch p.form {
	case "name":
		for _, o := range objects {
			fmt.Fprintf(p.out, "%s/%s\n", o.GetKind(), o.GetName())
		}
		return nil
	case "json", "yaml":
		if single {
			return p.document(objects[0].GetJson())
		}
		items := make([]json.RawMessage, len(objects))
		for i, o := range objects {
			items[i] = o.GetJson()
		}
		list, err := json.Marshal(struct {
			APIVersion string            `json:"apiVersion"`
			Kind       string            `json:"kind"`
			Items      []json.RawMessage `json:"items"`
		}{"v1", "List", items})
		if err != nil {
			return err
		}
		return p.document(list)
	}
	return p.table(objects, true)
}

// change shows one object after it changed; a table continues without a new header.
func (p *printer) change(o *proto.Object) error {
	if p.isTable() {
		return p.table([]*proto.Object{o}, false)
	}
	if p.form == "yaml" {
		fmt.Fprintln(p.out, "---")
	}
	return p.all([]*proto.Object{o}, true)
}

func (p *printer) document(doc []byte) error {
	if p.form == "yaml" {
		text, err := manifest.JSONToYAML(doc)
		if err != nil {
			return err
		}
		_, err = p.out.Write(text)
		return err
	}
	var pretty bytes.Buffer
	if err := json.Indent(&pretty, plainJSON(doc), "", "  "); err != nil {
		return err
	}
	pretty.WriteByte('\n')
	_, err := pretty.WriteTo(p.out)
	return err
}

func (p *printer) table(objects []*proto.Object, head bool) error {
	if p.kind == proto.KindEvent {
		sortByAge(objects)
	}
	cols, ok := columns[p.kind]
	if !ok {
		return fmt.Errorf("kind %s has no table; use -o yaml", p.kind)
	}
	names := cols.head
	if p.form == "wide" {
		names = slices.Concat(names, cols.wide)
	}
	if p.namespace {
		names = slices.Concat([]string{"NAMESPACE"}, names)
	}
	if !head {
		names = nil
	}
	t := newTable(p.out, names...)
	for _, o := range objects {
		cells, wide, err := cols.row(o)
		if err != nil {
			return err
		}
		if p.form == "wide" {
			cells = append(cells, wide...)
		}
		if p.namespace {
			cells = append([]any{o.GetNamespace()}, cells...)
		}
		t.row(cells...)
	}
	return t.flush()
}

// sortByAge puts the oldest events first; those that cannot be read stay where they are.
func sortByAge(objects []*proto.Object) {
	at := func(o *proto.Object) time.Time {
		e, err := decode[records.Event, any](o)
		if err != nil {
			return time.Time{}
		}
		return e.Spec.At
	}
	slices.SortStableFunc(objects, func(a, b *proto.Object) int { return at(a).Compare(at(b)) })
}

// printEffects prints what a change will cause.
func printEffects(out io.Writer, effects []string) {
	for _, e := range effects {
		fmt.Fprintln(out, "  "+scalar.Plain(e))
	}
}

// table prints aligned columns; an empty cell shows as "-".
type table struct {
	w *tabwriter.Writer
}

// newTable returns a table with a header; without words there is none.
func newTable(out io.Writer, head ...string) *table {
	t := &table{tabwriter.NewWriter(out, 0, 0, 3, ' ', 0)}
	if len(head) > 0 {
		fmt.Fprintln(t.w, strings.Join(head, "\t"))
	}
	return t
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
