package manifest

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/stead-project/stead/spec"
)

var update = flag.Bool("update", false, "write golden files and docs/MANIFEST.md anew")

func read(t *testing.T, name string) Source {
	t.Helper()
	content, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return Source{Name: filepath.Base(name), Content: content}
}

// mustParse wants no problem and no warning.
func mustParse(t *testing.T, files ...Source) Objects {
	t.Helper()
	o, problems, warnings := Parse(files, Options{})
	for _, p := range append(problems, warnings...) {
		t.Errorf("unexpected: %s", p)
	}
	if t.Failed() {
		t.FailNow()
	}
	return o
}

func TestTheWholeManifestIsRead(t *testing.T) {
	o := mustParse(t, read(t, "whole.yaml"))
	if len(o.Sets) != 1 || len(o.Services) != 1 || len(o.ConfigMaps) != 1 || len(o.Secrets) != 1 {
		t.Fatalf("got %d sets, %d services, %d config maps, %d secrets", len(o.Sets), len(o.Services), len(o.ConfigMaps), len(o.Secrets))
	}
	got, err := json.MarshalIndent(o, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "whole.json", append(got, '\n'))
}

// golden compares with a file below testdata.
func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(file, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s differs; got\n%s\nwant\n%s", file, got, want)
	}
}

// TestProblems parses each file of testdata/problems; beside it lies what must be said.
func TestProblems(t *testing.T) {
	files, err := filepath.Glob("testdata/problems/*.yaml")
	if err != nil || len(files) < 5 {
		t.Fatalf("found %d files, %v", len(files), err)
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".yaml")
		t.Run(name, func(t *testing.T) {
			_, problems, warnings := Parse([]Source{read(t, "problems/"+name+".yaml")}, Options{})
			var out strings.Builder
			for _, p := range problems {
				out.WriteString(p.String() + "\n")
			}
			for _, p := range warnings {
				out.WriteString("warning: " + p.String() + "\n")
			}
			if len(problems)+len(warnings) == 0 {
				t.Error("nothing was said")
			}
			golden(t, "problems/"+name+".txt", []byte(out.String()))
		})
	}
}

func TestParsedSetsComeBackFromYAML(t *testing.T) {
	first := mustParse(t, read(t, "whole.yaml"))
	var text []byte
	for _, v := range []any{first.Sets[0], first.Services[0], first.ConfigMaps[0], first.Secrets[0]} {
		if s, isSet := v.(spec.StatefulSet); isSet {
			s.APIVersion = "stead/v1"
			s.Metadata.Annotations = nil
			v = s
		}
		doc, err := toYAML(v)
		if err != nil {
			t.Fatal(err)
		}
		text = append(append(text, "---\n"...), doc...)
	}
	second := mustParse(t, Source{Name: "printed", Content: text})
	if !reflect.DeepEqual(first.Sets[0].Spec, second.Sets[0].Spec) {
		t.Errorf("got %+v, want %+v\n%s", second.Sets[0].Spec, first.Sets[0].Spec, text)
	}
	if !reflect.DeepEqual(first.Secrets, second.Secrets) || !reflect.DeepEqual(first.ConfigMaps, second.ConfigMaps) ||
		!reflect.DeepEqual(first.Services, second.Services) {
		t.Errorf("an object changed on its way\n%s", text)
	}
}
