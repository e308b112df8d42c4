package arch

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"sort"
	"strconv"
	"strings"
)

// MaxLines of a Go file that a person wrote.
const MaxLines = 400

// Check walks the tree at root and returns every violation as
// "path[:line]: what is wrong", sorted, and how many files it judged. Folders
// that .gitignore names at the root, testdata and hidden folders are left out.
func Check(root string) (found []string, files int, err error) {
	c := newChecker(root)
	return c.check()
}

func newChecker(root string) *checker {
	return &checker{
		root: root, doc: map[string]bool{}, pkg: map[string]string{}, clock: clock{kept: map[string]bool{}}, ours: map[string][]edge{},
		names: map[string]string{}, cause: map[string]string{}, used: map[string]bool{}, headersOf: map[string][]string{}, libs: map[string]edge{},
	}
}

func (c *checker) check() (found []string, files int, err error) {
	if err := c.causes(); err != nil {
		return nil, 0, err
	}
	err = walkGo(c.root, func(rel string) error {
		files++
		return c.file(rel)
	})
	if err != nil {
		return nil, 0, err
	}
	for folder, name := range c.pkg {
		if !c.doc[folder] {
			c.add(folder, 0, "package %s has no doc comment", name)
		}
	}
	c.clocks()
	c.facts()
	c.reaches()
	c.judgeHeaders()
	if err := c.measures(); err != nil {
		return nil, 0, err
	}
	if err := c.requirements(); err != nil {
		return nil, 0, err
	}
	sort.Strings(c.found)
	return c.found, files, nil
}

type checker struct {
	root      string
	found     []string
	doc       map[string]bool   // folders whose package has a doc comment
	pkg       map[string]string // package names by folder, tests aside
	clock     clock
	ours      map[string][]edge   // imports of our packages, by importing folder
	names     map[string]string   // of declarations of a package, by folder and name in lower case
	cause     map[string]string   // names of the constants of causeFile, by value
	libs      map[string]edge     // where a foreign package is imported
	headersOf map[string][]string // where headers have effects, by folder
	used      map[string]bool     // names that agents and servers take from packages, and entries of causeAllowed that a file needs
}

func (c *checker) add(rel string, line int, format string, args ...any) {
	where := rel
	if line > 0 {
		where += ":" + strconv.Itoa(line)
	}
	c.found = append(c.found, where+": "+fmt.Sprintf(format, args...))
}

var (
	// Machine paths: somebody's home or workplace. Words of unfinished work.
	machinePath = regexp.MustCompile(`"(/ho` + `me/[a-z]|/Users/|/wo` + `rk/|/root/)`)
	unfinished  = regexp.MustCompile(`\b(` + "TO" + `DO|FIX` + `ME|XX` + `X)\b`)
)

// file judges one file.
func (c *checker) file(rel string) error {
	text, err := os.ReadFile(filepath.Join(c.root, rel))
	if err != nil {
		return err
	}
	fset := token.NewFileSet()
	f, err := parser.ParseFile(fset, rel, text, parser.ParseComments)
	if err != nil {
		return err
	}
	folder := path.Dir(rel)
	if folder == "." {
		folder = ""
	}
	test := strings.HasSuffix(rel, "_test.go")
	if !test {
		c.pkg[folder] = f.Name.Name
		c.doc[folder] = c.doc[folder] || f.Doc != nil
	}
	if badNames[f.Name.Name] {
		c.add(rel, 0, "package name %s says nothing", f.Name.Name)
	}
	for _, s := range f.Imports {
		p, _ := strconv.Unquote(s.Path.Value)
		if why := importProblem(folder, p, test); why != "" {
			c.add(rel, fset.Position(s.Pos()).Line, "import %s: %s", p, why)
		}
		if foreign(p) && !below(p, module) && !below(folder, "test/bench/coredns") && !below(folder, "test/bench/kubernetes") { // these are modules of their own
			c.libs[p] = edge{file: rel, line: fset.Position(s.Pos()).Line}
		}
		if to, ok := strings.CutPrefix(p, module+"/"); ok {
			c.ours[folder] = append(c.ours[folder], edge{to, rel, fset.Position(s.Pos()).Line, test})
		}
	}
	if generated.Match(text) {
		return nil
	}
	lines := strings.Split(string(text), "\n")
	if len(lines)-1 > MaxLines {
		c.add(rel, 0, "%d lines; split it (300 ask for it, %d fail)", len(lines)-1, MaxLines)
	}
	for i, line := range lines {
		if unfinished.MatchString(line) {
			c.add(rel, i+1, "unfinished: %s", strings.TrimSpace(line))
		}
		if machinePath.MatchString(line) && !test {
			c.add(rel, i+1, "path of one machine: %s", strings.TrimSpace(line))
		}
	}
	c.calls(rel, folder, test, fset, f)
	c.twins(rel, folder, test, fset, f)
	c.headers(rel, folder, fset, f)
	if !test {
		c.words(rel, folder, fset, f)
		c.clock.read(rel, folder, fset, f)
		c.causeWords(rel, folder, fset, f)
	}
	return nil
}

// calls judges what a file calls.
func (c *checker) calls(rel, folder string, test bool, fset *token.FileSet, f *ast.File) {
	ast.Inspect(f, func(n ast.Node) bool {
		s, ok := n.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		x, ok := s.X.(*ast.Ident)
		if !ok {
			return true
		}
		call, line := x.Name+"."+s.Sel.Name, fset.Position(s.Pos()).Line
		switch call {
		case "context.Background", "context.TO" + "DO":
			if !test && !below(folder, "cmd") && !below(folder, "scripts") && !below(folder, "test") {
				c.add(rel, line, "%s below cmd: take the caller's context", call)
			}
		case "time.Now", "time.Since", "time.Until", "time.Sleep", "time.After", "time.NewTimer", "time.NewTicker":
			if isPure(folder) && !test {
				c.add(rel, line, "%s in pure code: time comes in as data", call)
			}
			if slices.Contains(simulated, folder) && !test && readsClock[call] {
				c.add(rel, line, "%s in code that is simulated: time comes in by its Config", call)
			}
		}
		return true
	})
	if isPure(folder) && !test {
		ast.Inspect(f, func(n ast.Node) bool {
			if g, ok := n.(*ast.GoStmt); ok {
				c.add(rel, fset.Position(g.Pos()).Line, "goroutine in pure code")
			}
			return true
		})
	}
	for _, d := range f.Decls {
		if fn, ok := d.(*ast.FuncDecl); ok && fn.Name.Name == "init" && fn.Recv == nil {
			c.add(rel, fset.Position(fn.Pos()).Line, "func init: effects belong to a caller")
		}
	}
}
