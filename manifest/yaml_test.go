package manifest

import (
	"encoding/json"
	"testing"

	"gopkg.in/yaml.v3"
)

// toYAML writes v by its JSON tags.
func toYAML(v any) ([]byte, error) {
	doc, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	return JSONToYAML(doc)
}

func TestJSONToYAML(t *testing.T) {
	in := `{"kind":"ConfigMap","b":[],"a":{},"n":3,"f":1.5,"t":true,"z":null,
	"list":[{"x":"1","y":"yes"},["a"]],"text":"a: b","lines":"#!/bin/sh\n\techo\n","address":"host:2379","time":"22:22"}`
	want := `kind: ConfigMap
b: []
a: {}
"n": 3
f: 1.5
t: true
z: null
list:
  - x: "1"
    "y": "yes"
  - - a
text: "a: b"
lines: |
  #!/bin/sh
  	echo
address: host:2379
time: "22:22"
`
	got, err := JSONToYAML([]byte(in))
	if err != nil || string(got) != want {
		t.Errorf("got\n%s%v\nwant\n%s", got, err, want)
	}
}

func TestJSONToYAMLRefusesTruncatedInput(t *testing.T) {
	for _, in := range []string{``, `{"a":`, `{"a":1`, `[1,`} {
		if out, err := JSONToYAML([]byte(in)); err == nil {
			t.Errorf("%q became %q", in, out)
		}
	}
}

func FuzzTextComesBackFromYAML(f *testing.F) {
	for _, s := range []string{"", "a", "3", "yes", "a\nb\n", "a\n\n", "\n a", " a", "a ", "a #b", "*a", "&a", "- a", "\x7f", "é\u2028",
		"#a\nb", "a\n b", "---\na", "a\n---\nb", "a\n...\n", "\ta\nb", "1:30", "0x10", "~", "null", "!!str a", "%a", "@a", "`a", "a\r\nb", "\ufeffa", "a\n\tb\n", "<<", "=", "2020-01-01"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		j, err := json.Marshal(map[string]any{"k": []string{s}, s: "v"})
		if err != nil {
			t.Fatal(err)
		}
		var want, got map[string]any
		if err := json.Unmarshal(j, &want); err != nil {
			t.Fatal(err)
		}
		if s == "<<" {
			return // a merge key: no field of ours has that name
		}
		y, err := JSONToYAML(j)
		if err != nil {
			t.Fatalf("%q: %v", s, err)
		}
		if err := yaml.Unmarshal(y, &got); err != nil {
			t.Fatalf("%q: %v\n%s", s, err, y)
		}
		a, _ := json.Marshal(want)
		b, _ := json.Marshal(got)
		if string(a) != string(b) {
			t.Fatalf("%q came back as %s, want %s\n%s", s, b, a, y)
		}
	})
}
