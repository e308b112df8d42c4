package etcdstore

import (
	"bytes"
	"context"
	"fmt"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/stead-project/stead/store"
)

// watch is one etcd watch over a prefix. Next has one caller at a time.
type watch struct {
	s       *Store
	name    string // the prefix as asked for, for errors
	ctx     context.Context
	cancel  context.CancelFunc
	release func() bool
	answers clientv3.WatchChan
	at      int64 // the newest revision delivered
}

// Watch implements store.Store. It returns when the server has taken the watch on.
func (s *Store) Watch(ctx context.Context, prefix string, from store.Rev) (store.Watch, error) {
	w := &watch{s: s, name: prefix, at: int64(from)}
	w.ctx, w.cancel = context.WithCancel(clientv3.WithRequireLeader(ctx))
	w.release = context.AfterFunc(s.closing, w.cancel)
	late := time.AfterFunc(s.timeout, w.cancel)
	w.answers = s.client.Watch(w.ctx, s.prefix+prefix,
		clientv3.WithPrefix(), clientv3.WithRev(int64(from)+1), clientv3.WithFragment())
	if !late.Stop() || w.ctx.Err() != nil {
		w.Close()
		return nil, fmt.Errorf("watch %q: %w: no answer", prefix, store.ErrUnavailable)
	}
	return w, nil
}

// Next implements store.Watch.
func (w *watch) Next(ctx context.Context) (store.Batch, error) {
	for {
		select {
		case answer, open := <-w.answers:
			batch, err := w.judged(ctx, answer, open)
			if err != nil {
				w.Close()
				return store.Batch{}, fmt.Errorf("watch %q: %w", w.name, err)
			}
			if len(batch.Events) > 0 {
				return batch, nil
			}
		case <-w.ctx.Done():
			return store.Batch{}, fmt.Errorf("watch %q: %w: %w", w.name, store.ErrUnavailable, w.ctx.Err())
		case <-ctx.Done():
			return store.Batch{}, fmt.Errorf("watch %q: %w", w.name, ctx.Err())
		}
	}
}

// judged translates one answer after it was judged; what the client itself says has no header.
func (w *watch) judged(ctx context.Context, answer clientv3.WatchResponse, open bool) (store.Batch, error) {
	if answer.Header.GetClusterId() != 0 {
		if err := answered(ctx, answer.Header, false); err != nil {
			return store.Batch{}, err
		}
	}
	return w.batch(answer, open)
}

// batch translates one answer; without events it is none (e.g. a progress note).
func (w *watch) batch(answer clientv3.WatchResponse, open bool) (store.Batch, error) {
	switch {
	case !open:
		return store.Batch{}, fmt.Errorf("%w: the watch ended", store.ErrUnavailable)
	case answer.CompactRevision != 0:
		return store.Batch{}, store.ErrCompacted
	case answer.Err() != nil:
		return store.Batch{}, fmt.Errorf("%w: %w", store.ErrUnavailable, answer.Err())
	case len(answer.Events) == 0:
		return store.Batch{}, nil
	}
	if first := answer.Events[0].Kv.ModRevision; first <= w.at {
		return store.Batch{}, fmt.Errorf("%w: revision %d was delivered after %d", store.ErrUnavailable, first, w.at)
	}
	batch := store.Batch{Events: make([]store.Event, 0, len(answer.Events))}
	for _, e := range answer.Events {
		if e.Kv.ModRevision < w.at {
			return store.Batch{}, fmt.Errorf("%w: revision %d came after %d", store.ErrUnavailable, e.Kv.ModRevision, w.at)
		}
		w.at = e.Kv.ModRevision
		event := store.Event{KV: w.s.kv(e.Kv), Delete: e.Type == clientv3.EventTypeDelete}
		event.Value = bytes.Clone(event.Value) // in-process, watches share events
		batch.Events = append(batch.Events, event)
	}
	batch.Rev = store.Rev(w.at)
	return batch, nil
}

// Close implements store.Watch.
func (w *watch) Close() {
	w.release()
	w.cancel()
}
