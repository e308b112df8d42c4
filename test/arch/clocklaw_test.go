package arch

import (
	"go/ast"
	"go/token"
	"strings"
)

// clock finds decisions by a wall clock, which may be set a day ahead at any moment.
// A time that stayed in this process carries Go's monotonic reading and may be
// compared. One that was kept or sent (a field with a json tag) lost it: it is for
// people, and no code may compare it.
type clock struct {
	kept     map[string]bool // names of such fields
	compared []comparison
}

// comparison is a place where a field is compared with another time.
type comparison struct {
	rel, field string
	line       int
}

// wallAllowed are the files that may compare kept times, and why.
var wallAllowed = map[string]string{
	"server/engine/address.go":  "which address rested longest is only an order; how long is measured by the leader",
	"server/backup/rules.go":    "the age of a file has no other clock; a wrong one makes one backup too many or too few, and the newest good one stays",
	"server/audit/log.go":       "since when people want to see entries",
	"server/authorities/api.go": "whether a client file has expired, as certificates do; a wrong clock names one too many, or one that ends for it",
	"server/gauges.go":          "how old a backup is, for people",
	"server/engine/event.go":    "which of a hundred events is the oldest is for people, too",
}

// read notes a file's kept times and its comparisons.
func (c *clock) read(rel, folder string, fset *token.FileSet, f *ast.File) {
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.Field:
			if n.Tag != nil && strings.Contains(n.Tag.Value, "json:") && isTime(n.Type) {
				for _, name := range n.Names {
					c.kept[name.Name] = true
				}
			}
		case *ast.CallExpr:
			if !below(folder, "cmd") && !below(folder, "test") && !below(folder, "scripts") {
				c.call(rel, fset.Position(n.Pos()).Line, n)
			}
		}
		return true
	})
}

// call notes the fields that a comparison of times looks at.
func (c *clock) call(rel string, line int, call *ast.CallExpr) {
	fun, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return
	}
	sides := call.Args
	switch fun.Sel.Name {
	case "Since", "Until":
	case "Before", "After", "Sub", "Compare":
		sides = append([]ast.Expr{fun.X}, sides...)
	default:
		return
	}
	for _, side := range sides {
		if star, ok := side.(*ast.StarExpr); ok {
			side = star.X
		}
		if s, ok := side.(*ast.SelectorExpr); ok {
			c.compared = append(c.compared, comparison{rel, s.Sel.Name, line})
		}
	}
}

func isTime(e ast.Expr) bool {
	if star, ok := e.(*ast.StarExpr); ok {
		e = star.X
	}
	s, ok := e.(*ast.SelectorExpr)
	if !ok || s.Sel.Name != "Time" {
		return false
	}
	x, ok := s.X.(*ast.Ident)
	return ok && x.Name == "time"
}

// clocks judges the comparisons, when all files were read.
func (c *checker) clocks() {
	for _, at := range c.clock.compared {
		if c.clock.kept[at.field] && wallAllowed[at.rel] == "" {
			c.add(at.rel, at.line, "%s was kept or sent, so it is a wall clock's: compare no such time", at.field)
		}
	}
}
