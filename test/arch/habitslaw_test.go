package arch

import (
	"fmt"
	"go/ast"
	"go/token"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// headersLeft are folders in which such headers still are, and how many at most.
var headersLeft = map[string]int{}

// headers judges the headers of if and switch: what stands before the semicolon defines new
// variables and has no other effect, so that a reader may skip to the condition. "if err = f();
// err != nil" is the one exception.
func (c *checker) headers(rel, folder string, fset *token.FileSet, f *ast.File) {
	ast.Inspect(f, func(n ast.Node) bool {
		var init ast.Stmt
		switch n := n.(type) {
		case *ast.IfStmt:
			init = n.Init
		case *ast.SwitchStmt:
			init = n.Init
		case *ast.TypeSwitchStmt:
			init = n.Init
		}
		if init == nil {
			return true
		}
		if a, ok := init.(*ast.AssignStmt); ok && (a.Tok == token.DEFINE || endsInErr(a)) {
			return true
		}
		c.headersOf[folder] = append(c.headersOf[folder], rel+":"+strconv.Itoa(fset.Position(init.Pos()).Line))
		return true
	})
}

// judgeHeaders tells of the headers in folders with more of them than headersLeft allows.
func (c *checker) judgeHeaders() {
	for folder, at := range c.headersOf {
		if len(at) <= headersLeft[folder] {
			continue
		}
		for _, where := range at {
			c.add(where, 0, "a header that changes what was there before: put it on a line of its own")
		}
	}
}

// endsInErr: the last of what is assigned is the error that the condition is about.
func endsInErr(a *ast.AssignStmt) bool {
	x, ok := a.Lhs[len(a.Lhs)-1].(*ast.Ident)
	return ok && x.Name == "err"
}

// twins judges the names that a package declares, tests aside: two that differ in capitals only
// are read as one.
func (c *checker) twins(rel, folder string, test bool, fset *token.FileSet, f *ast.File) {
	if test {
		return
	}
	declared := func(id *ast.Ident) {
		key := folder + " " + strings.ToLower(id.Name)
		if other := c.names[key]; other != "" && other != id.Name {
			c.add(rel, fset.Position(id.Pos()).Line, "%s differs from %s of the same package in capitals only: rename one", id.Name, other)
		}
		c.names[key] = id.Name
	}
	for _, d := range f.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if d.Recv == nil {
				declared(d.Name)
			}
		case *ast.GenDecl:
			for _, s := range d.Specs {
				switch s := s.(type) {
				case *ast.TypeSpec:
					declared(s.Name)
				case *ast.ValueSpec:
					for _, id := range s.Names {
						declared(id)
					}
				}
			}
		}
	}
}

// words judges string literals, which are what people read: no phrase of notInMessages.
func (c *checker) words(rel, folder string, fset *token.FileSet, f *ast.File) {
	if wordsLeft[folder] || below(folder, "test") || below(folder, "scripts") {
		return
	}
	imports := map[ast.Node]bool{}
	for _, s := range f.Imports {
		imports[s.Path] = true
	}
	ast.Inspect(f, func(n ast.Node) bool {
		lit, ok := n.(*ast.BasicLit)
		if !ok || lit.Kind != token.STRING || imports[n] {
			return true
		}
		text, err := strconv.Unquote(lit.Value)
		if err != nil {
			return true
		}
		text = strings.NewReplacer("there is no ", "", "there are no ", "").Replace(" " + strings.ToLower(text) + " ")
		for _, phrase := range notInMessages {
			if strings.Contains(text, phrase.words) {
				c.add(rel, fset.Position(lit.Pos()).Line, "%q in a message: %s", strings.TrimSpace(phrase.words), phrase.instead)
			}
		}
		return true
	})
}

// measures judges the sizes of the tree: the caps of measure.go.
func (c *checker) measures() error {
	m, err := Measure(c.root)
	if err != nil {
		return err
	}
	for _, t := range m.Types {
		if most := max(MaxMethods, moreMethods[t.Name]); t.N > most {
			c.add(t.Name, 0, "%d methods, of at most %d: split the type", t.N, most)
		}
	}
	for _, p := range m.Packages {
		if most := max(MaxExported, moreExported[p.Name]); p.N > most {
			c.add(p.Name, 0, "%d exported names, of at most %d: split the package", p.N, most)
		}
	}
	for _, d := range m.Doubles {
		c.add(d.Folders[len(d.Folders)-1], 0, "type %s is also in %s: rename one, or say in sharedNames (names.go) why both have the name",
			d.Name, strings.Join(d.Folders[:len(d.Folders)-1], ", "))
	}
	if with := m.Exported - len(m.Undocumented); with*100 < m.Exported*MinDocs {
		for _, name := range m.Undocumented {
			c.add(name, 0, "no doc comment that says more than the name")
		}
	}
	return nil
}

// MaxBytes of a file in git: binaries and what programs write belong elsewhere.
const MaxBytes = 300_000

// tooLarge judges the size of each file of names, which are relative to root.
func tooLarge(root string, names []string) (found []string) {
	for _, name := range names {
		if info, err := os.Lstat(filepath.Join(root, name)); err == nil && info.Size() > MaxBytes {
			found = append(found, fmt.Sprintf("%s: %d bytes, of at most %d", name, info.Size(), MaxBytes))
		}
	}
	return found
}
