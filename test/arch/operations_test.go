package arch

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// What operators read is looked up by its words: every message in the tables of
// docs/OPERATIONS.md is one that the code says, and every word for a waiting or
// failing member that the code has stands there.
func TestOperationsTellsWhatTheCodeSays(t *testing.T) {
	root := filepath.Join("..", "..")
	text, err := os.ReadFile(filepath.Join(root, "docs", "OPERATIONS.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, tables, found := strings.Cut(string(text), "## What Stead says, and what to do")
	if !found {
		t.Fatal("docs/OPERATIONS.md has no chapter on what Stead says")
	}
	tables, _, _ = strings.Cut(tables, "\n## ")
	said, words := literals(t, root)
	causes, err := ReadCauses(root)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range causes {
		words[c.Value] = fmt.Sprintf("%s:%d", causeFile, c.Line)
	}
	told, quoted := map[string]bool{}, regexp.MustCompile("`([^`]+)`")
	for line := range strings.Lines(tables) {
		if !strings.HasPrefix(line, "| `") {
			continue
		}
		first, _, _ := strings.Cut(line[2:], " | ")
		for _, m := range quoted.FindAllStringSubmatch(first, -1) {
			told[m[1]] = true
			if !says(said, m[1]) {
				t.Errorf("OPERATIONS.md explains %q, which no code says", m[1])
			}
		}
	}
	if len(told) < 60 || len(words)-len(causes) < 25 || len(causes) < 35 {
		t.Errorf("%d messages, %d causes and %d words were found: does this test still find them?", len(told), len(causes), len(words))
	}
	for word, at := range words {
		if !told[word] {
			t.Errorf("OPERATIONS.md does not explain %q (%s)", word, at)
		}
	}
}

func says(said []string, words string) bool {
	for _, s := range said {
		if strings.Contains(s, words) {
			return true
		}
	}
	return false
}

// literals are all texts of our code, and the constants Blocked… of the planner with their
// place: the words for members that wait. Those of them that are causes are in spec/causes.
func literals(t *testing.T, root string) (said []string, words map[string]string) {
	t.Helper()
	words = map[string]string{}
	files := token.NewFileSet()
	for _, top := range []string{"agent", "cmd", "dnsd", "proto", "records", "server", "spec", "store", "trust"} {
		err := filepath.WalkDir(filepath.Join(root, top), func(path string, _ os.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			file, err := parser.ParseFile(files, path, nil, parser.SkipObjectResolution)
			if err != nil {
				return err
			}
			ast.Inspect(file, func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.BasicLit:
					if s, ok := stringOf(n); ok {
						said = append(said, s)
					}
				case *ast.ValueSpec:
					if word := blockedWord(n); word != "" {
						words[word] = files.Position(n.Pos()).String()
					}
				}
				return true
			})
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return said, words
}

// blockedWord is the value of a constant that names why a member waits.
func blockedWord(n *ast.ValueSpec) string {
	if len(n.Names) != 1 || len(n.Values) != 1 || !strings.HasPrefix(n.Names[0].Name, "Blocked") {
		return ""
	}
	word, _ := stringOf(n.Values[0])
	return word
}
