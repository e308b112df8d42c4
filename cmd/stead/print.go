package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
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
	return nil, usageError{fmt.Errorf("-o %q: write wide, yaml, json or name", form)}
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
	var names []string
	if p.namespace {
		names = append(names, "NAMESPACE")
	}
	names = append(names, cols.head...)
	if p.form == "wide" {
		names = append(names, cols.wide...)
	}
	var t *table
	if head {
		t = newTable(p.out, names...)
	} else {
		t = bareTable(p.out)
	}
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
		var e records.Event
		if _, err := decode(o, &e, nil); err != nil {
			return time.Time{}
		}
		return e.At
	}
	slices.SortStableFunc(objects, func(a, b *proto.Object) int { return at(a).Compare(at(b)) })
}

// printEffects prints what a change will cause.
func printEffects(out io.Writer, effects []string) {
	for _, e := range effects {
		fmt.Fprintln(out, "  "+scalar.Plain(e))
	}
}
