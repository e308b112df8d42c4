package step

import (
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/spec/causes"
)

// What is said of a container whose image changes, and why that cannot be done now.
const (
	changing     = "its image is changed in place: it was asked to end, and begins again"
	changeLeads  = "the member leads, and steps down only before it stops"
	changeHooked = "its image is changed in place when the ordered hook that runs in it has returned"
)

// change is the next operation for a container that runs and is not what a change in place says. Bounds change while it runs. One
// whose image changes is ended only when all that its successor needs is there, the images of the others as well: until then it
// runs on, for it may take long or never come.
func (s Seen) change(c Container) Op {
	if !c.Outdated {
		if c.Unfit {
			return Op{Kind: ResizeContainer, Container: c.Name}
		}
		return Op{Kind: Nothing}
	}
	if op, ok := c.pull(); ok {
		return op
	}
	if !s.hasTurn(c) {
		return Op{Kind: Nothing}
	}
	if s.Missing != "" {
		return waitOp(causes.ConfigMissing, s.Missing)
	}
	if op, ok := preparations(s); ok {
		return op
	}
	if op, stop := s.unwatched(); stop {
		return op
	}
	switch {
	case c.Leads:
		return Op{Kind: RefuseChange, Container: c.Name, Message: changeLeads}
	case s.Ordered.State == HookRunning && s.Ordered.Container == c.Name:
		return waitOp(causes.NotReady, changeHooked)
	}
	return Op{Kind: EndContainer, Container: c.Name}
}

// hasTurn: c may be ended for its image. They end one after the other in their order, after all bounds that may be refused, and
// none while an image is missing.
func (s Seen) hasTurn(c Container) bool {
	before := true
	for _, x := range s.Containers {
		switch {
		case x.Name == c.Name:
			before = false
		case x.Role == spec.RoleInit:
		case x.Changing, x.Outdated && (before || !x.Image), x.State == Running && x.Unfit && !x.Outdated:
			return false
		}
	}
	return true
}

// pull is the next operation for the image of a container that is to be created; false: it is there.
func (c *Container) pull() (Op, bool) {
	switch {
	case c.Image:
		return Op{}, false
	case c.PullText != "":
		return waitOp(causes.Pulling, c.PullText), true
	case c.Pulling:
		return Op{Kind: Nothing}, true
	}
	return Op{Kind: EnsureImage, Container: c.Name}, true
}
