package records

import (
	"slices"
	"strings"

	"github.com/stead-project/stead/spec"
)

// HasClass reports whether the node has a storage class. A node that never
// connected, or is too old to say, has LocalClass.
func (f *NodeFacts) HasClass(class string) bool {
	return slices.Contains(f.ClassNames(), class)
}

// SharesClass reports whether the node has a storage class that is shared with others,
// FencesClass whether that also fences by itself.
func (f *NodeFacts) SharesClass(class string) bool {
	return f != nil && slices.Contains(f.SharedClasses, class) && f.HasClass(class)
}

// FencesClass: see SharesClass.
func (f *NodeFacts) FencesClass(class string) bool {
	return f.SharesClass(class) && slices.Contains(f.FencedClasses, class)
}

// ClassNames are the storage classes of the node, LocalClass among them. The slice
// must not be changed.
func (f *NodeFacts) ClassNames() []string {
	if f == nil || len(f.Classes) == 0 {
		return []string{spec.LocalClass}
	}
	return f.Classes
}

// KnownClasses tells people which storage classes the nodes have: "a, b".
func KnownClasses(nodes []*NodeFacts) string {
	var all []string
	for _, f := range nodes {
		all = append(all, f.ClassNames()...)
	}
	slices.Sort(all)
	return strings.Join(slices.Compact(all), ", ")
}
