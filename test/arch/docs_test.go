package arch

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	namedFile = regexp.MustCompile("`([a-z][a-z0-9-]*(?:/[a-z0-9_.-]+)*\\.go)`")
	namedTest = regexp.MustCompile("`(Test[A-Za-z0-9]+)`")
	link      = regexp.MustCompile(`\]\(([^)#:]+)(?:#[^)]*)?\)`)
)

// What the docs say is kept by a file or a test must be there: a promise whose
// test was renamed away is a promise nobody keeps.
func TestDocsNameWhatExists(t *testing.T) {
	root := filepath.Join("..", "..")
	tests := testNames(t, root)
	docs := []string{filepath.Join(root, "README.md"), filepath.Join(root, "CONTRIBUTING.md")}
	err := filepath.WalkDir(filepath.Join(root, "docs"), func(p string, _ fs.DirEntry, err error) error {
		if strings.HasSuffix(p, ".md") {
			docs = append(docs, p)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	files, named := 0, 0
	for _, doc := range docs {
		b, err := os.ReadFile(doc)
		if err != nil {
			t.Fatal(err)
		}
		text := string(b)
		for _, m := range namedFile.FindAllStringSubmatch(text, -1) {
			if !strings.Contains(m[1], "/") {
				continue // a file's name, not its path
			}
			files++
			if _, err := os.Stat(filepath.Join(root, m[1])); err != nil {
				t.Errorf("%s names the file %s, which is not there", doc, m[1])
			}
		}
		for _, m := range namedTest.FindAllStringSubmatch(text, -1) {
			named++
			if !tests[m[1]] {
				t.Errorf("%s names the test %s, which is not there", doc, m[1])
			}
		}
		for _, m := range link.FindAllStringSubmatch(text, -1) {
			if _, err := os.Stat(filepath.Join(filepath.Dir(doc), m[1])); err != nil {
				t.Errorf("%s links to %s, which is not there", doc, m[1])
			}
		}
	}
	if files < 20 || named < 30 {
		t.Errorf("only %d files and %d tests are named: does this test still find them?", files, named)
	}
}

// Every kind of key of the store has a row in the table of writers, so that a key
// that is added says who writes it, and under which guard.
func TestEveryKindOfKeyHasItsWriter(t *testing.T) {
	root := filepath.Join("..", "..")
	keys, err := os.ReadFile(filepath.Join(root, "store", "keys.go"))
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile(filepath.Join(root, "docs", "GUARANTEES.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(page), "## One writer per key")
	table, _, _ = strings.Cut(table, "\n## ")
	first := ""
	for line := range strings.Lines(table) {
		if cells := strings.Split(line, "|"); len(cells) > 2 {
			first += cells[1]
		}
	}
	kinds := regexp.MustCompile(`(?m)^\tKind\w+ += "([a-z]+)"`).FindAllStringSubmatch(string(keys), -1)
	if len(kinds) < 30 {
		t.Errorf("only %d kinds of keys were found: does this test still find them?", len(kinds))
	}
	for _, m := range kinds {
		if !strings.Contains(first, "`"+m[1]+"/") && !strings.Contains(first, "`"+m[1]+"`") {
			t.Errorf("store/keys.go has the kind %q, and docs/GUARANTEES.md does not say who writes it", m[1])
		}
	}
}

// testNames are the tests of the tree.
func testNames(t *testing.T, root string) map[string]bool {
	t.Helper()
	names := map[string]bool{}
	declared := regexp.MustCompile(`(?m)^func (Test\w+)\(t \*testing\.T\)`)
	err := filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(p, "_test.go") {
			if d != nil && d.IsDir() && d.Name() == ".cache" {
				return filepath.SkipDir
			}
			return err
		}
		text, err := os.ReadFile(p)
		for _, m := range declared.FindAllStringSubmatch(string(text), -1) {
			names[m[1]] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}
