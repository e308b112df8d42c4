package box

import (
	"context"
	"sync"
	"time"

	"github.com/stead-project/stead/store"
)

// link is one server's way to the store. Cut, it is the end of that server: nothing
// of it reaches the store any more. Held, it is a server whose process stands still:
// no call returns, and commits under way land when it goes on, however late.
type link struct {
	store.Store
	down context.Context // ends with the cut
	cut  context.CancelFunc

	mu    sync.Mutex
	gate  chan struct{} // closed when a held link goes on; nil: not held
	catch func(store.Txn) bool
	fuse  *fuse
	late  []late
}

// late is a commit that was held, and what became of it when it landed.
type late struct {
	txn store.Txn
	err error
}

func newLink(ctx context.Context, s store.Store) *link {
	l := &link{Store: s}
	l.down, l.cut = context.WithCancel(ctx)
	return l
}

// holdAt holds the link from the first commit on for which catch is true; held is
// closed then.
func (l *link) holdAt(catch func(store.Txn) bool) (held <-chan struct{}) {
	caught := make(chan struct{})
	l.mu.Lock()
	defer l.mu.Unlock()
	l.catch = func(t store.Txn) bool {
		if catch(t) {
			close(caught)
			return true
		}
		return false
	}
	return caught
}

// release lets a held link go on.
func (l *link) release() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.catch = nil
	if l.gate != nil {
		close(l.gate)
		l.gate = nil
	}
}

// lateCommits are those that were held and have landed.
func (l *link) lateCommits() []late {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]late(nil), l.late...)
}

// pass waits while the link is held, and fails when it is cut.
func (l *link) pass() (held bool, err error) {
	l.mu.Lock()
	gate := l.gate
	l.mu.Unlock()
	if gate != nil {
		<-gate
	}
	if l.down.Err() != nil {
		return gate != nil, store.ErrUnavailable
	}
	return gate != nil, nil
}

func (l *link) Commit(ctx context.Context, t store.Txn) (store.Rev, error) {
	l.mu.Lock()
	if l.catch != nil && l.gate == nil && l.catch(t) {
		l.gate, l.catch = make(chan struct{}), nil
	}
	burning := l.fuse
	l.mu.Unlock()
	held, err := l.pass()
	if err != nil {
		return 0, err
	}
	blows, before := burning.burn()
	if blows && before {
		return 0, store.ErrUnknown
	}
	if held {
		ctx = context.WithoutCancel(ctx) // it was sent before its time was over
	}
	rev, err := l.Store.Commit(ctx, t)
	if held {
		l.mu.Lock()
		l.late = append(l.late, late{t, err})
		l.mu.Unlock()
	}
	if blows {
		return 0, store.ErrUnknown
	}
	return rev, err
}

func (l *link) Snapshot(ctx context.Context, prefix string) (store.Rev, []store.KV, error) {
	if _, err := l.pass(); err != nil {
		return 0, nil, err
	}
	return l.Store.Snapshot(ctx, prefix)
}

func (l *link) Get(ctx context.Context, keys ...string) (store.Rev, map[string]store.KV, error) {
	if _, err := l.pass(); err != nil {
		return 0, nil, err
	}
	return l.Store.Get(ctx, keys...)
}

func (l *link) Grant(ctx context.Context, ttl time.Duration) (store.LeaseID, error) {
	if _, err := l.pass(); err != nil {
		return 0, err
	}
	return l.Store.Grant(ctx, ttl)
}

func (l *link) Renew(ctx context.Context, id store.LeaseID) error {
	if _, err := l.pass(); err != nil {
		return err
	}
	return l.Store.Renew(ctx, id)
}

func (l *link) Revoke(ctx context.Context, id store.LeaseID) error {
	if _, err := l.pass(); err != nil {
		return err
	}
	return l.Store.Revoke(ctx, id)
}

func (l *link) Watch(ctx context.Context, prefix string, from store.Rev) (store.Watch, error) {
	if _, err := l.pass(); err != nil {
		return nil, err
	}
	w, err := l.Store.Watch(ctx, prefix, from)
	if err != nil {
		return nil, err
	}
	return &linkWatch{w, l}, nil
}

// linkWatch delivers nothing while its link is held, and ends with it.
type linkWatch struct {
	store.Watch
	link *link
}

func (w *linkWatch) Next(ctx context.Context) (store.Batch, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(w.link.down, cancel)()
	batch, err := w.Watch.Next(ctx)
	if _, cut := w.link.pass(); cut != nil {
		return store.Batch{}, cut
	}
	return batch, err
}

// fuse blows at the n-th call, before or after the call has its effect.
type fuse struct {
	mu     sync.Mutex
	left   int
	before bool
	blow   func()
}

// burn counts one call and tells whether it is the one. A nil fuse never blows.
func (f *fuse) burn() (blows, before bool) {
	if f == nil {
		return false, false
	}
	f.mu.Lock()
	f.left--
	blows = f.left == 0
	f.mu.Unlock()
	if blows {
		f.blow()
	}
	return blows, f.before
}
