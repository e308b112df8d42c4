package manifest

import (
	"fmt"
	"reflect"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/stead-project/stead/spec/scalar"
)

// decoder reads one object strictly into its type, and records the position of each field.
type decoder struct {
	problems, warnings []Problem // with positions, paths below base
	at                 position
	// where is the position of a node in the source.
	where func(*yaml.Node) place
	kind  string
	// stead: the object is of apiVersion stead/v1.
	stead bool
	// secret: values must not be shown.
	secret bool
	// bad holds the paths that already have a problem: validation skips them.
	bad map[string]bool
	// reads counts what may still be read through aliases, aliased the aliases
	// around the present value.
	reads   *int
	aliased int
	fields  map[reflect.Type][]field
}

func newDecoder(doc *document, base string, root *yaml.Node) *decoder {
	return &decoder{
		at:     position{file: doc.file, source: doc.source, base: base, start: doc.place(root), places: map[string]place{}},
		where:  doc.place,
		bad:    map[string]bool{},
		reads:  doc.reads,
		fields: map[reflect.Type][]field{},
	}
}

func (d *decoder) fail(n *yaml.Node, path, what, fix string) {
	d.bad[path] = true
	if len(d.problems) <= maxProblems {
		d.problems = append(d.problems, d.problem(n, path, what, fix))
	}
}

func (d *decoder) warn(n *yaml.Node, path, what, fix string) {
	d.warnings = append(d.warnings, d.problem(n, path, what, fix))
}

func (d *decoder) problem(n *yaml.Node, path, what, fix string) Problem {
	p := d.where(n)
	return Problem{File: d.at.file, Line: p.line, Column: p.column, Path: d.at.base + path, What: what, Fix: fix}
}

// value reads n into v. Null is as if the field were absent.
func (d *decoder) value(n *yaml.Node, v reflect.Value, path string, depth int) {
	if !d.mayRead(n, path, depth) {
		return
	}
	if n.Kind == yaml.AliasNode {
		d.aliased++
		d.value(n.Alias, v, path, depth+1)
		d.aliased--
		return
	}
	if isNull(n) {
		return
	}
	if s, ok := v.Addr().Interface().(scalar.Value); ok {
		d.ownScalar(n, s, path)
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		d.value(n, v.Elem(), path, depth)
	case reflect.Struct:
		d.structure(n, v, path, depth)
	case reflect.Slice:
		d.list(n, v, path, depth)
	case reflect.Map:
		d.mapping(n, v, path, depth)
	default:
		d.plainScalar(n, v, path)
	}
}

// mayRead keeps the bounds of nesting and of what aliases multiply.
func (d *decoder) mayRead(n *yaml.Node, path string, depth int) bool {
	if depth > maxNesting {
		d.fail(n, path, fmt.Sprintf("nested deeper than %d", maxNesting), "")
		return false
	}
	return d.aliased == 0 || d.spend(n, path, 1+len(n.Value)/64)
}

// spend reports whether so much may still be read through aliases; it tells once
// that it may not.
func (d *decoder) spend(n *yaml.Node, path string, values int) bool {
	left := *d.reads
	*d.reads -= values
	if left > 0 && *d.reads <= 0 {
		d.fail(n, path, fmt.Sprintf("aliases expand to more than %d values", maxAliasReads), "write them out")
	}
	return *d.reads > 0
}

func (d *decoder) structure(n *yaml.Node, v reflect.Value, path string, depth int) {
	if n.Kind != yaml.MappingNode {
		d.wrongType(n, path, "a mapping")
		return
	}
	fields := d.fieldsOf(v.Type())
	for _, e := range d.entries(n, path, depth) {
		f, at := d.lookup(e, fields, path)
		if f == nil || !d.supported(e, f, at) {
			continue
		}
		d.at.places[at] = d.where(e.key)
		d.value(e.value, v.Field(f.index), at, depth+1)
	}
}

// lookup finds the field that e names, or reports it.
func (d *decoder) lookup(e entry, fields []field, path string) (*field, string) {
	for i := range fields {
		if fields[i].name == e.name {
			return &fields[i], join(path, e.name)
		}
	}
	fix := fieldNames(fields)
	if meant := suggest(e.name, fields); meant != "" {
		fix = fmt.Sprintf("did you mean %q?", meant)
		d.bad[join(path, meant)] = true
	}
	d.fail(e.key, join(path, showKey(e.name)), "unknown field", fix)
	return nil, ""
}

// notYet is said of a field that is known and refused.
const notYet = "not supported yet"

// noEffect is said of a field that is known and changes nothing.
const noEffect = "has no effect here"

// supported reports whether the field is to be read; if not, it has said why,
// unless there is nothing to say.
func (d *decoder) supported(e entry, f *field, path string) bool {
	switch n := deref(e.value); {
	case isNull(n) || f.saysSame(n):
		return false
	case f.later:
		if f.or != "" && n.Kind == yaml.ScalarNode && n.Value == f.or {
			return true
		}
		d.fail(e.key, path, notYet, f.instead)
		return false
	case f.ignored:
		d.warn(e.key, path, noEffect, f.instead)
		return false
	case f.only && !d.stead:
		d.fail(e.key, path, "only in apiVersion stead/v1",
			"write apiVersion: stead/v1, or put it into the annotation stead.dev/spec")
		return false
	}
	return true
}

func (d *decoder) list(n *yaml.Node, v reflect.Value, path string, depth int) {
	if n.Kind != yaml.SequenceNode {
		d.wrongType(n, path, "a list")
		return
	}
	v.Set(reflect.MakeSlice(v.Type(), 0, min(len(n.Content), 1024)))
	for i, item := range n.Content {
		at := fmt.Sprintf("%s[%d]", path, i)
		d.at.places[at] = d.where(item)
		if isNull(deref(item)) {
			d.fail(item, at, "an empty item", "give it a value, or remove its dash")
		}
		if d.aliased > 0 && *d.reads <= 0 {
			return
		}
		v.Set(reflect.Append(v, reflect.Zero(v.Type().Elem())))
		d.value(item, v.Index(i), at, depth+1)
	}
}

func (d *decoder) mapping(n *yaml.Node, v reflect.Value, path string, depth int) {
	if n.Kind != yaml.MappingNode {
		d.wrongType(n, path, "a mapping")
		return
	}
	v.Set(reflect.MakeMap(v.Type()))
	for _, e := range d.entries(n, path, depth) {
		at := path + "[" + showKey(e.name) + "]"
		d.at.places[at] = d.where(e.key)
		if isNull(deref(e.value)) {
			d.fail(e.key, at, "has no value", `write "" for an empty one`)
			continue
		}
		item := reflect.New(v.Type().Elem()).Elem()
		d.value(e.value, item, at, depth+1)
		v.SetMapIndex(reflect.ValueOf(e.name).Convert(v.Type().Key()), item)
	}
}

func (d *decoder) wrongType(n *yaml.Node, path, want string) {
	d.fail(n, path, "is "+describe(n)+", not "+want, "")
}

func (d *decoder) fieldsOf(t reflect.Type) []field {
	known, ok := d.fields[t]
	if !ok {
		known = fieldsOf(t)
		d.fields[t] = known
	}
	return known
}

// join adds a field to a path.
func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

// showKey makes a user's key fit for a path in a message.
func showKey(key string) string {
	if len(key) > 300 || strings.ContainsFunc(key, func(r rune) bool { return !printable(r) }) {
		return scalar.Quote(key)
	}
	return key
}
