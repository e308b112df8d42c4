package manifest

import (
	"encoding/json"
	"fmt"
	"go/ast"
	goparser "go/parser"
	"go/token"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/spec/netpol"
	"github.com/stead-project/stead/spec/quota"
	"github.com/stead-project/stead/spec/scalar"
)

const (
	manifestDoc = "../docs/MANIFEST.md"
	fieldsBegin = "<!-- fields: begin -->\n"
	fieldsEnd   = "<!-- fields: end -->"
)

// TestManifestDoc fails when docs/MANIFEST.md does not list the fields as the types
// declare them; with -update it writes them.
func TestManifestDoc(t *testing.T) {
	doc, err := os.ReadFile(manifestDoc)
	if err != nil {
		t.Fatal(err)
	}
	head, rest, ok1 := strings.Cut(string(doc), fieldsBegin)
	_, tail, ok2 := strings.Cut(rest, fieldsEnd)
	if !ok1 || !ok2 {
		t.Fatal("the markers are gone")
	}
	want := head + fieldsBegin + fieldTables(t) + fieldsEnd + tail
	if want == string(doc) {
		return
	}
	if !*update {
		t.Fatal("docs/MANIFEST.md is stale; run go test ./manifest -run TestManifestDoc -update")
	}
	if err := os.WriteFile(manifestDoc, []byte(want), 0o644); err != nil {
		t.Fatal(err)
	}
}

func fieldTables(t *testing.T) string {
	notes, kube := fieldNotes(t), newKubeTable(t)
	set := full[spec.StatefulSet]()
	spec.Default(&set.Spec)
	service := full[spec.Service]()
	spec.DefaultService(&service.Spec)
	var out strings.Builder
	for _, kind := range []any{*set, *service, *full[records.Endpoints](), *full[records.EndpointSlice](), *full[spec.ConfigMap](), *full[spec.Secret](),
		*full[spec.PodDisruptionBudget](), *full[spec.PersistentVolumeClaim](), *full[netpol.NetworkPolicy](), *full[quota.ResourceQuota]()} {
		v := reflect.ValueOf(kind)
		name := v.Type().Name()
		fmt.Fprintf(&out, "\n### %s\n\n%s\n\n| path | type | default | as in | support | seen in | |\n|---|---|---|---|---|---|---|\n", name, kube.count(name))
		d := &fieldLister{t: t, kind: name, kube: kube, notes: notes, seen: map[reflect.Type]string{}, out: &out}
		d.list(v, "")
	}
	out.WriteString("\n### Where it is seen\n\n")
	list, _ := observations(t)
	for i, o := range list {
		fmt.Fprintf(&out, "%d. %s\n", i+1, o)
	}
	return out.String() + "\n"
}

// full makes a T in which every supported part is there, so that defaults show.
func full[T any]() *T {
	v := new(T)
	fillParts(reflect.ValueOf(v).Elem())
	return v
}

func fillParts(v reflect.Value) {
	for _, f := range fieldsOf(v.Type()) {
		part := v.Field(f.index)
		if f.later || f.ignored {
			continue
		}
		if part.Kind() == reflect.Slice && describable(part.Type().Elem()) {
			part.Set(reflect.MakeSlice(part.Type(), 1, 1))
			part = part.Index(0)
		}
		if !describable(part.Type()) {
			continue
		}
		if part.Kind() == reflect.Pointer {
			part.Set(reflect.New(part.Type().Elem()))
			part = part.Elem()
		}
		fillParts(part)
	}
}

// describable: a struct with fields of its own, or a pointer to one.
func describable(t reflect.Type) bool {
	t = indirect(t)
	return t.Kind() == reflect.Struct && !reflect.PointerTo(t).Implements(reflect.TypeFor[scalar.Value]())
}

type fieldLister struct {
	t     *testing.T
	kind  string
	kube  *kubeTable
	notes map[string]string
	seen  map[reflect.Type]string
	only  []string // paths that only Stead has
	out   *strings.Builder
}

// otherDefaults are defaults that no constant tells.
var otherDefaults = map[string]string{
	"spec.replicas":      "the present number; 1 at creation",
	"spec.serviceName":   "the set's name",
	"metadata.namespace": "that of `-n`",
	"spec.template.spec.containers[].imagePullPolicy": "by the tag",
	"spec.template.spec.containers[].resources":       "requests: the limits",
}

func (d *fieldLister) list(v reflect.Value, path string) {
	for _, f := range fieldsOf(v.Type()) {
		at := join(path, f.name)
		value := v.Field(f.index)
		inner := value
		if inner.Kind() == reflect.Slice && inner.Len() == 1 {
			inner = inner.Index(0)
			at += "[]"
		}
		for inner.Kind() == reflect.Pointer && !inner.IsNil() {
			inner = inner.Elem()
		}
		shown := typeName(f.typ)
		open := describable(inner.Type()) && inner.Kind() == reflect.Struct && !f.later && !f.ignored
		if first, twice := d.seen[inner.Type()]; open && twice {
			shown, open = "as "+first, false
		}
		d.row(f, v.Type(), at, shown, d.defaultOf(at, inner, open))
		if open {
			d.seen[inner.Type()] = "`" + at + "`"
			d.list(inner, at)
		}
	}
}

