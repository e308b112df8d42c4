package manifest

import (
	"slices"
	"strconv"

	"gopkg.in/yaml.v3"

	"github.com/stead-project/stead/spec"
)

// SeenSet is which set, and which generation of it, a manifest was made of, as get
// shows them in metadata. Zero, also one of the fields: it does not say.
type SeenSet struct {
	UID        spec.UID
	Generation int64
}

// Seen tells what the set ref of o was made of.
func (o *Objects) Seen(ref spec.SetRef) SeenSet { return o.seen[ref] }

// seenSet reads what a manifest of a set was made of, and takes the warnings back that
// this changes nothing.
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
