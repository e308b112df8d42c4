package plan

import (
	"github.com/stead-project/stead/spec/causes"
)

// orphanedText says of a set or member what its being orphaned means, and what next.
const orphanedText = "it is not managed; apply the set again to adopt it, or delete it"

// reconcileOrphaned is what remains of the rules for a set that was orphaned (rule 1,
// --cascade=orphan): none. Its lives run on and end by themselves, and one that is over
// stays over; nothing starts, stops or is updated, and no volume, address or revision
// goes. What is seen of the lives is marked as ever, for it is no order: a volume that
// was ready is not taken for a fresh one after the adoption.
func (s step) reconcileOrphaned() {
	for i := range s.members {
		switch t := &s.members[i]; {
		case t.Over:
			s.block(t, causes.BlockedOrphaned, "its life is over, and "+orphanedText)
		case t.member != nil:
			s.blockWaiting(t)
		case t.wanted:
			s.block(t, causes.BlockedOrphaned, "it has no life, and "+orphanedText)
		}
	}
	s.mark()
}
