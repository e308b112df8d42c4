package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
)

// mutant is one change of one condition.
type mutant struct {
	id   int
	file string // from the root of the tree
	line int
	// kind is negated; or dropped: one side of an && or || is taken away; or moved: an
	// order takes in what is equal, or leaves it out.
	kind, text string
	nth        int // of the same file, kind and text, from 1
}

// key names a mutant however lines move.
func (m mutant) key() string {
	key := fmt.Sprintf("%s: %s: %s", m.file, m.kind, m.text)
	if m.nth > 1 {
		key += fmt.Sprintf(" (%d)", m.nth)
	}
	return key
}

// hook is added to each package: one mutant is awake in a process, or none.
const hook = `package %s

import (
	"os"
	"strconv"
)

var awakeMutant, _ = strconv.Atoi(os.Getenv("STEAD_MUTANT"))

func mutantNot(id int, c bool) bool   { return c != (awakeMutant == id) }
func mutantTrue(id int, c bool) bool  { return c || awakeMutant == id }
func mutantFalse(id int, c bool) bool { return c && awakeMutant != id }

func mutantEdge(id int, c, moved bool) bool {
	if awakeMutant == id {
		return moved
	}
	return c
}
`

// rewriter puts all mutants of many files into them at once, asleep.
type rewriter struct {
	mutants []mutant
	seen    map[string]int

	src  []byte
	fset *token.FileSet
	file string
	cuts []cut
}

type cut struct {
	from, to int
	text     string
}

// rewrite returns the file with its mutants.
func (r *rewriter) rewrite(root, file string) ([]byte, error) {
	src, err := os.ReadFile(filepath.Join(root, file))
	if err != nil {
		return nil, err
	}
	r.src, r.fset, r.file, r.cuts = src, token.NewFileSet(), file, nil
	tree, err := parser.ParseFile(r.fset, file, src, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	ast.Inspect(tree, r.visit)
	return []byte(r.splice(0, len(src))), nil
}

// splice is this part of the file, with the cuts that were made in it.
func (r *rewriter) splice(at, end int) string {
	var out strings.Builder
	for _, c := range r.cuts {
		out.Write(r.src[at:c.from])
		out.WriteString(c.text)
		at = c.to
	}
	out.Write(r.src[at:end])
	return out.String()
}

// visit finds conditions, outermost first; their insides are rewritten with them.
func (r *rewriter) visit(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.GenDecl:
		return n.Tok != token.CONST
	case *ast.IfStmt:
		if n.Init != nil {
			ast.Inspect(n.Init, r.visit)
		}
		r.condition(n.Cond)
		ast.Inspect(n.Body, r.visit)
		if n.Else != nil {
			ast.Inspect(n.Else, r.visit)
		}
		return false
	case *ast.ForStmt: // its condition bounds a loop: what it guards is inside
		ast.Inspect(n.Body, r.visit)
		return false
	case *ast.SwitchStmt:
		if n.Init != nil {
			ast.Inspect(n.Init, r.visit)
		}
		for _, s := range n.Body.List {
			clause := s.(*ast.CaseClause)
			for _, e := range clause.List {
				if n.Tag == nil {
					r.condition(e)
				}
			}
			for _, s := range clause.Body {
				ast.Inspect(s, r.visit)
			}
		}
		return false
	case *ast.BinaryExpr:
		if isCondition(n) {
			r.condition(n)
			return false
		}
	}
	return true
}

// edges are the orders, each with the one that differs in what is equal.
var edges = map[token.Token]token.Token{token.LSS: token.LEQ, token.LEQ: token.LSS, token.GTR: token.GEQ, token.GEQ: token.GTR}

func isCondition(e *ast.BinaryExpr) bool {
	switch e.Op {
	case token.LAND, token.LOR, token.EQL, token.NEQ, token.LSS, token.LEQ, token.GTR, token.GEQ:
		return true
	}
	return false
}

// condition replaces a whole condition.
func (r *rewriter) condition(e ast.Expr) {
	id := r.add("negated", e, r.text(e))
	inside := r.operands(e)
	r.cuts = append(r.cuts, cut{r.offset(e.Pos()), r.offset(e.End()), fmt.Sprintf("mutantNot(%d, %s)", id, inside)})
}

// operands is the text of a condition in which each side of its && and || may be dropped.
func (r *rewriter) operands(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.ParenExpr:
		return "(" + r.operands(e.X) + ")"
	case *ast.UnaryExpr:
		if e.Op == token.NOT {
			return "!" + r.operands(e.X)
		}
	case *ast.BinaryExpr:
		if to, ok := edges[e.Op]; ok {
			id := r.add("moved", e, r.text(e))
			return fmt.Sprintf("mutantEdge(%d, %s, %s %s %s)", id, r.leaf(e), r.text(e.X), to, r.text(e.Y))
		}
		if e.Op != token.LAND && e.Op != token.LOR {
			break
		}
		name := "mutantTrue"
		if e.Op == token.LOR {
			name = "mutantFalse"
		}
		side := func(x ast.Expr) string {
			if b, ok := x.(*ast.BinaryExpr); ok && b.Op == e.Op { // a && b && c has three sides, not four
				return r.operands(x)
			}
			id := r.add("dropped", x, r.text(e))
			return fmt.Sprintf("%s(%d, %s)", name, id, r.operands(x))
		}
		return side(e.X) + " " + e.Op.String() + " " + side(e.Y)
	}
	return r.leaf(e)
}

// leaf is the text of a condition that is not made of others. A function in it has
// conditions of its own.
func (r *rewriter) leaf(e ast.Expr) string {
	outer := r.cuts
	defer func() { r.cuts = outer }()
	r.cuts = nil
	ast.Inspect(e, func(n ast.Node) bool {
		f, ok := n.(*ast.FuncLit)
		if ok {
			ast.Inspect(f.Body, r.visit)
		}
		return !ok
	})
	return r.splice(r.offset(e.Pos()), r.offset(e.End()))
}

func (r *rewriter) add(kind string, e ast.Expr, whole string) int {
	text := r.text(e)
	if kind == "dropped" {
		text += " of " + whole
	}
	m := mutant{id: len(r.mutants) + 1, file: r.file, line: r.fset.Position(e.Pos()).Line, kind: kind, text: strings.Join(strings.Fields(text), " ")}
	key := m.key()
	r.seen[key]++
	m.nth = r.seen[key]
	r.mutants = append(r.mutants, m)
	return m.id
}

func (r *rewriter) offset(p token.Pos) int { return r.fset.Position(p).Offset }

func (r *rewriter) text(e ast.Expr) string { return string(r.src[r.offset(e.Pos()):r.offset(e.End())]) }
