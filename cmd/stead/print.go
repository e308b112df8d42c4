package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/stead-project/stead/manifest"
	"github.com/stead-project/stead/proto"
	"github.com/stead-project/stead/spec/scalar"
)

// printer shows objects in the chosen form.
type printer struct {
	out       io.Writer
	form      string // "", wide, yaml, json, name, jsonpath
	kind      string
	namespace bool // show the column

	word     string            // what -o name calls the kind; "": kind
	prefixed bool              // names in tables start with word, as where several kinds are shown
	labels   []string          // keys of labels that get a column
	allLabel bool              // a column with all labels
	headless bool              // tables have no header
	ordered  bool              // objects are shown in the order given, also events
	template string            // of jsonpath
	hosts    map[string]string // addresses of nodes by name, for the documents of members
}

// jsonPathForm is the form of a template, which follows after "=".
const jsonPathForm = "jsonpath"

func newPrinter(out io.Writer, form, kind string, namespace bool) (*printer, error) {
	p := &printer{out: out, form: form, kind: kind, namespace: namespace}
	name, value, _ := strings.Cut(form, "=")
	switch name {
	case jsonPathForm + "-file":
		text, err := os.ReadFile(value)
		if err != nil {
			return nil, misuse("-o jsonpath-file: %w", err)
		}
		name, value = jsonPathForm, string(text)
	case jsonPathForm:
	case "custom-columns", "custom-columns-file", "go-template", "go-template-file":
		return nil, misuse("-o %s is not supported; write -o jsonpath='{range .items[*]}{.metadata.name}{\"\\n\"}{end}', or -o json for jq", name)
	default:
		name = form
	}
	switch name {
	case "", "wide", "yaml", "json", "name":
		return p, nil
	case jsonPathForm:
		if value == "" {
			return nil, misuse("-o jsonpath needs a template, for example -o jsonpath='{.metadata.name}'")
		}
		if err := checkTemplate(value); err != nil {
			return nil, usageError{err}
		}
		p.form, p.template, p.out = name, value, forReader(out, false)
		return p, nil
	}
	return nil, misuse("-o %q: write wide, yaml, json, name, jsonpath=TEMPLATE or jsonpath-file=FILE", form)
}

func (p *printer) isTable() bool { return p.form == "" || p.form == "wide" }

// isDocument reports whether whole objects are shown, or what a template takes from them.
func (p *printer) isDocument() bool { return !p.isTable() && p.form != "name" }

// all shows a list; a single object is shown without a list around it.
func (p *printer) all(objects []*proto.Object, single bool) error {
	switch {
	case p.form == "name":
		for _, o := range objects {
			fmt.Fprintf(p.out, "%s/%s\n", cmp.Or(p.word, o.GetKind()), o.GetName())
		}
		return nil
	case p.isTable():
		return p.table(objects, true)
	}
	items := make([]json.RawMessage, len(objects))
	for i, o := range objects {
		item, err := p.document(o)
		if err != nil {
			return err
		}
		items[i] = item
	}
	if single {
		return p.write(items[0])
	}
	list, err := json.Marshal(struct {
		APIVersion string            `json:"apiVersion"`
		Kind       string            `json:"kind"`
		Items      []json.RawMessage `json:"items"`
	}{"v1", "List", items})
	if err != nil {
		return err
	}
	return p.write(list)
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

// document is what scripts read of an object.
func (p *printer) document(o *proto.Object) ([]byte, error) {
	if o.GetKind() != proto.KindMember {
		return o.GetJson(), nil
	}
	return asPod(o, p.hosts)
}

// write shows one document.
func (p *printer) write(doc []byte) error {
	switch p.form {
	case jsonPathForm:
		return printTemplate(p.out, p.template, doc)
	case "yaml":
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
	if p.kind == proto.KindEvent && !p.ordered {
		sortByAge(objects)
	}
	cols, ok := columns[p.kind]
	if !ok {
		return fmt.Errorf("kind %s has no table; use -o yaml", p.kind)
	}
	t := newTable(p.out, p.head(cols, head)...)
	for _, o := range objects {
		cells, wide, err := cols.row(o)
		if err != nil {
			return err
		}
		if p.prefixed && cols.head[0] == "NAME" {
			cells[0] = p.word + "/" + fmt.Sprint(cells[0])
		}
		if p.form == "wide" {
			cells = append(cells, wide...)
		}
		if p.namespace {
			cells = append([]any{o.GetNamespace()}, cells...)
		}
		labels, err := p.labelCells(o)
		if err != nil {
			return err
		}
		t.row(append(cells, labels...)...)
	}
	return t.flush()
}

// head are the headers of a table; nil: it has none.
func (p *printer) head(cols column, want bool) []string {
	if !want || p.headless {
		return nil
	}
	names := cols.head
	if p.form == "wide" {
		names = slices.Concat(names, cols.wide)
	}
	if p.namespace {
		names = slices.Concat([]string{"NAMESPACE"}, names)
	}
	for _, key := range p.labels {
		names = append(slices.Clip(names), strings.ToUpper(key[strings.LastIndexByte(key, '/')+1:]))
	}
	if p.allLabel {
		names = append(slices.Clip(names), "LABELS")
	}
	return names
}

// labelCells are the values of the labels that were asked for.
func (p *printer) labelCells(o *proto.Object) (cells []any, err error) {
	if len(p.labels) == 0 && !p.allLabel {
		return nil, nil
	}
	read, err := decode[any, any](o)
	if err != nil {
		return nil, err
	}
	for _, key := range p.labels {
		cells = append(cells, read.Metadata.Labels[key])
	}
	if p.allLabel {
		cells = append(cells, pairs(read.Metadata.Labels))
	}
	return cells, nil
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
