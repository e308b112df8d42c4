// Package arch keeps the law of the house (docs/ARCHITECTURE.md): who may import
// what, what pure code may call, how long a file may be, how packages are named.
// Law and tree change in one commit.
package arch

import (
	"bytes"
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"unicode"
)

// Caps of the law. A tree that goes beyond one is to be split, not the cap to be raised.
const (
	MaxMethods  = 40  // of one type
	MaxExported = 200 // names of one package
	MinDocs     = 95  // exported names of a hundred whose doc comment says more than the name
)

// Measures say how a tree reads. Product code is what is outside of test/ and scripts/;
// generated files and tests are counted as lines only.
type Measures struct {
	Product, Support, Tests, Generated int // lines; support is what of test/ and scripts/ is no test
	Files, Funcs                       []Size
	Types                              []Size   // by methods
	Packages                           []Size   // by exported names
	Doubles                            []Double // exported types with one name and several meanings
	Shared                             int      // names of such types that the law lists, with a reason
	Exported                           int      // names that a doc comment is asked of
	Undocumented                       []string // those of Exported without one that says anything: file:line: name
}

// Size is how large something of the product is, in lines, methods or names.
type Size struct {
	Name string
	N    int
}

// Double is the name of exported types of several packages.
type Double struct {
	Name    string
	Folders []string
}

// Percentile returns that of sizes which are sorted, the largest first; p is from 0 to 100.
func Percentile(sizes []Size, p int) int {
	if len(sizes) == 0 {
		return 0
	}
	return sizes[(len(sizes)-1)*(100-p)/100].N
}

// Measure reads the tree at root.
func Measure(root string) (*Measures, error) {
	m := &measurer{methods: map[string]int{}, exported: map[string]int{}, types: map[string][]string{}}
	err := walkGo(root, func(rel string) error {
		text, err := os.ReadFile(filepath.Join(root, rel))
		if err != nil {
			return err
		}
		return m.file(rel, text)
	})
	if err != nil {
		return nil, err
	}
	m.Types, m.Packages = ranked(m.methods), ranked(m.exported)
	bySize(m.Files)
	bySize(m.Funcs)
	for name, folders := range m.types {
		switch {
		case len(folders) < 2:
		case sharedNames[name] != "":
			m.Shared++
		default:
			slices.Sort(folders)
			m.Doubles = append(m.Doubles, Double{name, folders})
		}
	}
	slices.SortFunc(m.Doubles, func(a, b Double) int { return strings.Compare(a.Name, b.Name) })
	return &m.Measures, nil
}

type measurer struct {
	Measures
	methods  map[string]int // by folder.type
	exported map[string]int // names, by folder
	types    map[string][]string
}

func (m *measurer) file(rel string, text []byte) error {
	lines := bytes.Count(text, []byte("\n"))
	folder := path.Dir(rel)
	support := below(folder, "test") || below(folder, "scripts")
	switch {
	case generated.Match(text):
		m.Generated += lines
		return nil
	case strings.HasSuffix(rel, "_test.go"):
		m.Tests += lines
		return nil
	case support:
		m.Support += lines
	default:
		m.Product += lines
		m.Files = append(m.Files, Size{rel, lines})
	}
	fset := token.NewFileSet()
	f, err := parser.ParseFile(fset, rel, text, parser.ParseComments)
	if err != nil {
		return err
	}
	at := func(n ast.Node) string { return fmt.Sprintf("%s:%d", rel, fset.Position(n.Pos()).Line) }
	for _, d := range f.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if !support {
				m.Funcs = append(m.Funcs, Size{at(d) + " " + d.Name.Name, fset.Position(d.End()).Line - fset.Position(d.Pos()).Line + 1})
				if d.Recv != nil {
					m.methods[folder+"."+receiver(d)]++
				}
			}
			if d.Name.IsExported() && (d.Recv == nil || ast.IsExported(receiver(d))) {
				m.name(folder, support || d.Recv != nil, at(d), d.Name.Name, d.Doc)
			}
		case *ast.GenDecl:
			m.decl(folder, support, at, d)
		}
	}
	return nil
}

