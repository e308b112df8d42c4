// Package changes has what an update may change in a life, so that it needs no new one (spec.UpdateStrategy.InPlace). It imports nothing.
package changes

import "slices"

// Kind is one of these.
type Kind string

// The kinds.
const (
	// Resources: cpu and memory of containers and sidecars change while they run.
	Resources Kind = "Resources"
	// Image: a container or sidecar whose image changes is ended, and begins again in the same life.
	Image Kind = "Image"
)

// InPlace is what of a life would change.
type InPlace struct{ Resources, Image bool }

// Plus is all that either changes.
func (c InPlace) Plus(o InPlace) InPlace {
	return InPlace{c.Resources || o.Resources, c.Image || o.Image}
}

// Beyond is the first kind of what changes that is not among the allowed; "": there is none.
func (c InPlace) Beyond(allowed []Kind) Kind {
	switch {
	case c.Resources && !slices.Contains(allowed, Resources):
		return Resources
	case c.Image && !slices.Contains(allowed, Image):
		return Image
	}
	return ""
}
