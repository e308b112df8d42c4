package manifest

import (
	"cmp"

	"gopkg.in/yaml.v3"

	"github.com/stead-project/stead/spec"
)

// ObjectName is an object that a manifest names, of any kind.
type ObjectName struct {
	Kind      string // as written: StatefulSet
	Namespace spec.Namespace
	Name      string
}

// NamedObjects returns the objects that files name, also those in Lists, in their order, and what
// cannot be read. It checks nothing else: an object can be deleted by a file that could not be
// applied any more. namespace is that of objects which name none; "": DefaultNamespace.
func NamedObjects(files []Source, namespace spec.Namespace) (names []ObjectName, problems []Problem) {
	for _, f := range files {
		unreadable := readDocuments(f, func(d *document) {
			found, wrong := objectNames(d, d.root, cmp.Or(namespace, spec.DefaultNamespace), 0)
			names, problems = append(names, found...), append(problems, wrong...)
		})
		problems = append(problems, unreadable...)
	}
	if len(names) == 0 && len(problems) == 0 {
		problems = append(problems, noObjects(files, 0))
	}
	return names, sortProblems(problems)
}

// objectNames reads one object, or each of a List.
func objectNames(d *document, root *yaml.Node, namespace spec.Namespace, depth int) (names []ObjectName, problems []Problem) {
	at := d.place(root)
	root = deref(root)
	kind, meta := scalarText(child(root, "kind")), child(root, "metadata")
	items := child(root, "items")
	if kind == "List" && items != nil && depth < 2 {
		for _, item := range deref(items).Content {
			if item.Kind == yaml.AliasNode { // which could stand for any number of objects
				at := d.place(item)
				problems = append(problems, Problem{File: d.file, Line: at.line, Column: at.column, What: "an item is an alias", Fix: "write the object out"})
				continue
			}
			found, wrong := objectNames(d, item, namespace, depth+1)
			names, problems = append(names, found...), append(problems, wrong...)
		}
		return names, problems
	}
	name := scalarText(child(meta, "name"))
	if kind == "" || name == "" {
		return nil, []Problem{{File: d.file, Line: at.line, Column: at.column, What: "the object has no kind or no name", Fix: "write kind and metadata.name"}}
	}
	own := spec.Namespace(scalarText(child(meta, "namespace")))
	return []ObjectName{{Kind: kind, Namespace: cmp.Or(own, namespace), Name: name}}, nil
}
