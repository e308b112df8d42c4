package session

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"time"

	"github.com/stead-project/stead/internal/backoff"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/spec/scalar"
)

// The files in which the cache is kept: one for each set, below setsFolder, and those of the hosts and the tunnel between them. An
// agent of the version before kept all sets in two files, which are read once.
const (
	setsFolder    = "sets"
	hostsFile     = "hosts.json"
	tunnelFile    = "tunnel.json"
	snapshotsFile = "pictures.json"
	historiesFile = "histories.json"
)

// savedSet is what is kept of one set: as one document, so that the history is never behind the snapshot.
type savedSet struct {
	Snapshot *records.Snapshot `json:"snapshot,omitempty"` // nil: none came yet
	History  records.History   `json:"history"`
}

// setFile is the document of a set; false: its name cannot be that of a file.
func setFile(ref spec.SetRef) (string, bool) {
	name := string(ref.Name)
	if service, is := ref.ServiceName(); is {
		name = service
	}
	valid := scalar.ValidLabel(string(ref.Namespace)) && scalar.ValidLabel(name)
	return fmt.Sprintf("%s/%s.%s.json", setsFolder, ref.Namespace, ref.Name), valid
}

// load reads what an agent before this one kept.
func (c *SnapshotCache) load() {
	c.loadEarlier()
	names, err := c.dir.Names(setsFolder)
	for _, name := range names {
		var saved savedSet
		if one := c.dir.Get(setsFolder+"/"+name, &saved); one != nil {
			err = errors.Join(err, one)
			continue
		}
		ref := saved.History.Ref
		if had, ok := c.snapshots[ref]; ok && (saved.Snapshot == nil || had.Sequence.Compare(saved.Snapshot.Sequence) > 0) {
			continue // an earlier version ran after the one that kept this
		}
		c.changes[ref] = saved.History.Changes
		if saved.Snapshot != nil {
			c.snapshots[ref] = *saved.Snapshot
		}
	}
	if err != nil {
		c.log.Warn("saved snapshots not read", "err", err)
	}
	if err := c.dir.Get(hostsFile, &c.hosts); err != nil {
		c.hosts = nil
	}
	if err := c.dir.Get(tunnelFile, &c.tunnel); err != nil {
		c.tunnel = nil
	}
}

// loadEarlier reads what an agent of the version before kept. It is kept anew, set by set, with the
// next change of anything.
func (c *SnapshotCache) loadEarlier() {
	var snapshots []records.Snapshot
	err := c.dir.Get(snapshotsFile, &snapshots)
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	if err != nil {
		c.log.Warn("saved snapshots not read", "err", err)
	}
	var histories []records.History
	if err := c.dir.Get(historiesFile, &histories); err == nil {
		for _, h := range histories {
			c.changes[h.Ref], c.unsaved[h.Ref] = h.Changes, true
		}
	}
	for _, p := range snapshots {
		c.snapshots[p.Ref], c.unsaved[p.Ref] = p, true
	}
	c.earlier = true
}

// Run keeps what changes, at most once in every, until ctx ends.
func (c *SnapshotCache) Run(ctx context.Context, every time.Duration) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-c.moved.C():
		}
		if err := c.Save(); err != nil {
			c.log.Warn("snapshots not saved", "err", err)
		}
		backoff.Sleep(ctx, every)
	}
}

// Save keeps what changed since it was kept; what cannot be is tried again the next time. One goroutine
// at a time may call it.
func (c *SnapshotCache) Save() error {
	c.mu.Lock()
	unsaved, hosts, hostsMoved := c.unsaved, c.hosts, c.hostsMoved
	tunnel, tunnelMoved := c.tunnel, c.tunnelMoved
	c.unsaved, c.hostsMoved, c.tunnelMoved = map[spec.SetRef]bool{}, false, false
	c.mu.Unlock()
	var err error
	for _, ref := range slices.SortedFunc(maps.Keys(unsaved), spec.SetRef.Compare) {
		if one := c.saveSet(ref); one != nil {
			err = errors.Join(err, one)
			c.noteUnsaved(ref)
		}
	}
	if hostsMoved {
		err = errors.Join(err, c.saveFile(hostsFile, hosts, &c.hostsMoved))
	}
	if tunnelMoved {
		err = errors.Join(err, c.saveFile(tunnelFile, tunnel, &c.tunnelMoved))
	}
	if err == nil && c.earlier { // all of it is in files of its own
		err = errors.Join(c.dir.Remove(snapshotsFile), c.dir.Remove(historiesFile))
		c.earlier = err != nil
	}
	return err
}

// saveFile keeps a document; if that fails, moved says that it is to be kept.
func (c *SnapshotCache) saveFile(name string, doc any, moved *bool) error {
	err := c.dir.Put(name, doc)
	if err != nil {
		c.mu.Lock()
		*moved = true
		c.mu.Unlock()
	}
	return err
}

// saveSet keeps one set, or forgets it.
func (c *SnapshotCache) saveSet(ref spec.SetRef) error {
	name, valid := setFile(ref)
	if !valid {
		return nil
	}
	c.mu.Lock()
	snapshot, ok := c.snapshots[ref]
	saved := savedSet{History: records.History{Ref: ref, Changes: c.changes[ref]}}
	c.mu.Unlock()
	if ok {
		saved.Snapshot = &snapshot
	}
	if !ok && len(saved.History.Changes) == 0 {
		return c.dir.Remove(name)
	}
	return c.dir.Put(name, &saved)
}

func (c *SnapshotCache) noteUnsaved(ref spec.SetRef) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.unsaved[ref] = true
}
