package storetest

import (
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/stead-project/stead/store"
)

var origins = []promise{
	{"every answer is judged, also a refusal, and by its own call's judge", func(t *testing.T, h *harness) {
		for name, c := range calls(t, h) {
			seen := &witness{}
			rev, err := c.call(t, seen.judge(h.Store, nil))
			if err != nil && !errors.Is(err, c.fails) {
				t.Errorf("%s: %v", name, err)
			}
			seen.check(t, name, rev, c.current)
		}
	}},
	{"nothing of an answer that its judge refuses is returned", func(t *testing.T, h *harness) {
		for name, c := range calls(t, h) {
			refused := errors.New("another store")
			if rev, err := c.call(t, (&witness{}).judge(h.Store, refused)); !errors.Is(err, store.ErrWentBack) || !errors.Is(err, refused) || rev != 0 {
				t.Errorf("%s: got revision %d, error %v; want none, and ErrWentBack", name, rev, err)
			}
		}
	}},
	{"a batch that is refused is tried no further", func(t *testing.T, h *harness) {
		s := (&witness{}).judge(h.Store, errors.New("another store"))
		units := []store.Txn{
			{If: []store.Compare{store.Absent("no")}, Then: []store.Op{store.Put("a", nil)}}, {Then: []store.Op{store.Put("b", nil)}},
		}
		for i, o := range store.CommitAll(h.ctx, s, nil, units) {
			if !errors.Is(o.Err, store.ErrWentBack) {
				t.Errorf("unit %d: got %v, want ErrWentBack", i, o.Err)
			}
		}
	}},
}

// call is one method of the store. It returns the revision that it was given, 0: none.
type call struct {
	call    func(*testing.T, store.Store) (store.Rev, error)
	current bool  // its origin must be no older than its begin
	fails   error // as it does in any case; nil: it does not
}

func calls(t *testing.T, h *harness) map[string]call {
	t.Helper()
	lease := h.grant(t, time.Minute)
	put := store.Txn{Then: []store.Op{store.Put("k", nil)}}
	return map[string]call{
		"Snapshot": {current: true, call: func(_ *testing.T, s store.Store) (store.Rev, error) {
			rev, _, err := s.Snapshot(h.ctx, "")
			return rev, err
		}},
		"Get": {current: true, call: func(_ *testing.T, s store.Store) (store.Rev, error) {
			rev, _, err := s.Get(h.ctx, "k")
			return rev, err
		}},
		"Commit": {current: true, call: func(_ *testing.T, s store.Store) (store.Rev, error) { return s.Commit(h.ctx, put) }},
		"Commit without operations": {call: func(_ *testing.T, s store.Store) (store.Rev, error) {
			_, err := s.Commit(h.ctx, store.Txn{If: []store.Compare{store.Absent("none")}})
			return 0, err
		}},
		"Commit that conflicts": {current: true, fails: store.ErrConflict, call: func(_ *testing.T, s store.Store) (store.Rev, error) {
			return s.Commit(h.ctx, store.Txn{If: []store.Compare{store.Seen("none", 7)}, Then: put.Then})
		}},
		"Watch": {call: func(t *testing.T, s store.Store) (store.Rev, error) {
			w, err := s.Watch(h.ctx, "w", h.put(t, "before", ""))
			if err != nil {
				return 0, err
			}
			defer w.Close()
			h.put(t, "w", "")
			b, err := w.Next(h.ctx)
			return b.Rev, err
		}},
		"Grant": {current: true, call: func(_ *testing.T, s store.Store) (store.Rev, error) {
			id, err := s.Grant(h.ctx, time.Minute)
			if err == nil {
				err = h.Revoke(h.ctx, id)
			}
			return 0, err
		}},
		"Renew": {call: func(_ *testing.T, s store.Store) (store.Rev, error) { return 0, s.Renew(h.ctx, lease) }},
		"Revoke": {current: true, call: func(t *testing.T, s store.Store) (store.Rev, error) {
			return 0, s.Revoke(h.ctx, h.grant(t, time.Minute))
		}},
		"Status": {call: func(_ *testing.T, s store.Store) (store.Rev, error) {
			_, err := s.Status(h.ctx)
			return 0, err
		}},
	}
}

// witness gathers the origins that a judge is shown.
type witness struct {
	mu   sync.Mutex
	seen []store.Origin
}

// judge is s with a judge that notes what it sees, and answers with err.
func (w *witness) judge(s store.Store, err error) store.Store {
	return store.Judged(s, func() store.Judge {
		return func(o store.Origin) error {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.seen = append(w.seen, o)
			return err
		}
	})
}

// check that all origins name the same cluster, a member and a term, and that those which
// promise it are as new as what the call returned.
func (w *witness) check(t *testing.T, name string, rev store.Rev, current bool) {
	t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.seen) == 0 {
		t.Errorf("%s: no answer was judged", name)
	}
	for _, o := range w.seen {
		switch {
		case o.Cluster == "" || o.Cluster == "0" || o.Member == "" || o.Member == "0" || o.Term == 0 || o.Rev == 0,
			o.Cluster != w.seen[0].Cluster, current && !o.Current, current && o.Rev < rev:
			t.Errorf("%s: returned revision %d, origins %+v", name, rev, w.seen)
		}
	}
}