// decl counts the exported types, constants and variables of one declaration.
func (m *measurer) decl(folder string, support bool, at func(ast.Node) string, d *ast.GenDecl) {
	for _, s := range d.Specs {
		switch s := s.(type) {
		case *ast.TypeSpec:
			if s.Name.IsExported() {
				m.name(folder, support, at(s), s.Name.Name, s.Doc, d.Doc, s.Comment)
				if !support && !s.Assign.IsValid() {
					m.types[s.Name.Name] = append(m.types[s.Name.Name], folder)
				}
			}
		case *ast.ValueSpec:
			for _, n := range s.Names {
				if n.IsExported() {
					m.name(folder, support, at(n), n.Name, s.Doc, d.Doc, s.Comment)
				}
			}
		}
	}
}

// name counts an exported name; one of a method, or of support, is not of a package's face.
func (m *measurer) name(folder string, aside bool, at, name string, docs ...*ast.CommentGroup) {
	if !aside {
		m.exported[folder]++
	}
	m.Exported++
	if strings.HasPrefix(at, causeFile) {
		return // its own law is stricter
	}
	for _, d := range docs {
		if hasContent(name, d.Text()) {
			return
		}
	}
	m.Undocumented = append(m.Undocumented, at+": "+name)
}

// emptyWords say nothing by themselves.
var emptyWords = map[string]bool{
	"a": true, "an": true, "the": true, "is": true, "are": true, "of": true, "to": true, "for": true, "and": true, "or": true,
	"this": true, "that": true, "it": true, "its": true, "in": true, "by": true, "with": true, "represents": true,
	"returns": true, "return": true, "gets": true, "get": true, "sets": true, "set": true, "type": true, "method": true, "function": true,
}

// hasContent reports whether doc says more than name does: a word that is neither empty nor
// one of the name's.
func hasContent(name, doc string) bool {
	own := splitName(name)
	for _, w := range strings.FieldsFunc(strings.ToLower(doc), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }) {
		if w == strings.ToLower(name) || emptyWords[w] {
			continue
		}
		if !slices.ContainsFunc(own, func(o string) bool { return sameWord(o, w) }) {
			return true
		}
	}
	return false
}

// sameWord: one is the other with an ending of up to three letters.
func sameWord(a, b string) bool {
	if len(a) > len(b) {
		a, b = b, a
	}
	return strings.HasPrefix(b, a) && len(b)-len(a) <= 3
}

// splitName returns the words of a name in camel case, in lower case.
func splitName(name string) []string {
	var words []string
	start := 0
	for i, r := range name {
		if i > start && unicode.IsUpper(r) && !unicode.IsUpper(rune(name[i-1])) {
			words, start = append(words, strings.ToLower(name[start:i])), i
		}
	}
	return append(words, strings.ToLower(name[start:]))
}

// receiver is the name of the type that a method is of.
func receiver(d *ast.FuncDecl) string {
	t := d.Recv.List[0].Type
	for {
		switch x := t.(type) {
		case *ast.StarExpr:
			t = x.X
		case *ast.IndexExpr:
			t = x.X
		case *ast.IndexListExpr:
			t = x.X
		case *ast.Ident:
			return x.Name
		default:
			return ""
		}
	}
}

// ranked are counts, the largest first.
func ranked(counts map[string]int) []Size {
	var sizes []Size
	for name, n := range counts {
		sizes = append(sizes, Size{name, n})
	}
	bySize(sizes)
	return sizes
}

func bySize(sizes []Size) {
	slices.SortFunc(sizes, func(a, b Size) int { return cmp.Or(b.N-a.N, strings.Compare(a.Name, b.Name)) })
}
