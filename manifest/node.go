package manifest

import (
	"fmt"
	"strconv"

	"gopkg.in/yaml.v3"

	"github.com/stead-project/stead/spec/scalar"
)

// entry is one key of a mapping with its value.
type entry struct {
	name       string
	key, value *yaml.Node
}

// entries lists a mapping: its own keys, then those it merges by << and has not
// itself. A key that is given twice or is no text is reported.
func (d *decoder) entries(n *yaml.Node, path string, depth int) []entry {
	var list []entry
	lines := map[string]int{}
	var merged []*yaml.Node
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		if key.ShortTag() == "!!merge" {
			merged = append(merged, value)
			continue
		}
		name, ok := d.keyName(key, path)
		if !ok {
			continue
		}
		if line, twice := lines[name]; twice {
			d.fail(key, join(path, showKey(name)), "given twice", fmt.Sprintf("first in line %d", line))
			continue
		}
		lines[name] = d.where(key).line
		list = append(list, entry{name, key, value})
	}
	for _, m := range merged {
		for _, e := range d.mergedEntries(m, path, depth) {
			if _, known := lines[e.name]; !known {
				lines[e.name] = d.where(e.key).line
				list = append(list, e)
			}
		}
	}
	return list
}

// mergedEntries are those of the mapping, or of the mappings in order, behind <<.
func (d *decoder) mergedEntries(n *yaml.Node, path string, depth int) []entry {
	d.aliased++
	defer func() { d.aliased-- }()
	n = deref(n)
	if !d.mayRead(n, path, depth) {
		return nil
	}
	switch n.Kind {
	case yaml.MappingNode:
		list := d.entries(n, path, depth+1)
		d.spend(n, path, len(list))
		return list
	case yaml.SequenceNode:
		var list []entry
		for _, item := range n.Content {
			list = append(list, d.mergedEntries(item, path, depth+1)...)
		}
		return list
	}
	d.fail(n, join(path, "<<"), "merges "+describe(n), "it merges a mapping, or a list of mappings")
	return nil
}

// keyName is the text of a key. Numbers are taken as they are written where that
// is plain; what Kubernetes would turn into another text is refused.
func (d *decoder) keyName(n *yaml.Node, path string) (string, bool) {
	n = deref(n)
	if n.Kind != yaml.ScalarNode {
		d.fail(n, path, "has "+describe(n)+" for a key", "a key must be a string")
		return "", false
	}
	switch tag := n.ShortTag(); {
	case tag == "!!str" && !(n.Style == 0 && oldBool(n.Value)), tag == "!!timestamp":
		return n.Value, true
	case tag == "!!int":
		if i, err := strconv.ParseInt(n.Value, 10, 64); err == nil && strconv.FormatInt(i, 10) == n.Value {
			return n.Value, true
		}
	}
	d.fail(n, join(path, showKey(n.Value)), "the key is not a string", "put it in quotes: "+scalar.Quote(n.Value))
	return "", false
}

// deref follows aliases. An anchor never names an alias, so one step is all.
func deref(n *yaml.Node) *yaml.Node {
	if n.Kind == yaml.AliasNode {
		return n.Alias
	}
	return n
}

func isNull(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.ShortTag() == "!!null" }

// isEmpty: false, 0, "", [] or {}.
func isEmpty(n *yaml.Node) bool {
	if n.Kind != yaml.ScalarNode {
		return len(n.Content) == 0
	}
	switch n.ShortTag() {
	case "!!bool":
		return n.Value == "false" || n.Value == "False" || n.Value == "FALSE"
	case "!!int":
		return n.Value == "0"
	}
	return n.Value == ""
}

// describe names what n is.
func describe(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "a mapping"
	case yaml.SequenceNode:
		return "a list"
	case yaml.AliasNode:
		return describe(n.Alias)
	}
	switch n.ShortTag() {
	case "!!int", "!!float":
		return "a number"
	case "!!bool":
		return "true or false"
	case "!!null":
		return "nothing"
	}
	return "text"
}

// child finds a key of a mapping, through aliases but not merges; nil: not there.
func child(n *yaml.Node, name string) *yaml.Node {
	if n == nil || deref(n).Kind != yaml.MappingNode {
		return nil
	}
	n = deref(n)
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == name {
			return n.Content[i+1]
		}
	}
	return nil
}
