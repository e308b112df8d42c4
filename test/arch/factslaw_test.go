package arch

import (
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"path/filepath"
	"strings"
)

// factTypes are, by folder, the types whose fields are derived once: only the files there that
// begin with "facts" may assign them.
var factTypes = map[string]map[string]bool{"server/plan": {"facts": true, "memberFacts": true}}

// facts judges the assignments in the folders of factTypes. Types are needed, for a field
// may be reached through others that embed it.
func (c *checker) facts() {
	l := &ownTypes{root: c.root, fset: token.NewFileSet(), done: map[string]*types.Package{}}
	for folder, names := range factTypes {
		info := &types.Info{Selections: map[*ast.SelectorExpr]*types.Selection{}}
		for _, f := range l.load(folder, info) {
			rel := folder + "/" + filepath.Base(l.fset.Position(f.Pos()).Filename)
			if strings.HasPrefix(filepath.Base(rel), "facts") {
				continue
			}
			assigned(f, func(at token.Pos, e ast.Expr) {
				if name := throughFact(info, e, names); name != "" {
					c.add(rel, l.fset.Position(at).Line, "assigns a field of %s, which only %s/facts*.go may: facts are derived once; what a step decides goes to its draft", name, folder)
				}
			})
		}
	}
}

// assigned calls visit for every expression that a statement of f assigns to, or deletes from.
func assigned(f *ast.File, visit func(token.Pos, ast.Expr)) {
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.AssignStmt:
			for _, e := range n.Lhs {
				visit(n.Pos(), e)
			}
		case *ast.IncDecStmt:
			visit(n.Pos(), n.X)
		case *ast.CallExpr:
			if fun, ok := n.Fun.(*ast.Ident); ok && (fun.Name == "delete" || fun.Name == "clear" || fun.Name == "copy") && len(n.Args) > 0 {
				visit(n.Pos(), n.Args[0])
			}
		}
		return true
	})
}

// throughFact is the fact type a field of which is on the way to what e names; "": none is.
func throughFact(info *types.Info, e ast.Expr, names map[string]bool) string {
	for {
		switch x := e.(type) {
		case *ast.ParenExpr:
			e = x.X
		case *ast.StarExpr:
			e = x.X
		case *ast.IndexExpr:
			e = x.X
		case *ast.SelectorExpr:
			if s := info.Selections[x]; s != nil && s.Kind() == types.FieldVal {
				if name := onPath(s, names); name != "" {
					return name
				}
			}
			e = x.X
		default:
			return ""
		}
	}
}

// onPath follows a selection through embedded fields.
func onPath(s *types.Selection, names map[string]bool) string {
	t := s.Recv()
	for _, i := range s.Index() {
		if p, ok := t.Underlying().(*types.Pointer); ok {
			t = p.Elem()
		}
		if named, ok := t.(*types.Named); ok && names[named.Obj().Name()] {
			return named.Obj().Name()
		}
		fields, ok := t.Underlying().(*types.Struct)
		if !ok {
			return ""
		}
		t = fields.Field(i).Type()
	}
	return ""
}

// ownTypes finds the types of our own packages; of others nothing is known, which is no error.
type ownTypes struct {
	root string
	fset *token.FileSet
	done map[string]*types.Package
}

// Import is types.Importer.
func (l *ownTypes) Import(path string) (*types.Package, error) {
	folder, ours := strings.CutPrefix(path, module+"/")
	if !ours {
		return nil, errors.New("is not ours")
	}
	if _, known := l.done[folder]; !known {
		l.done[folder] = nil // a planted tree may have a cycle
		l.load(folder, nil)
	}
	if l.done[folder] == nil {
		return nil, errors.New("is imported by itself")
	}
	return l.done[folder], nil
}

// load checks the types of a folder and returns its files, without tests.
func (l *ownTypes) load(folder string, info *types.Info) (files []*ast.File) {
	paths, _ := filepath.Glob(filepath.Join(l.root, folder, "*.go"))
	for _, p := range paths {
		if f, err := parser.ParseFile(l.fset, p, nil, parser.SkipObjectResolution); err == nil && !strings.HasSuffix(p, "_test.go") {
			files = append(files, f)
		}
	}
	conf := types.Config{Importer: l, Error: func(error) {}, IgnoreFuncBodies: info == nil}
	l.done[folder], _ = conf.Check(folder, l.fset, files, info)
	return files
}
