package store

import (
	"context"
	"errors"
	"fmt"
)

// Outcome is what became of one unit of CommitAll: its revision, or an error.
type Outcome struct {
	Rev Rev
	Err error
}

// CommitAll commits independent units in as few transactions as MaxOps and
// MaxBytes allow. Each transaction also compares shared (leader, epoch, session).
// The outcomes are those of the units, in order, as if each had been committed
// alone: a unit whose compare does not hold has ErrConflict and stops no other. A
// transaction that is refused is halved until one unit is blamed; one whose shared
// compares no longer hold is refused for all its units, and so are all later ones.
// After an outcome that no smaller transaction could mend (ErrUnknown,
// ErrUnavailable, ErrNoSpace, ErrWentBack, an ended context) the rest is not tried and has
// ErrUnavailable. A unit is never put together with one before it that writes a key
// which it writes or compares.
func CommitAll(ctx context.Context, s Store, shared []Compare, units []Txn) []Outcome {
	if len(units) == 1 && len(shared) == 0 { // it is a transaction as it is
		rev, err := s.Commit(ctx, units[0])
		return []Outcome{{Rev: rev, Err: err}}
	}
	run := batchRun{store: s, shared: shared, units: units, outcomes: make([]Outcome, len(units))}
	for _, group := range split(shared, units) {
		if run.stopped == nil {
			run.commit(ctx, group)
		} else {
			run.settle(group, Outcome{Err: run.stopped})
		}
	}
	return run.outcomes
}

type batchRun struct {
	store    Store
	shared   []Compare
	units    []Txn
	outcomes []Outcome
	checked  bool  // the shared compares were looked at alone since the last success
	stopped  error // why nothing more is tried
}

// commit tries the units of group (indexes, never empty) as one transaction, and
// by halves if that is refused.
func (r *batchRun) commit(ctx context.Context, group []int) {
	if r.stopped != nil {
		r.settle(group, Outcome{Err: r.stopped})
		return
	}
	rev, err := r.store.Commit(ctx, join(r.shared, r.units, group))
	if err == nil {
		r.checked = false
		r.settle(group, Outcome{Rev: rev})
		return
	}
	if fatal(err) {
		r.settle(group, Outcome{Err: err})
		r.stopped = notTried(err)
		return
	}
	if len(group) == 1 {
		r.settle(group, Outcome{Err: err})
		return
	}
	if errors.Is(err, ErrConflict) && !r.checkShared(ctx) {
		r.settle(group, Outcome{Err: r.stopped})
		return
	}
	half := len(group) / 2
	r.commit(ctx, group[:half])
	r.commit(ctx, group[half:])
}

// checkShared looks, once after a success, whether the shared compares themselves
// are what does not hold: then halving would only blame every unit in turn.
func (r *batchRun) checkShared(ctx context.Context) bool {
	if r.checked || len(r.shared) == 0 {
		return true
	}
	_, err := r.store.Commit(ctx, Txn{If: r.shared})
	switch {
	case err == nil:
		r.checked = true
	case errors.Is(err, ErrConflict):
		r.stopped = fmt.Errorf("shared compares: %w", err)
	default:
		r.stopped = notTried(err)
	}
	return r.checked
}

// notTried is the outcome of units after cause; it is no ErrUnknown: they were not written.
func notTried(cause error) error {
	return fmt.Errorf("not tried: %w: %v", ErrUnavailable, cause)
}

func (r *batchRun) settle(group []int, o Outcome) {
	for _, i := range group {
		r.outcomes[i] = o
	}
}

// fatal reports whether a smaller transaction would fare no better.
func fatal(err error) bool {
	return errors.Is(err, ErrUnknown) || errors.Is(err, ErrUnavailable) || errors.Is(err, ErrNoSpace) || errors.Is(err, ErrWentBack) ||
		errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}

// split groups the units, in their order, so that each group with the shared
// compares is a valid transaction. A unit that is too large alone is a group alone.
func split(shared []Compare, units []Txn) [][]int {
	var groups [][]int
	var room *room
	for i, u := range units {
		if room == nil || !room.fits(u) {
			groups = append(groups, nil)
			room = newRoom(shared)
		}
		room.add(u)
		groups[len(groups)-1] = append(groups[len(groups)-1], i)
	}
	return groups
}

// room is what a transaction holds so far.
type room struct {
	compares map[Compare]bool
	writes   map[string]bool
	bytes    int
	txn      *Txn // what it is made of, each compare once; nil: not kept
}

func newRoom(shared []Compare) *room {
	r := &room{compares: map[Compare]bool{}, writes: map[string]bool{}}
	r.add(Txn{If: shared})
	return r
}

func (r *room) fits(u Txn) bool {
	compares := len(r.compares)
	for _, g := range u.If {
		if r.writes[g.Key] {
			return false
		}
		if !r.compares[g] {
			compares++
		}
	}
	for _, op := range u.Then {
		if r.writes[op.Key] {
			return false
		}
	}
	return compares <= MaxOps && len(r.writes)+len(u.Then) <= MaxOps && r.bytes+u.bytes() <= MaxBytes
}

func (r *room) add(u Txn) {
	for _, g := range u.If {
		if r.txn != nil && !r.compares[g] {
			r.txn.If = append(r.txn.If, g)
		}
		r.compares[g] = true
	}
	for _, op := range u.Then {
		r.writes[op.Key] = true
	}
	if r.txn != nil {
		r.txn.Then = append(r.txn.Then, u.Then...)
	}
	r.bytes += u.bytes()
}

// Together makes one transaction of shared and of those units, in their order, that fit into it
// beside those before them, as CommitAll would; fitting are their indexes.
func Together(shared []Compare, units []Txn) (t Txn, fitting []int) {
	room := newRoom(nil)
	room.txn = &t
	room.add(Txn{If: shared})
	for i, u := range units {
		if room.fits(u) {
			room.add(u)
			fitting = append(fitting, i)
		}
	}
	return t, fitting
}

// join makes one transaction of shared and the units of group; a compare that
// several units have is in it once.
func join(shared []Compare, units []Txn, group []int) Txn {
	compares, ops := len(shared), 0
	for _, i := range group {
		compares, ops = compares+len(units[i].If), ops+len(units[i].Then)
	}
	t := Txn{If: make([]Compare, 0, compares), Then: make([]Op, 0, ops)}
	seen := make(map[Compare]bool, compares)
	add := func(compares []Compare) {
		for _, g := range compares {
			if !seen[g] {
				seen[g] = true
				t.If = append(t.If, g)
			}
		}
	}
	add(shared)
	for _, i := range group {
		add(units[i].If)
		t.Then = append(t.Then, units[i].Then...)
	}
	return t
}
