package dispatch

import (
	"slices"

	"github.com/stead-project/stead/spec"
)

// plain is the report without what could control the terminal of who reads it: a member's
// program has a say in messages.
func plain(r spec.Report) spec.Report {
	r.Cause, r.Message = spec.Plain(r.Cause), spec.Plain(r.Message)
	r.Containers = slices.Clone(r.Containers)
	for i := range r.Containers {
		c := &r.Containers[i]
		c.Name, c.State, c.Cause, c.Image = spec.Plain(c.Name), spec.Plain(c.State), spec.Plain(c.Cause), spec.Plain(c.Image)
	}
	return r
}
