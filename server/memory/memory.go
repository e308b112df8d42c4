// Package memory is what one server knows of the store: the highest of everything that it
// heard, kept on its own disk. It judges each answer of the store by that, so that a store
// that went back is noticed whoever brought it back (SAFETY S8).
//
// While the store is held nothing more is kept: it may be the wrong one, and when the right
// one is back that must not look like the one that went back.
package memory

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"sync"

	"github.com/stead-project/stead/internal/durable"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/store"
)

// document is the form of the file.
type document struct {
	records.Known
	// Found is a gap that was found while the server ran and that another look at the store
	// may not show again.
	Found string `json:"found,omitempty"`
}

// Memory judges a store. Open makes it; all methods are safe for concurrent use.
type Memory struct {
	path string
	log  *slog.Logger

	mu      sync.Mutex
	disk    document      // as it is on disk
	kept    records.Known // what is to be there
	now     records.Known // of the store that answers since this process began
	held    bool          // nothing is kept
	gap     error         // the first that an answer showed; it stays
	gone    chan struct{} // closed with gap
	trouble string        // why it is not on disk, as it was told last
}

// Open reads what the server of before knew; a file that is not there is an empty memory.
func Open(path string, log *slog.Logger) (*Memory, error) {
	m := &Memory{path: path, log: log, gone: make(chan struct{})}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, err
	}
	if err := durable.GetJSON(path, &m.disk); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w: it is what this server knows of the store, and it is damaged; "+
			"compare the store with your backups, then remove the file", err)
	}
	m.kept = m.disk.Known
	m.kept.Nodes = maps.Clone(m.kept.Nodes)
	return m, nil
}

// Owns tells why a server with this memory must not use the store of a cluster ("": of
// none yet); nil: it may. Such a store is another one, not one that went back, and nothing
// is written to it.
func (m *Memory) Owns(cluster string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch known := m.kept.Cluster; {
	case known == "" || known == cluster:
		return nil
	case cluster == "":
		return fmt.Errorf("the store is empty, and this server knows cluster %s: restore a backup of its store; "+
			"for a new cluster, remove %s", known, m.path)
	default:
		return fmt.Errorf("the store is of cluster %s, and this server knows cluster %s: give it the store that is its own; "+
			"to have it serve the other one, remove %s", cluster, known, m.path)
	}
}

// Judge is s with every answer judged.
func (m *Memory) Judge(s store.Store) store.Store { return store.Judged(s, m.judge) }

// judge compares answers of one call with what was known when it started: of two calls at
// once the older answer may come last.
func (m *Memory) judge() store.Judge {
	m.mu.Lock()
	before := m.now
	m.mu.Unlock()
	return func(o store.Origin) error {
		had := answer(before.Origin, before.Term, before.At.Rev)
		at := answer(o.Cluster, o.Term, int64(o.Rev))
		if !o.Current { // of a member that may lag
			at = answer(o.Cluster, before.Term, before.At.Rev)
		}
		m.mu.Lock()
		defer m.mu.Unlock()
		if text := had.Gap(at, records.Chain{}); m.gap == nil && text != "" {
			m.found(errors.New(text))
		}
		if m.gap == nil {
			at.At.Epoch = m.now.At.Epoch
			m.now = m.now.Add(at)
		}
		return m.gap
	}
}

// answer is what one answer says. It says nothing of the epoch: of two answers it is the
// same.
func answer(origin string, term uint64, rev int64) records.Known {
	return records.Known{Origin: origin, Term: term, At: spec.Sequence{Epoch: 1, Rev: rev}}
}

// found notes that the store went back while it was used; mu is held.
func (m *Memory) found(why error) {
	m.gap = fmt.Errorf("%w: %w", store.ErrWentBack, why)
	close(m.gone)
}

// Known is what is known of the store that answers now, without its nodes.
func (m *Memory) Known() records.Known {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.now
}

// Note keeps a gap that was not found by an answer's origin, so that the server of after
// finds it though the store may not show it to it.
func (m *Memory) Note(gap error) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.gap != nil {
		return nil
	}
	doc := m.disk
	doc.Found = gap.Error()
	return m.write(doc)
}

// keep writes what is kept, if that is not on disk.
func (m *Memory) keep() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.held || m.gap != nil {
		return nil
	}
	nodes := m.kept.Nodes
	m.kept = m.kept.Add(m.now)
	m.kept.Nodes = nodes
	doc := document{Known: m.kept}
	if doc.Found == m.disk.Found && same(doc.Known, m.disk.Known) {
		return nil
	}
	doc.Nodes = maps.Clone(nodes)
	return m.write(doc)
}

// write puts doc on disk; mu is held.
func (m *Memory) write(doc document) error {
	if err := durable.PutJSON(m.path, doc); err != nil {
		return err
	}
	m.disk = doc
	return nil
}

func same(a, b records.Known) bool {
	return a.Cluster == b.Cluster && a.Origin == b.Origin && a.Term == b.Term && a.At == b.At && a.Link == b.Link && maps.Equal(a.Nodes, b.Nodes)
}
