package session

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"reflect"
	"sync"
	"time"

	"github.com/stead-project/stead/internal/backoff"
	"github.com/stead-project/stead/internal/notify"
	"github.com/stead-project/stead/internal/trouble"
	"github.com/stead-project/stead/records"
)

const (
	knownFile = "known.json"
	// keepKnown is how long after it moved what is known is on disk at the latest.
	keepKnown = time.Second
)

// Known is the highest of all that this node heard of the store, from any message. It is
// kept below the node's root, and hello says it, so that a store that went back is noticed
// (SAFETY S8). Safe for concurrent use.
type Known struct {
	dir   Dir
	log   *slog.Logger
	moved *notify.Signal // what is known is not on disk

	mu    sync.Mutex
	known records.Known
	saved records.Known // as it is on disk
}

// OpenKnown reads what the agent of before knew. What cannot be read is nothing: the ledger
// protects without it.
func OpenKnown(dir Dir, log *slog.Logger) *Known {
	k := &Known{dir: dir, log: log, moved: notify.New()}
	if err := dir.Get(knownFile, &k.known); err != nil && !errors.Is(err, fs.ErrNotExist) {
		log.Error("what is known of the store not read", "err", err)
		k.known = records.Known{}
	}
	k.saved = k.known
	return k
}

// Now is what is known.
func (k *Known) Now() records.Known {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.known
}

// Add takes over what a message says of the store. It does not block.
func (k *Known) Add(said records.Known) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.known = k.known.Add(said)
	if !reflect.DeepEqual(k.known, k.saved) {
		k.moved.Notify()
	}
}

// Run writes what is known to disk when it has moved, at most once a second, and once more
// when ctx ended. Why it cannot it logs once.
func (k *Known) Run(ctx context.Context) {
	var last trouble.Last
	save := func() {
		if err := k.Save(); last.IsErr(err) {
			k.log.Warn("what is known of the store not kept", "err", err)
		}
	}
	for {
		select {
		case <-ctx.Done():
			save()
			return
		case <-k.moved.C():
			save()
		}
		backoff.Sleep(ctx, keepKnown)
	}
}

// Save writes what is known, unless it is on disk. One goroutine at a time may call it.
func (k *Known) Save() error {
	k.mu.Lock()
	known, saved := k.known, k.saved
	k.mu.Unlock()
	if known.At.Epoch == 0 || reflect.DeepEqual(known, saved) {
		return nil
	}
	if err := k.dir.Put(knownFile, known); err != nil {
		return err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.saved = known
	return nil
}
