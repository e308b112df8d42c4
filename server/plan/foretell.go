package plan

import "github.com/stead-project/stead/spec"

// Foretold is what an update of a set will do, told before it begins.
type Foretold struct {
	// Restarts are the members that are replaced, in the order of their turns.
	Restarts []spec.Identity
	// AtMost is how many of them are down at once; all of them under Recreate.
	AtMost int
	// Kept are members that stay as they are: below the partition, or off the update
	// revision under OnDelete, after a rollback, or while the rollout is paused.
	Kept []spec.Identity
}

// Foretell says whom the update of w's set to its template will restart, by the very
// rules of Next: those that are broken first, then from the highest down to the
// partition. A set that is being deleted restarts nobody.
func Foretell(w World) Foretold {
	s := newStep(w)
	f := Foretold{AtMost: s.budget()}
	var turns []spec.Identity
	for n := len(s.wanted) - 1; n >= 0; n-- {
		t := &s.seats[s.wanted[n]]
		ending := t.stopping() || t.over
		switch {
		case t.member == nil || t.member.Revision == s.update && !s.obsolete(t):
		case ending && s.due(t) == s.target(t): // its next life is on its target
		case s.onDelete() || s.stays(t) || !s.obsolete(t) && !ending || s.kept(t) && s.broken(t) == "":
			f.Kept = append(f.Kept, t.id)
		case s.replacesBroken() && s.broken(t) != "":
			f.Restarts = append(f.Restarts, t.id)
		default:
			turns = append(turns, t.id)
		}
	}
	f.Restarts = append(f.Restarts, turns...)
	if s.recreates() {
		f.AtMost = len(f.Restarts)
	}
	return f
}
