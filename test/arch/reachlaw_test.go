package arch

import (
	"maps"
	"slices"
	"strings"
)

// edge is one import of one of our packages.
type edge struct {
	to   string // the folder
	file string
	line int
	test bool // the importing file is a _test.go
}

// reaches reports each import that leads a folder to one that it must be apart from,
// with the chain of imports that ends in it.
func (c *checker) reaches() {
	for _, root := range slices.Sorted(maps.Keys(apart)) {
		for _, far := range apart[root] {
			c.reach(root, far)
		}
	}
}

// reach walks the imports from the folders below root, breadth first: each chain is the
// shortest. Tests of root itself count; those of other folders are not part of it.
func (c *checker) reach(root, far string) {
	chains := map[string][]string{}
	var next []string
	for _, folder := range slices.Sorted(maps.Keys(c.ours)) {
		if below(folder, root) {
			chains[folder] = []string{folder}
			next = append(next, folder)
		}
	}
	for len(next) > 0 {
		folder := next[0]
		next = next[1:]
		for _, e := range c.ours[folder] {
			if e.test && !below(folder, root) {
				continue
			}
			chain := append(slices.Clone(chains[folder]), e.to)
			switch {
			case below(e.to, far):
				c.add(e.file, e.line, "import %s: %s must not reach it (%s)", e.to, root, strings.Join(chain, " → "))
			case chains[e.to] == nil:
				chains[e.to] = chain
				next = append(next, e.to)
			}
		}
	}
}
