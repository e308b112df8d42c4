package main

import (
	"bytes"
	"debug/elf"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// newList writes a list with a module beside it that has the program "hello" and a test package that is none.
func newList(t *testing.T, program string) List {
	t.Helper()
	lists := t.TempDir()
	for name, text := range map[string]string{
		"db.list":           "image example.test/db:1\ngo " + program + "\n",
		"db/go.mod":         "module example.test/db\n\ngo 1.26.0\n",
		"db/go.sum":         "",
		"db/LICENSE":        "do as you like\n",
		"db/hello/main.go":  "package main\n\nimport \"os/user\"\n\nfunc main() { _, _ = user.Current() }\n", // by the C library, where that is allowed
		"db/broken/main.go": "package main\n\nfunc main() { nothing() }\n",
		"db/none/none.go":   "package none\n",
	} {
		path := filepath.Join(lists, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	chain, err := ReadChain(lists, "db")
	if err != nil {
		t.Fatal(err)
	}
	return chain[0]
}

func TestAGoProgramIsStaticAndTheSameWhereverItIsBuilt(t *testing.T) {
	t.Setenv("GOFLAGS", "-race") // of somebody's environment
	t.Setenv("CGO_ENABLED", "1")
	var programs [][]byte
	for range 2 {
		tree := Tree{}
		if err := tree.AddPrograms(newList(t, "example.test/db/hello")); err != nil {
			t.Fatal(err)
		}
		e := tree["usr/bin/hello"]
		if e.Mode != 0o755 {
			t.Errorf("it has mode %o", e.Mode)
		}
		if got := string(tree["usr/share/doc/hello/copyright"].Content); !strings.Contains(got, "example.test/db ") || !strings.Contains(got, "do as you like") {
			t.Errorf("its copyright says %q", got)
		}
		programs = append(programs, e.Content)
	}
	if !bytes.Equal(programs[0], programs[1]) {
		t.Error("two builds in two folders differ")
	}
	f, err := elf.NewFile(bytes.NewReader(programs[0]))
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP {
			t.Error("it asks for a dynamic linker")
		}
	}
}

func TestAGoProgramThatIsNotToBeHadIsNamed(t *testing.T) {
	for program, want := range map[string]string{
		"example.test/db/broken":  "undefined: nothing",
		"example.test/db/none":    "no main packages",
		"example.test/other/tool": filepath.Join("db", "go.mod") + " must pin the program",
	} {
		err := Tree{}.AddPrograms(newList(t, program))
		if err == nil || !strings.Contains(err.Error(), "db.list:2: ") || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", program, err)
		}
	}
	for _, bad := range []string{"go", "go nats-server", "go ./tool", "go example.test/tool@v1.0.0", "go example.test/tool v1.0.0", "go -toolexec=x"} {
		if _, err := ParseList("l", bad); err == nil {
			t.Errorf("%q is taken", bad)
		}
	}
}

func TestAnImageIsBuiltAgainWhenTheModuleOfItsProgramChanges(t *testing.T) {
	l := newList(t, "example.test/db/hello")
	out := t.TempDir()
	// It says whether the archive was written.
	built := func() bool {
		t.Helper()
		archive := filepath.Join(out, "db.tar")
		before, _ := os.Stat(archive)
		if err := build(filepath.Dir(l.Path), t.TempDir(), t.TempDir(), out, "db"); err != nil {
			t.Fatal(err)
		}
		after, err := os.Stat(archive)
		if err != nil {
			t.Fatal(err)
		}
		return !os.SameFile(before, after)
	}
	if !built() {
		t.Fatal("there is no image")
	}
	archive, err := os.ReadFile(filepath.Join(out, "db.tar"))
	if err != nil || !bytes.Contains(archive, []byte("usr/bin/hello")) {
		t.Errorf("the image lacks the program, %v", err)
	}
	if built() {
		t.Error("nothing changed, and it is built again")
	}
	for _, name := range []string{"go.mod", "go.sum"} {
		f, err := os.OpenFile(filepath.Join(l.module(), name), os.O_APPEND|os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.WriteString("\n"); err != nil {
			t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
		if !built() {
			t.Errorf("%s changed, and it is not built again", name)
		}
	}
	if err := os.Remove(filepath.Join(l.module(), "go.sum")); err != nil {
		t.Fatal(err)
	}
	if err := build(filepath.Dir(l.Path), t.TempDir(), t.TempDir(), out, "db"); err == nil {
		t.Error("a module without sums is taken")
	}
}

// An image is known by its tag: by that a host sees that it has another program.
func TestAnImageOfAGoProgramHasItsVersion(t *testing.T) {
	lists, err := filepath.Glob("../images/*.list")
	if err != nil || len(lists) == 0 {
		t.Fatalf("found %d lists, %v", len(lists), err)
	}
	found := 0
	for _, path := range lists {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		l, err := ParseList(path, string(text))
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range l.Programs {
			found++
			mod, err := os.ReadFile(filepath.Join(l.module(), "go.mod"))
			if err != nil {
				t.Fatal(err)
			}
			_, tag, _ := strings.Cut(l.Image, ":")
			if !regexp.MustCompile(regexp.QuoteMeta(p.Path) + ` v` + regexp.QuoteMeta(tag) + `\s`).Match(mod) {
				t.Errorf("%s:%d: the image is %s, and go.mod pins another version of %s", path, p.Line, l.Image, p.Path)
			}
		}
	}
	if found == 0 {
		t.Error("no list has a Go program")
	}
}
