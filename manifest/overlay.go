package manifest

import (
	"bytes"
	"fmt"
	"reflect"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/spec/scalar"
)

// SteadAnnotation holds, on an apps/v1 StatefulSet, a part of its spec as YAML:
// only the fields that Kubernetes does not have. For charts that cannot be edited.
const SteadAnnotation = "stead.dev/spec"

// steadAnnotation merges the annotation into the set's spec.
func (d *decoder) steadAnnotation(doc *document, root *yaml.Node, s *spec.StatefulSet) {
	text, given := s.Metadata.Annotations[SteadAnnotation]
	if !given {
		return
	}
	path := "metadata.annotations[" + SteadAnnotation + "]"
	value := child(child(child(root, "metadata"), "annotations"), SteadAnnotation)
	if value == nil { // merged in by <<
		value = root
	}
	value = deref(value)
	if len(text) > maxAnnotation {
		d.fail(value, path, fmt.Sprintf("has %d bytes, the maximum is %d", len(text), maxAnnotation), "write the fields into a stead/v1 set")
		return
	}
	inner := *d
	inner.where = func(n *yaml.Node) place { return doc.within(value, n) }
	read := 0
	err := readPiece([]byte(text), func(n *yaml.Node) error {
		read++
		if read > 1 {
			return &scalar.HintError{What: "the annotation contains more than one document", Fix: "write one mapping"}
		}
		inner.stead = true
		inner.overlay(n, reflect.ValueOf(&s.Spec).Elem(), path, "spec", 1)
		return nil
	})
	d.problems, d.warnings = inner.problems, inner.warnings
	if err != nil {
		p := syntaxProblem("", 0, err)
		d.fail(value, path, p.What, p.Fix)
	}
}

// overlay reads into v those fields of n that only Stead has. shown is the path in
// messages, path the one in the set.
func (d *decoder) overlay(n *yaml.Node, v reflect.Value, shown, path string, depth int) {
	n = deref(n)
	if n.Kind != yaml.MappingNode {
		d.wrongType(n, shown, "a mapping")
		return
	}
	for _, e := range d.entries(n, shown, depth) {
		f, at := d.lookup(e, d.fieldsOf(v.Type()), shown)
		if f == nil {
			continue
		}
		target, inSet := v.Field(f.index), join(path, f.name)
		_, given := d.at.places[inSet]
		switch {
		case f.only && given:
			d.fail(e.key, at, "given twice", "it is also in the spec")
		case f.only:
			if d.supported(e, f, at) {
				d.at.places[inSet] = d.where(e.key)
				d.value(e.value, target, inSet, depth+1)
			}
		case f.later || !holdsSteadFields(f.typ):
			d.fail(e.key, at, "is not a field that only Stead has", "write it into "+path)
		case indirect(f.typ).Kind() != reflect.Struct:
			d.fail(e.key, at, notYet, "")
		default:
			if target.Kind() == reflect.Pointer {
				if target.IsNil() {
					target.Set(reflect.New(target.Type().Elem()))
				}
				target = target.Elem()
			}
			d.overlay(e.value, target, at, inSet, depth+1)
		}
	}
}

// holdsSteadFields reports whether a field tagged "only" is somewhere below t. The
// types of manifests do not contain themselves.
func holdsSteadFields(t reflect.Type) bool {
	t = indirect(t)
	if t.Kind() == reflect.Slice {
		return holdsSteadFields(t.Elem())
	}
	if t.Kind() != reflect.Struct || reflect.PointerTo(t).Implements(reflect.TypeFor[scalar.Value]()) {
		return false
	}
	for _, f := range fieldsOf(t) {
		if f.only || holdsSteadFields(f.typ) {
			return true
		}
	}
	return false
}

func indirect(t reflect.Type) reflect.Type {
	if t.Kind() == reflect.Pointer {
		return t.Elem()
	}
	return t
}

// within is the position of n, a node of the YAML inside the text of value. In a
// literal block that is exact; for other texts it is that of value.
func (d *document) within(value, n *yaml.Node) place {
	at := d.place(value)
	if value.Style&yaml.LiteralStyle == 0 {
		return at
	}
	lines := bytes.Split(d.text, []byte("\n"))
	if value.Line >= len(lines) {
		return at
	}
	first := strings.TrimRight(string(lines[value.Line]), "\r") // the one after value's
	indent := len(first) - len(strings.TrimLeft(first, " "))
	return place{at.line + n.Line, n.Column + indent}
}
