package memory

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"time"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/server/cache"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/store"
)

// lookEvery is how often the store is looked at, and how old at most what is on disk is.
const lookEvery = time.Second

// callTime bounds one call to the store.
const callTime = 5 * time.Second

// sight is what a linearizable look has shown.
type sight struct {
	known    records.Known
	chain    records.Chain
	hold     *records.Hold
	counting bool // the count of a restore is open
	epochRev store.Rev
}

// look reads what the store says of itself.
func (m *Memory) look(ctx context.Context, s store.Store) (v sight, err error) {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	rev, kvs, err := s.Get(ctx, store.ClusterKey, store.EpochKey, store.ContinuityKey, store.HoldKey, store.CountKey)
	if err != nil {
		return v, err
	}
	v.known = m.Known() // its origin is the answer's, which was judged
	v.known.Cluster, v.known.At.Rev, v.known.Link = string(kvs[store.ClusterKey].Value), int64(rev), records.Link{}
	v.epochRev = kvs[store.EpochKey].Mod
	if v.known.At.Epoch, err = strconv.ParseInt(string(kvs[store.EpochKey].Value), 10, 64); err != nil {
		return v, fmt.Errorf("read the store's epoch: %w", err)
	}
	if kv, ok := kvs[store.ContinuityKey]; ok {
		if v.chain, err = store.Decode[records.Chain](kv); err != nil {
			return v, err
		}
		v.known.Link = v.chain.Newest()
	}
	if kv, ok := kvs[store.CountKey]; ok {
		count, err := store.Decode[records.Count](kv)
		v.counting = err != nil || !count.Done && count.Epoch == v.known.At.Epoch
	}
	v.hold = store.HoldIn(kvs)
	return v, nil
}

// Begin judges the store by what the server of before knew, before anything else is done
// with it. s is judged by m. When the store went back, or by is not empty, it is held, and
// what this server knows is written beside: name is the server's, by why a person wants the
// store held. Errors: the store's, and those of the disk.
func (m *Memory) Begin(ctx context.Context, s store.Store, name, by string) error {
	v, err := m.look(ctx, s)
	if err != nil {
		return err
	}
	m.mu.Lock()
	kept, found := m.kept, m.disk.Found
	m.mu.Unlock()
	cause := kept.Gap(v.known, v.chain)
	if cause == "" && found != "" && v.known.At.Epoch <= kept.At.Epoch {
		cause = found
	}
	hold := records.Hold{Cause: cause, By: "server " + name, At: time.Now().UTC()}
	if cause == "" && by != "" {
		hold.Cause, hold.By = by, "server "+name+", started with --hold"
	}
	if hold.Cause != "" && v.hold == nil {
		m.log.Error("store held", "err", hold.Cause)
		if err := m.hold(ctx, s, v, hold); err != nil {
			return err
		}
		v.hold = &hold
	}
	restored := kept.At.Epoch != 0 && v.known.At.Epoch > kept.At.Epoch
	if kept.At.Epoch != 0 && (v.hold != nil || restored && v.counting) {
		if err := m.testify(ctx, s, name); err != nil {
			return err
		}
	}
	m.take(v)
	return m.keep()
}

// hold holds the store as it was seen.
func (m *Memory) hold(ctx context.Context, s store.Store, v sight, hold records.Hold) error {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	_, err := s.Commit(ctx, store.Txn{
		If:   []store.Compare{store.NotHeld(), store.Seen(store.EpochKey, v.epochRev)},
		Then: []store.Op{store.Put(store.HoldKey, store.Encode(hold))},
	})
	if err != nil {
		return again("hold the store", err)
	}
	return nil
}

// testify writes what the server of before knew for whoever restores the store. A count that
// is just being ended without it is not: see store.HellosKey.
func (m *Memory) testify(ctx context.Context, s store.Store, name string) error {
	m.mu.Lock()
	value := store.Encode(m.kept)
	m.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	_, err := s.Commit(ctx, store.Txn{Then: []store.Op{store.Put(store.KnownKey(name), value), store.Put(store.HellosKey, []byte(name))}})
	if err != nil {
		return again("write what this server knows", err)
	}
	return nil
}

// again makes an error after which all is looked at once more: nothing, or all of it, was
// written.
func again(what string, err error) error {
	if errors.Is(err, store.ErrConflict) || errors.Is(err, store.ErrUnknown) {
		return fmt.Errorf("%s: %w: %w", what, store.ErrUnavailable, err)
	}
	return fmt.Errorf("%s: %w", what, err)
}

// take takes over what a look has shown of the store that is used.
func (m *Memory) take(v sight) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.now = m.now.Add(v.known)
	m.held = v.hold != nil
}

// Run looks at the store again and again, also when nothing else asks it, and keeps what is
// known on disk, until ctx ends. It returns nil then, and an error that is ErrWentBack when
// the store is not the one it was: the process must end. w mirrors the store.
func (m *Memory) Run(ctx context.Context, s store.Store, w cache.Reader, name string) error {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	told := m.holds()
	for {
		select {
		case <-ctx.Done():
			m.report(m.keep())
			return nil
		case <-m.gone:
			return m.gap // it stays
		case <-tick.C:
		}
		if err := m.again(ctx, s, w); err != nil {
			return err
		}
		if held := m.holds(); held != told {
			if held && m.testify(ctx, s, name) != nil {
				continue
			}
			told = held
		}
	}
}

func (m *Memory) holds() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.held
}

// again looks once more. A store that is away is no news.
func (m *Memory) again(ctx context.Context, s store.Store, w cache.Reader) error {
	before := m.Known()
	v, err := m.look(ctx, s)
	switch {
	case errors.Is(err, store.ErrWentBack):
		return err
	case err != nil:
		return nil
	}
	if text := before.Gap(v.known, v.chain); text != "" {
		m.mu.Lock()
		defer m.mu.Unlock()
		if m.gap == nil {
			m.found(errors.New(text))
		}
		return m.gap
	}
	m.take(v)
	m.nodes(w, v.counting)
	m.report(m.keep())
	return nil
}

// nodes takes over the nodes of the store. While a restore counts, those that only this
// server knows stay.
func (m *Memory) nodes(w cache.Reader, counting bool) {
	now := map[spec.NodeName]spec.UID{}
	w.Look(func(v cache.View) {
		for _, n := range v.Nodes() {
			if n.Node != nil {
				now[n.Node.Name] = n.Node.UID
			}
		}
	})
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.held {
		return
	}
	if counting {
		old := m.kept.Nodes
		maps.Copy(now, old)
	}
	m.kept.Nodes = now
}

// report says once why what is known is not on disk.
func (m *Memory) report(err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	text := ""
	if err != nil {
		text = err.Error()
	}
	if text != m.trouble && err != nil {
		m.log.Warn("what is known of the store not kept", "err", err)
	}
	m.trouble = text
}
