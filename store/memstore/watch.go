package memstore

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/stead-project/stead/internal/notify"
	"github.com/stead-project/stead/store"
)

// watch reads the store's log; it holds no events of its own, so a slow reader
// costs nothing but history.
type watch struct {
	s      *Store
	ctx    context.Context // ends with the watch
	cancel context.CancelFunc
	prefix string
	moved  *notify.Signal // when the log has grown or the watch is broken

	// Under s.mu.
	at     store.Rev // everything up to here is delivered or does not match
	broken bool
}

// Watch implements store.Store.
func (s *Store) Watch(ctx context.Context, prefix string, from store.Rev) (store.Watch, error) {
	w := &watch{s: s, prefix: prefix, at: from, moved: notify.New()}
	w.ctx, w.cancel = context.WithCancel(ctx)
	err := s.do(ctx, Call{Method: "Watch"}, func() error {
		s.watches[w] = struct{}{}
		return nil
	})
	if err != nil {
		w.Close()
		return nil, fmt.Errorf("watch %q: %w", prefix, err)
	}
	return w, nil
}

// Next implements store.Watch.
func (w *watch) Next(ctx context.Context) (store.Batch, error) {
	for {
		if err := w.over(ctx); err != nil {
			return store.Batch{}, fmt.Errorf("watch %q: %w", w.prefix, err)
		}
		batch, answer, err := w.take()
		if err != nil {
			return store.Batch{}, fmt.Errorf("watch %q: %w", w.prefix, err)
		}
		if len(batch.Events) > 0 {
			if err := store.Answered(ctx, answer); err != nil {
				return store.Batch{}, fmt.Errorf("watch %q: %w", w.prefix, err)
			}
			return batch, nil
		}
		select {
		case <-w.moved.C():
		case <-ctx.Done():
		case <-w.ctx.Done():
		}
	}
}

// over is why the watch cannot continue, if so.
func (w *watch) over(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := w.ctx.Err(); err != nil {
		return fmt.Errorf("%w: %w", store.ErrUnavailable, err)
	}
	return nil
}

// take returns all changes since the last one that match, with their origin; none is an
// empty batch.
func (w *watch) take() (batch store.Batch, answer store.Origin, err error) {
	w.s.mu.Lock()
	defer w.s.mu.Unlock()
	if w.broken {
		return batch, answer, store.ErrUnavailable
	}
	if w.at+1 < w.s.compacted {
		return batch, answer, store.ErrCompacted
	}
	for _, b := range w.s.since(w.at) {
		for _, e := range b.Events {
			if strings.HasPrefix(e.Key, w.prefix) {
				e.KV = clone(e.KV)
				batch.Events, batch.Rev = append(batch.Events, e), b.Rev
			}
		}
	}
	w.at = max(w.at, w.s.rev)
	answer = w.s.answer()
	answer.Rev, answer.Current = batch.Rev, false // as of a member that may lag
	return batch, answer, nil
}

// since is the part of the log after rev.
func (s *Store) since(rev store.Rev) []store.Batch {
	if rev >= s.rev {
		return nil
	}
	missing := int(s.rev - rev)
	return s.log[max(0, len(s.log)-missing):]
}

// Close implements store.Watch.
func (w *watch) Close() {
	w.cancel()
	w.s.mu.Lock()
	defer w.s.mu.Unlock()
	delete(w.s.watches, w)
}

func (s *Store) notifyWatches() {
	for w := range s.watches {
		w.moved.Notify()
	}
}

func (s *Store) breakWatches() {
	for w := range s.watches {
		w.broken = true
		w.moved.Notify()
		delete(s.watches, w)
	}
}

// Since returns the batches after revision from, one a revision: a watch that never
// blocks, for a simulation that owns the order of things. They must not be changed.
func (s *Store) Since(from store.Rev) []store.Batch {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.since(from))
}
