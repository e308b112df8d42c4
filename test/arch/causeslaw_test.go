package arch

import (
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"
)

// causeAllowed are words of other kinds that are spelled like a cause, by file, and what they are.
var causeAllowed = map[string]map[string]string{
	"agent/runtime/fakert/volume.go": {"Lost": "the name of a call"},
	"spec/containerstate.go":         {"Exited": "the state of a container", "Lost": "the state of a container"},
	"agent/worker/report.go":         {"Exited": "the state of a container"},
	"scripts/mutants/faults.go":      {"Stray": "names tests"},
	"server/cache/nodestate.go":      {"Lost": "the state of a node"},
	"records/history.go":             {"NotReady": "the kind of a change"},
	"records/member.go":              {"Stopped": "a phase"},
	"records/volume.go":              {"Lost": "the fate of a volume, and what a user says of one", "Refused": "the state of a volume"},
}

// Cause is a constant of the list.
type Cause struct {
	Name, Value, Doc string
	Line             int
	Typed            bool // its type is written
}

// ReadCauses returns the constants of causeFile below root; none if there is no such file.
func ReadCauses(root string) ([]Cause, error) {
	fset := token.NewFileSet()
	f, err := parser.ParseFile(fset, filepath.Join(root, causeFile), nil, parser.ParseComments)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var list []Cause
	ast.Inspect(f, func(n ast.Node) bool {
		v, ok := n.(*ast.ValueSpec)
		if !ok {
			return true
		}
		t, _ := v.Type.(*ast.Ident)
		for i, name := range v.Names {
			c := Cause{Name: name.Name, Doc: strings.TrimSpace(v.Doc.Text() + v.Comment.Text()), Line: fset.Position(name.Pos()).Line}
			c.Typed = t != nil && t.Name == "Cause"
			if i < len(v.Values) {
				c.Value, _ = stringOf(v.Values[i])
			}
			list = append(list, c)
		}
		return false
	})
	return list, nil
}

// causes judges the list, and keeps it for the other files. Agents and servers must not spell a cause on
// their own: one that the planner decides by and no agent says would be noticed by nobody.
func (c *checker) causes() error {
	list, err := ReadCauses(c.root)
	for _, cause := range list {
		c.cause[cause.Value] = cause.Name
		if cause.Value == "" || cause.Name != cause.Value || !cause.Typed {
			c.add(causeFile, cause.Line, "%s is no Cause that is named by its value", cause.Name)
		}
		if cause.Doc == "" || strings.Contains(cause.Doc, "\n") {
			c.add(causeFile, cause.Line, "%s has no comment of one line", cause.Name)
		}
	}
	return err
}

// causeWords finds causes that a file spells by itself, and notes those that agents and
// servers use.
func (c *checker) causeWords(rel, folder string, fset *token.FileSet, f *ast.File) {
	if rel == causeFile || rel == "test/arch/causeslaw_test.go" {
		return
	}
	tags := map[*ast.BasicLit]bool{}
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.Field:
			tags[n.Tag] = true
		case *ast.SelectorExpr:
			if x, ok := n.X.(*ast.Ident); ok && x.Name == "causes" && (below(folder, "agent") || below(folder, "server")) {
				c.used[n.Sel.Name] = true
			}
		case *ast.BasicLit:
			word, _ := stringOf(n)
			name := c.cause[word]
			switch {
			case name == "" || tags[n]:
			case causeAllowed[rel][word] != "":
				c.used[rel+" "+word] = true
			default:
				c.add(rel, fset.Position(n.Pos()).Line, "%q is a cause: write causes.%s (another kind of word is listed in causeAllowed)", word, name)
			}
		}
		return true
	})
}

// stringOf is the value of a literal that is a string.
func stringOf(e ast.Expr) (string, bool) {
	lit, ok := e.(*ast.BasicLit)
	if !ok || lit.Kind != token.STRING {
		return "", false
	}
	s, err := strconv.Unquote(lit.Value)
	return s, err == nil
}
