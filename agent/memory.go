package agent

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"reflect"
	"sync"
	"time"

	"github.com/stead-project/stead/internal/durable"
	"github.com/stead-project/stead/proto"
	"github.com/stead-project/stead/proto/wire"
	"github.com/stead-project/stead/records"
)

// keepKnown is how long after it moved what is known is on disk at the latest.
const keepKnown = time.Second

// memory is the highest of all that this node heard of the store, from any message. It is
// kept below the node's root, and hello says it, so that a store that went back is noticed
// (SAFETY S8). Safe for concurrent use.
type memory struct {
	path string
	log  *slog.Logger

	mu    sync.Mutex
	known records.Known
	saved records.Known // as it is on disk
	moved chan struct{} // holds one when known is not on disk
}

// openMemory reads what the agent of before knew. What cannot be read is nothing: the ledger
// protects without it.
func openMemory(path string, log *slog.Logger) *memory {
	m := &memory{path: path, log: log, moved: make(chan struct{}, 1)}
	if err := durable.GetJSON(path, &m.known); err != nil && !errors.Is(err, fs.ErrNotExist) {
		log.Error("what is known of the store not read", "err", err)
		m.known = records.Known{}
	}
	m.saved = m.known
	return m
}

func (m *memory) now() records.Known {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.known
}

// hear takes over what a message says of the store. It does not block.
func (m *memory) hear(said records.Known) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.known = m.known.Add(said)
	if reflect.DeepEqual(m.known, m.saved) {
		return
	}
	select {
	case m.moved <- struct{}{}:
	default:
	}
}

// welcomed takes a welcome. Of a store that is held nothing is learnt, and no guarded life
// begins.
func (a *Agent) welcomed(w *proto.Welcome) {
	if w.GetHeld() {
		a.log.Warn("store held", "server", w.GetServer())
		a.deadlines.Hold(true)
		return
	}
	a.memory.hear(wire.ToKnown(w.GetKnown()))
}

// keep writes what is known to disk when it has moved, at most once in every, and once more
// when ctx ended. Why it cannot it tells once.
func (m *memory) keep(ctx context.Context, every time.Duration) {
	told := ""
	save := func() {
		if err := m.save(); err != nil && err.Error() != told {
			m.log.Warn("what is known of the store not kept", "err", err)
			told = err.Error()
		}
	}
	for {
		select {
		case <-ctx.Done():
			save()
			return
		case <-m.moved:
			save()
		}
		select {
		case <-ctx.Done():
		case <-time.After(every):
		}
	}
}

// save writes what is known, unless it is on disk. Only keep calls it.
func (m *memory) save() error {
	m.mu.Lock()
	known, saved := m.known, m.saved
	m.mu.Unlock()
	if known.At.Epoch == 0 || reflect.DeepEqual(known, saved) {
		return nil
	}
	if err := durable.PutJSON(m.path, known); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.saved = known
	return nil
}
