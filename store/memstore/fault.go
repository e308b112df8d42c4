package memstore

import (
	"context"
	"fmt"

	"github.com/stead-project/stead/store"
)

// Call is one call about to be done, as the hook of Fail sees it.
type Call struct {
	// Method is the name of the method of store.Store, or Compact.
	Method string
	// Txn is what Commit was given; it must not be changed.
	Txn store.Txn
}

// Fault is what becomes of a call. The zero Fault: it is done as ever.
type Fault struct {
	// Err is returned to the caller, e.g. store.ErrUnavailable or store.ErrUnknown.
	Err error
	// Applied: the call is done all the same, and the caller never learns it.
	Applied bool
}

// Fail asks hook before every call from now on; nil: no more faults. The hook is
// called without locks and may use the store itself, but must end its recursion.
func (s *Store) Fail(hook func(Call) Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fail = hook
}

// Break ends all open watches with store.ErrUnavailable, as a lost connection does.
func (s *Store) Break() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.breakWatches()
}

// do runs f with the store locked and leases that are over ended, and applies the
// fault for this call.
func (s *Store) do(ctx context.Context, call Call, f func() error) error {
	s.mu.Lock()
	hook := s.fail
	s.mu.Unlock()
	var fault Fault
	if hook != nil {
		fault = hook(call)
	}
	if fault.Err != nil && !fault.Applied {
		return fault.Err
	}
	answer, err := s.locked(ctx, f)
	if fault.Err != nil {
		return fault.Err
	}
	if answer.Cluster == "" { // there was none
		return err
	}
	if judgement := store.Answered(ctx, answer); judgement != nil {
		return judgement
	}
	return err
}

// locked returns the origin of its answer, which is zero when there is none.
func (s *Store) locked(ctx context.Context, f func() error) (answer store.Origin, err error) {
	if err := ctx.Err(); err != nil {
		return answer, fmt.Errorf("%w: %w", store.ErrUnavailable, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return answer, store.ErrUnavailable
	}
	s.expire()
	err = f()
	return s.answer(), err
}

// answer is the origin of an answer now; mu is held.
func (s *Store) answer() store.Origin {
	o := s.origin
	o.Rev, o.Current = s.rev, true
	return o
}
