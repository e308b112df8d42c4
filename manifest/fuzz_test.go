package manifest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stead-project/stead/spec"
)

func FuzzParse(f *testing.F) {
	files, err := filepath.Glob("testdata/problems/*.yaml")
	if err != nil || len(files) == 0 {
		f.Fatal("no seeds", err)
	}
	for _, file := range append(files, "testdata/whole.yaml") {
		content, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(content)
	}
	f.Fuzz(func(t *testing.T, content []byte) {
		begin := time.Now()
		o, problems, _ := Parse([]Source{{Name: "f", Content: content}}, Options{})
		if took := time.Since(begin); took > 20*time.Second {
			t.Fatalf("took %s", took)
		}
		for _, p := range problems {
			if p.What == "" || strings.ContainsAny(p.String(), "\n\x1b") {
				t.Fatalf("bad problem %q", p)
			}
		}
		if len(problems) > 0 {
			return
		}
		for _, s := range o.Sets {
			if h := spec.HashTemplate(s.Spec.Template); len(h) != spec.HashLength {
				t.Fatalf("hash %q", h)
			}
			if _, err := toYAML(s); err != nil {
				t.Fatal(err)
			}
		}
	})
}
