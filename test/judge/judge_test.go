package judge

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// grave are words in which tests tell of a broken promise.
var grave = regexp.MustCompile(`(?i)two lives|lock held|acknowledged|lost\b|volume of|data of|processes (changed|became|left)|: processes|` +
	`left behind|not concerned|secret|touched|orphan|foreign file|down at once|outlived|is another|is held|silent host`)

// failing are the methods of a test that fail it by themselves.
var failing = map[string]bool{"Error": true, "Errorf": true, "Fatal": true, "Fatalf": true}

// graveIn lists the calls in a file that tell of a broken promise and are no judge's.
func graveIn(fset *token.FileSet, f *ast.File) (found []string) {
	ast.Inspect(f, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok || len(call.Args) == 0 {
			return true
		}
		method, ok := call.Fun.(*ast.SelectorExpr)
		if !ok || !failing[method.Sel.Name] {
			return true
		}
		if name, ok := method.X.(*ast.Ident); ok && (name.Name == "fmt" || name.Name == "judge") {
			return true
		}
		if words := spoken(call.Args[0]); grave.MatchString(words) {
			found = append(found, fset.Position(call.Pos()).String()+": "+words)
		}
		return true
	})
	return found
}

// spoken are the literal words in an expression.
func spoken(e ast.Expr) (words string) {
	ast.Inspect(e, func(n ast.Node) bool {
		if text, ok := n.(*ast.BasicLit); ok {
			words += text.Value
		}
		return true
	})
	return words
}

// The runner can only spare those from a second chance that say what they are.
func TestWhoTellsOfABrokenPromiseIsAJudge(t *testing.T) {
	files, err := filepath.Glob("../e2e/*_test.go")
	if err != nil || len(files) < 20 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	judges := 0
	for _, path := range files {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		fset := token.NewFileSet()
		f, err := parser.ParseFile(fset, path, text, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, call := range graveIn(fset, f) {
			t.Errorf("%s: say it with judge.Broken, or in other words", call)
		}
		judges += strings.Count(string(text), "judge.Broken(")
	}
	if judges < 20 {
		t.Errorf("only %d judges were found", judges)
	}
}

func TestAJudgeIsToldFromAnError(t *testing.T) {
	const text = `package x
func f(l *lab) {
	l.t.Errorf("two lives: %s", a)
	t.Fatal("the secret is shown")
	m.Error("two lives: " + a)
	t.Errorf("a page is late")
	judge.Broken(t, "two lives")
	return fmt.Errorf("the volume of %s is not there yet", a)
}`
	fset := token.NewFileSet()
	f, err := parser.ParseFile(fset, "x.go", text, 0)
	if err != nil {
		t.Fatal(err)
	}
	if got := graveIn(fset, f); len(got) != 3 || !strings.HasPrefix(got[0], "x.go:3:") || !strings.HasPrefix(got[1], "x.go:4:") || !strings.HasPrefix(got[2], "x.go:5:") {
		t.Errorf("got %q, want lines 3, 4 and 5", got)
	}
}

// said is a test that keeps what it is told.
type said []string

func (s *said) Helper()           {}
func (s *said) Error(args ...any) { *s = append(*s, args[0].(string)) }

func TestAJudgesWordsBeginWithTheMarker(t *testing.T) {
	var s said
	Broken(&s, "%d lives", 2)
	if len(s) != 1 || s[0] != "SAFETY: 2 lives" {
		t.Errorf("it says %q", s)
	}
}
