package manifest

import (
	"slices"
	"strconv"

	"gopkg.in/yaml.v3"

	"github.com/stead-project/stead/spec"
)

// SeenSet is the set, and its generation, that a manifest was made from, as 'get' shows
// them in metadata. A zero field: the manifest does not say.
type SeenSet struct {
	UID        spec.UID
	Generation int64
}

// Seen returns what the manifest of the set ref was made from.
func (o *Objects) Seen(ref spec.SetRef) SeenSet { return o.seen[ref] }

// seenSet reads what a manifest of a set was made from, and removes the warnings that
// these fields have no effect.
func (d *decoder) seenSet(root *yaml.Node) (seen SeenSet) {
	meta := child(root, "metadata")
	generation, err := strconv.ParseInt(scalarText(child(meta, "generation")), 10, 64)
	uid := scalarText(child(meta, "uid"))
	if err != nil || uid == "" {
		return SeenSet{UID: spec.UID(uid)}
	}
	d.warnings = slices.DeleteFunc(d.warnings, func(p Problem) bool {
		return p.Path == d.at.base+"metadata.generation" || p.Path == d.at.base+"metadata.uid"
	})
	return SeenSet{spec.UID(uid), generation}
}
