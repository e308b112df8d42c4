package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestPiecesAreChosenByName(t *testing.T) {
	all, err := choose(nil)
	if err != nil || len(all) != len(pieces) {
		t.Errorf("no names: %d pieces, %v; want all %d", len(all), err, len(pieces))
	}
	some, err := choose([]string{"box", "etcd"})
	if err != nil || len(some) != 2 || some[0].name != "box" || some[1].name != "etcd" {
		t.Errorf("got %+v, %v; want box, etcd", some, err)
	}
	if _, err := choose([]string{"box", "nothing"}); err == nil || !strings.Contains(err.Error(), `"nothing"`) {
		t.Errorf("got %v; want it refused by name", err)
	}
}

func TestARunThatPassedNothingIsAFailure(t *testing.T) {
	log := filepath.Join(t.TempDir(), "log")
	p := piece{tells: []string{"acts:"}}
	for text, want := range map[string]bool{
		"testing: warning: no tests to run\nPASS\n":               false,
		"    x_test.go:1: acts: map[a:1]\n--- PASS: TestX (1s)\n": true,
	} {
		if err := os.WriteFile(log, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		told, err := p.told(log)
		if (err == nil) != want || want && (len(told) != 1 || told[0] != "acts: map[a:1]") {
			t.Errorf("%q: told %q, %v", text, told, err)
		}
	}
}

// A piece whose test was renamed away would fail only in the next soak.
func TestEveryPieceNamesATest(t *testing.T) {
	for _, p := range pieces {
		if p.program != nil {
			if _, err := os.Stat(filepath.Join("..", "..", p.program(1)[0])); err != nil {
				t.Errorf("piece %s: %v", p.name, err)
			}
			continue
		}
		test, _, _ := strings.Cut(p.test, "/") // and a test below it
		name := strings.Trim(test, "^$")
		files, err := filepath.Glob(filepath.Join("..", "..", p.pkg, "*_test.go"))
		if err != nil {
			t.Fatal(err)
		}
		found := false
		for _, f := range files {
			text, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			found = found || strings.Contains(string(text), "func "+name+"(t *testing.T)")
		}
		if !found {
			t.Errorf("piece %s: %s has no test %s", p.name, p.pkg, name)
		}
	}
}
