package session

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/netip"
	"slices"
	"strings"
	"sync"

	"github.com/stead-project/stead/internal/notify"
	"github.com/stead-project/stead/proto"
	"github.com/stead-project/stead/proto/wire"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
)

// SnapshotCache holds the newest snapshot and the history of every set, and the addresses of
// all nodes, and keeps them on tmpfs so that DNS answers, and members are shown the same,
// after a restart of the agent while no server is there. Safe for concurrent use.
type SnapshotCache struct {
	dir   Dir
	log   *slog.Logger
	moved *notify.Signal // what is held is not kept
	// earlier: there are files of the version before; Save's own.
	earlier bool

	mu        sync.Mutex
	snapshots map[spec.SetRef]records.Snapshot
	changes   map[spec.SetRef][]records.Change // ascending; appended to by AddHistories alone, and what is in it is never changed
	numbers   map[spec.SetRef]uint64           // of snapshots, as the session's server counts them
	hosts     []netip.Addr                     // of all nodes, ascending; nil: never heard; replaced whole
	newest    spec.Sequence                    // of what was put
	// unsaved are the sets of which something changed since they were kept, and hostsMoved the hosts.
	unsaved    map[spec.SetRef]bool
	hostsMoved bool
	tunnel     *records.HostTunnel // between hosts; nil: never heard; replaced whole
	tunnelText []byte              // as it came
	// tunnelMoved: it is not kept.
	tunnelMoved bool
}

// OpenSnapshots reads what an agent before this one kept.
func OpenSnapshots(dir Dir, log *slog.Logger) *SnapshotCache {
	c := &SnapshotCache{
		dir: dir, log: log, changes: map[spec.SetRef][]records.Change{},
		snapshots: map[spec.SetRef]records.Snapshot{}, numbers: map[spec.SetRef]uint64{}, unsaved: map[spec.SetRef]bool{}, moved: notify.New(),
	}
	c.load()
	return c
}

// NewSession forgets the numbers of what is held: those of one session mean nothing in the next.
func (c *SnapshotCache) NewSession() {
	c.mu.Lock()
	defer c.mu.Unlock()
	clear(c.numbers)
}

// Put takes snapshots of sequence seq; full replaces all. It never goes back: neither with
// one snapshot nor with all. It returns the sets that changed.
func (c *SnapshotCache) Put(seq spec.Sequence, full bool, fresh []records.Snapshot) (changed []spec.SetRef) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.advance(seq) {
		return nil
	}
	named := map[spec.SetRef]bool{}
	for _, p := range fresh {
		named[p.Ref] = true
		delete(c.numbers, p.Ref)
		if c.put(p) {
			changed = append(changed, p.Ref)
		}
	}
	if full {
		changed = append(changed, c.dropOthers(named)...)
	}
	return changed
}

// Apply takes sets of sequence seq as Put does, each of them whole or by what differs, in a cluster of
// this domain. It returns also the sets of which it does not have what a difference starts from:
// they stay as they are until they are sent whole.
func (c *SnapshotCache) Apply(seq spec.Sequence, full bool, sets []*proto.SetDifference, domain string) (changed, gaps []spec.SetRef) {
	c.mu.Lock()
	defer c.mu.Unlock()
	taken, named := c.advance(seq), map[spec.SetRef]bool{}
	for _, d := range sets {
		ref := wire.ToSetRef(d.GetSet())
		had, number := c.snapshots[ref], c.numbers[ref]
		named[ref] = true
		delete(c.numbers, ref) // unless this is taken
		switch {
		case !taken:
		case d.GetBase() != 0 && (d.GetBase() != number || d.GetTurned() != (d.GetBrief() != had.Brief)):
			gaps = append(gaps, ref)
		case c.put(inOtherForm(seq, had, wire.ApplySet(had, d, domain))):
			changed = append(changed, ref)
			if !d.GetGone() {
				c.numbers[ref] = d.GetNumber()
			}
		}
	}
	if taken && full {
		changed = append(changed, c.dropOthers(named)...)
	}
	return changed, gaps
}

// inOtherForm is what comes next of a set in a list of sequence seq. What did not change since is as old
// as that server saw it first, or as it changed last in that form: the list says that it is so now, and a set that
// is held in the other form must not stay in that.
func inOtherForm(seq spec.Sequence, had, next records.Snapshot) records.Snapshot {
	if next.Brief != had.Brief && had.Sequence.Compare(seq) <= 0 && had.Sequence.Compare(next.Sequence) > 0 {
		next.Sequence = had.Sequence
	}
	return next
}

// advance reports whether what is of sequence seq may be taken: it is not older than what was; mu
// is held.
func (c *SnapshotCache) advance(seq spec.Sequence) bool {
	if seq.Compare(c.newest) < 0 {
		return false
	}
	c.newest = seq
	return true
}

// put takes a snapshot unless it is older than the one that is held; mu is held.
func (c *SnapshotCache) put(p records.Snapshot) bool {
	if had, ok := c.snapshots[p.Ref]; ok && had.Sequence.Compare(p.Sequence) > 0 {
		return false
	}
	c.unsaved[p.Ref] = true
	c.moved.Notify()
	if p.Gone {
		delete(c.snapshots, p.Ref)
		delete(c.changes, p.Ref)
	} else {
		c.snapshots[p.Ref] = p
	}
	return true
}

