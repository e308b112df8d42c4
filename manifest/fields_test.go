package manifest

import (
	"maps"
	"os"
	"strings"
	"testing"

	"gopkg.in/yaml.v3"
)

// kubeField is a line of testdata/fields-1.33.txt: a field of an object of Kubernetes 1.33. How
// the list was made: testdata/kubefields.sh.
type kubeField struct {
	kind string
	path string // as in spec.template.spec.containers[].image
	typ  string // of its value: string, []string, Probe
	of   string // the type that has it, and its name there: Container.image
	leaf bool   // it has no fields of its own
}

// kubeFields are the fields of Kubernetes 1.33.
func kubeFields() []kubeField {
	text, err := os.ReadFile("testdata/fields-1.33.txt")
	if err != nil {
		panic(err)
	}
	var fields []kubeField
	types, parents := map[string]string{}, map[string]bool{}
	for line := range strings.Lines(string(text)) {
		words := strings.Fields(line)
		f := kubeField{kind: words[0], path: words[1], typ: words[2]}
		types[f.kind+" "+f.path] = strings.TrimPrefix(f.typ, "[]")
		above, name := split(f.path)
		owner := f.kind
		if above != "" {
			owner = types[f.kind+" "+above]
			parents[f.kind+" "+above] = true
		}
		f.of = owner + "." + strings.TrimSuffix(name, "[]")
		fields = append(fields, f)
	}
	for i := range fields {
		fields[i].leaf = !parents[fields[i].kind+" "+fields[i].path]
	}
	return fields
}

// split cuts the last name off a path.
func split(path string) (above, name string) {
	i := strings.LastIndexByte(path, '.')
	return path[:max(i, 0)], path[i+1:]
}

// builder makes manifests that set one field, with what else must be there.
type builder struct {
	fields map[string]kubeField // by kind and path
	wrong  *[]string            // what judge found
}

func newBuilder(fields []kubeField) builder {
	b := builder{map[string]kubeField{}, new([]string)}
	for _, f := range fields {
		b.fields[f.kind+" "+f.path] = f
	}
	return b
}

// with is the manifest of f's kind in which f has a value, written in YAML. After " with " the
// value names other fields of the same mapping.
func (b builder) with(f kubeField, value string) string {
	value, others, _ := strings.Cut(value, " with ")
	root := readYAML(plainObjects[f.kind])
	at, path := root.(map[string]any), ""
	above, last := split(f.path)
	for name := range strings.SplitSeq(above, ".") {
		if name == "" {
			break
		}
		path = join(path, name)
		at = b.enter(at, b.fields[f.kind+" "+path])
	}
	last = strings.TrimSuffix(last, "[]")
	makeRoom(at, f.of)
	given := readYAML(value)
	if more, ok := given.(map[string]any); ok && at[last] != nil {
		maps.Copy(at[last].(map[string]any), more)
	} else {
		at[last] = given
	}
	if others != "" {
		maps.Copy(at, readYAML(others).(map[string]any))
	}
	text, err := yaml.Marshal(root)
	if err != nil {
		panic(err)
	}
	return string(text)
}

// enter returns the mapping that is the value of f in at, or its first item; it makes one if there is none.
func (b builder) enter(at map[string]any, f kubeField) map[string]any {
	_, last := split(f.path)
	name, list := strings.CutSuffix(last, "[]")
	makeRoom(at, f.of)
	if at[name] == nil {
		frame, ok := lookUp(frames, f)
		if !ok {
			frame = "{}"
		}
		at[name] = readYAML(frame)
		if list {
			at[name] = []any{at[name]}
		}
	}
	if list {
		return at[name].([]any)[0].(map[string]any)
	}
	return at[name].(map[string]any)
}

// makeRoom removes what cannot be beside the field.
func makeRoom(at map[string]any, of string) {
	if strings.HasPrefix(of, "Volume.") && of != "Volume.name" && of != "Volume.emptyDir" {
		delete(at, "emptyDir")
	}
	delete(at, insteadOfOther[of])
}

// lookUp finds what a table says of f: by its path, by its last two names, by its type and name,
// and by the type of its value.
func lookUp[T any](table map[string]T, f kubeField) (found T, ok bool) {
	names := strings.Split(f.path, ".")
	end := strings.Join(names[max(0, len(names)-2):], ".")
	for _, key := range []string{f.path, end, f.of, strings.TrimPrefix(f.typ, "[]"), f.typ} {
		if value, ok := table[key]; ok {
			return value, true
		}
	}
	return found, false
}

// triesOf are the values that are tried for f.
func triesOf(f kubeField) []string {
	if values, ok := lookUp(tries, f); ok {
		return values
	}
	value, ok := plainValues[f.typ]
	if !ok {
		panic(f.path + ": no value of type " + f.typ)
	}
	return []string{value}
}

func readYAML(text string) (v any) {
	if err := yaml.Unmarshal([]byte(text), &v); err != nil {
		panic(text + ": " + err.Error())
	}
	return v
}

// plainPath is a path without its indexes and keys: spec.ports[].port, data.
func plainPath(path string) string {
	var out strings.Builder
	for path != "" {
		before, rest, found := strings.Cut(path, "[")
		out.WriteString(before)
		if !found {
			break
		}
		key, after, _ := strings.Cut(rest, "]")
		if strings.Trim(key, "0123456789") == "" && strings.HasPrefix(after, ".") {
			out.WriteString("[]")
		}
		path = after
	}
	return out.String()
}

// within reports whether path is that of the field at, or of something in it.
func within(path, at string) bool {
	path, at = strings.ReplaceAll(path, "[]", ""), strings.ReplaceAll(at, "[]", "")
	return path == at || strings.HasPrefix(path, at+".")
}

// TestPathsOfProblemsAreThoseOfFields keeps plainPath and within as the table needs them.
func TestPathsOfProblemsAreThoseOfFields(t *testing.T) {
	for path, want := range map[string]string{
		"spec.a[0].b": "spec.a[].b", "spec.a[12]": "spec.a", "data[a.b/c]": "data", "x": "x", "r.limits[cpu]": "r.limits",
	} {
		if got := plainPath(path); got != want {
			t.Errorf("%s is %s, want %s", path, got, want)
		}
	}
	if !within("a[].b.c", "a.b") || within("a.bc", "a.b") || !within("a", "a") {
		t.Error("within is wrong")
	}
}
