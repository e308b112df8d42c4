package cgroup

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// BoundsHugePages reports whether runc can bound the huge pages of a cgroup here: where there are hierarchies
// of v1, by theirs alone.
func (c Tree) BoundsHugePages() bool {
	all, err := c.hierarchies()
	if err != nil {
		return false
	}
	if slices.ContainsFunc(all, func(h hierarchy) bool { return !h.v2 }) {
		return slices.ContainsFunc(all, func(h hierarchy) bool { return !h.v2 && slices.Contains(h.controllers, "hugetlb") })
	}
	return slices.ContainsFunc(all, func(h hierarchy) bool {
		text, err := os.ReadFile(filepath.Join(h.path, "cgroup.controllers"))
		return err == nil && slices.Contains(strings.Fields(string(text)), "hugetlb")
	})
}
