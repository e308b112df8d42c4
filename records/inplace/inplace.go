// Package inplace has the records of changes that the servers order in a life, without a new one (records.Member.Change), and of what
// came of them.
package inplace

import "github.com/stead-project/stead/spec"

// ChangeOrder has the agent bring the containers of a life to what a revision says, without a new life: one whose image is another is
// ended and begins again, the bounds of the others are changed while they run. The template of the life (records.Life) is that
// of Revision from then on, as the member of that ordinal runs it. It is void when the life is to stop.
//
// There is at most one in a life; another one takes its place, also for the way back. Whatever becomes of the agent meanwhile, it is
// carried out to its end. Without an order nothing of a life changes, whatever template is sent with it.
type ChangeOrder struct {
	// ID names the order: the epoch and the revision at which it was decided. A node takes only a newer one than it had in the life.
	ID spec.Sequence `json:"id"`
	// Revision is what the containers are to run. It may be the life's own: then the change before is taken back.
	Revision spec.RevisionHash `json:"revision"`
}

// ChangeResult is what came of the newest order that the node took in the life. It stays in the reports of the life when the order is
// gone: a store that was restored learns from it what the containers run.
type ChangeResult struct {
	ID       spec.Sequence     `json:"id"`
	Revision spec.RevisionHash `json:"revision"`
	// Done: all containers run, or ran, as Revision says. What the report says of their health is of these.
	Done bool `json:"done,omitempty"`
	// Refused is why it cannot be done in this life, as people are to read it: it is not tried again, and what was changed
	// stays. An image that cannot be had is no refusal: the container that runs goes on meanwhile.
	Refused string `json:"refused,omitempty"`
}