// dropOthers forgets the sets that are not named; mu is held.
func (c *SnapshotCache) dropOthers(named map[spec.SetRef]bool) (dropped []spec.SetRef) {
	for ref := range c.snapshots {
		if !named[ref] {
			delete(c.snapshots, ref)
			delete(c.changes, ref)
			delete(c.numbers, ref)
			c.unsaved[ref] = true
			c.moved.Notify()
			dropped = append(dropped, ref)
		}
	}
	return dropped
}

// AddHistories takes more of histories and returns the sets of which something was new.
// Numbers only grow; what is held already is left out.
func (c *SnapshotCache) AddHistories(more []records.History) []spec.SetRef {
	c.mu.Lock()
	defer c.mu.Unlock()
	var changed []spec.SetRef
	for _, h := range more {
		had := c.changes[h.Ref]
		fresh := records.ChangesAfter(h.Changes, records.LastChange(had))
		if len(fresh) == 0 {
			continue
		}
		all := append(had, fresh...) // behind what others read: had is nowhere else appended to
		c.changes[h.Ref] = all[max(0, len(all)-records.HistoryWindow):]
		c.unsaved[h.Ref] = true
		c.moved.Notify()
		changed = append(changed, h.Ref)
	}
	return changed
}

// PutHosts takes the addresses of all nodes, if there are any, and returns them when they
// differ from those held.
func (c *SnapshotCache) PutHosts(addresses []string) (hosts []netip.Addr, moved bool) {
	for _, text := range addresses {
		if a, err := netip.ParseAddr(text); err == nil {
			hosts = append(hosts, a)
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(hosts) == 0 || slices.Equal(hosts, c.hosts) {
		return nil, false
	}
	c.hosts, c.hostsMoved = hosts, true
	c.moved.Notify()
	return hosts, true
}

// Hosts are the addresses of all nodes, ascending; nil: none were heard of. They must not be changed.
func (c *SnapshotCache) Hosts() []netip.Addr {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.hosts
}

// PutTunnel takes the tunnel between hosts, in JSON, and returns it when it differs from what is held; nothing came: nil.
func (c *SnapshotCache) PutTunnel(text []byte) (*records.HostTunnel, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(text) == 0 || bytes.Equal(text, c.tunnelText) {
		return nil, nil
	}
	t := &records.HostTunnel{}
	if err := json.Unmarshal(text, t); err != nil {
		return nil, fmt.Errorf("decode the tunnel between hosts: %w", err)
	}
	c.tunnel, c.tunnelText, c.tunnelMoved = t.After(c.tunnel), text, true
	c.moved.Notify()
	return c.tunnel, nil
}

// Tunnel is the tunnel between hosts; nil: none was heard of. It must not be changed.
func (c *SnapshotCache) Tunnel() *records.HostTunnel {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.tunnel
}

// History is the newest changes of a set, oldest first; it must not be changed.
func (c *SnapshotCache) History(ref spec.SetRef) []records.Change {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.changes[ref]
}

// Find is the newest snapshot of a set; false: there is none, or it is brief.
func (c *SnapshotCache) Find(ref spec.SetRef) (records.Snapshot, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	p, ok := c.snapshots[ref]
	return p, ok && !p.Brief
}

// inFull reports whether nothing more is to come of a set: it is here in full, or there is none.
func (c *SnapshotCache) inFull(ref spec.SetRef) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return !c.snapshots[ref].Brief
}

// Owner is the set of the member that has an address; false: none has.
func (c *SnapshotCache) Owner(a netip.Addr) (spec.SetRef, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for ref, s := range c.snapshots {
		if slices.ContainsFunc(s.Peers, func(p records.Peer) bool { return p.Address == a }) {
			return ref, true
		}
	}
	return spec.SetRef{}, false
}

// Services lists the services of a namespace that have an address and select a set, by name.
func (c *SnapshotCache) Services(ns spec.Namespace) []records.ServiceLink {
	c.mu.Lock()
	defer c.mu.Unlock()
	seen := map[string]bool{}
	var out []records.ServiceLink
	for ref, s := range c.snapshots {
		if ref.Namespace != ns {
			continue
		}
		for _, n := range s.Names {
			if n.Address.IsValid() && !seen[n.Name] {
				seen[n.Name] = true
				out = append(out, records.ServiceLink{Name: n.Name, Address: n.Address, Ports: n.Ports})
			}
		}
	}
	slices.SortFunc(out, func(a, b records.ServiceLink) int { return strings.Compare(a.Name, b.Name) })
	return out
}

// Newest is the highest sequence of what was taken.
func (c *SnapshotCache) Newest() spec.Sequence {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.newest
}

// All are the newest snapshots, by the name of their sets.
func (c *SnapshotCache) All() []records.Snapshot {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := make([]records.Snapshot, 0, len(c.snapshots))
	for _, p := range c.snapshots {
		out = append(out, p)
	}
	slices.SortFunc(out, func(a, b records.Snapshot) int { return a.Ref.Compare(b.Ref) })
	return out
}