// row writes what is said of a field: from the table of Kubernetes' fields or, of a field that only
// Stead has, from its tag.
func (d *fieldLister) row(f field, of reflect.Type, at, shown, value string) {
	words, note := support(f), []string{d.notes[of.Name()+"."+of.Field(f.index).Name]}
	switch {
	case d.kube.has(d.kind, at):
		words = d.kube.support(d.kind, at)
		note = append(note, emphasized(d.kube.sentences(d.kind, at)))
	case f.only || d.inOnly(at):
		note = append(note, emphasized(f.instead))
	case slices.Contains(newer, d.kind+" "+at):
		note = append(note, emphasized(f.instead))
	default:
		d.t.Errorf("%s %s: Kubernetes 1.33 does not have it, and it has no tag only", d.kind, at)
	}
	if f.only {
		d.only = append(d.only, at)
	}
	fmt.Fprintf(d.out, "| `%s` | %s | %s | %s | %s | %s | %s |\n", at, shown, value, d.kube.example(d.kind, at), words,
		d.kube.seenIn(d.kind, at), strings.TrimSpace(strings.Join(note, " ")))
}

// emphasized marks what users are told.
func emphasized(sentence string) string {
	if sentence == "" {
		return ""
	}
	return "*" + strings.ReplaceAll(sentence, "*", `\*`) + "*"
}

// inOnly reports whether the field is in one that only Stead has.
func (d *fieldLister) inOnly(at string) bool {
	return slices.ContainsFunc(d.only, func(above string) bool { return within(at, above) })
}

func (d *fieldLister) defaultOf(path string, v reflect.Value, open bool) string {
	if other, ok := otherDefaults[path]; ok {
		return other
	}
	if open || describable(v.Type()) || v.IsZero() && v.Kind() != reflect.Int32 && v.Kind() != reflect.Int64 {
		return ""
	}
	if v.IsZero() && !v.CanAddr() {
		return ""
	}
	b, err := json.Marshal(v.Interface())
	if err != nil || string(b) == "0" && !pointed(path) {
		return ""
	}
	return "`" + strings.Trim(string(b), `"`) + "`"
}

// pointed: numbers whose default is a 0 that is written out.
func pointed(path string) bool { return strings.HasSuffix(path, ".partition") }

// support are the words for a field that Kubernetes 1.33 does not have.
func support(f field) string {
	words := honoured
	switch {
	case f.later:
		words = refused
	case f.ignored:
		words = nothing
	}
	if f.only {
		words += " (stead/v1)"
	}
	return string(words)
}

func typeName(t reflect.Type) string {
	t = indirect(t)
	switch t {
	case reflect.TypeFor[scalar.Quantity]():
		return "quantity"
	case reflect.TypeFor[scalar.IntOrPercent]():
		return "number or percent"
	case reflect.TypeFor[spec.OrdinalSpan]():
		return "ordinal or run of them"
	case reflect.TypeFor[scalar.Duration]():
		return "time span"
	case reflect.TypeFor[scalar.PortRef]():
		return "port number or name"
	case reflect.TypeFor[scalar.Bytes]():
		return "base64"
	}
	switch t.Kind() {
	case reflect.Slice:
		return "list of " + typeName(t.Elem())
	case reflect.Map:
		return "map to " + typeName(t.Elem())
	case reflect.Struct:
		return "mapping"
	case reflect.Bool:
		return "bool"
	case reflect.Int32, reflect.Int64:
		return "number"
	case reflect.String:
		return "text"
	}
	return ""
}

// fieldNotes are the doc comments of all fields, by Type.Field.
func fieldNotes(t *testing.T) map[string]string {
	notes := map[string]string{}
	for _, name := range []string{"set.go", "claim.go", "ordinals.go", "template.go", "security.go", "hostaccess.go", "media.go", "service.go", "downward.go", "dns.go", "budget.go", "memberhook.go", "job.go", "difference.go", "netpol/netpol.go", "quota/quota.go", "../records/endpointmanifest.go"} {
		file, err := goparser.ParseFile(token.NewFileSet(), "../spec/"+name, nil, goparser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			decl, ok := n.(*ast.TypeSpec)
			if !ok {
				return true
			}
			if body, ok := decl.Type.(*ast.StructType); ok {
				for _, f := range body.Fields.List {
					for _, id := range f.Names {
						text := strings.Join(strings.Fields(f.Doc.Text()), " ")
						notes[decl.Name.Name+"."+id.Name] = strings.ReplaceAll(text, "|", "\\|")
					}
				}
			}
			return false
		})
	}
	return notes
}
