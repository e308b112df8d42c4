package session

import (
	"context"
	"maps"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/stead-project/stead/proto"
	"github.com/stead-project/stead/proto/wire"
	"github.com/stead-project/stead/spec"
)

const (
	// followTime is how long a set is followed after it was asked for last.
	followTime = time.Hour
	// maxInterests bounds the sets that are asked for; a server takes some more.
	maxInterests = 1024
)

// Interests are the sets that this host, or a member here, asks for by name: servers send them in
// full also when they have no member here. Safe for concurrent use.
type Interests struct {
	snapshots *SnapshotCache
	clock     func() time.Duration // since boot
	notify    func()               // there is a message

	// showing is held while snapshots come and are shown to DNS.
	showing sync.Mutex

	mu      sync.Mutex
	asked   map[spec.SetRef]time.Duration // when, on clock, each was asked for last
	unsent  bool                          // asked is not what the server was sent
	waiting map[spec.SetRef]chan struct{} // closed when the set is shown
}

// NewInterests returns an empty list. notify is called when Session.Flush has something to say of it.
func NewInterests(snapshots *SnapshotCache, clock func() time.Duration, notify func()) *Interests {
	return &Interests{
		snapshots: snapshots, clock: clock, notify: notify,
		asked: map[spec.SetRef]time.Duration{}, waiting: map[spec.SetRef]chan struct{}{},
	}
}

// Follow asks for a set, and returns when all of it was shown to DNS, or that there is none. The set stays
// asked for when ctx ends before.
func (i *Interests) Follow(ctx context.Context, ref spec.SetRef) error {
	i.note(ref)
	came := i.wait(ref)
	if came == nil {
		return nil
	}
	select {
	case <-came:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// FollowAddress is Follow of the set that has a member with this address, if there is one.
func (i *Interests) FollowAddress(ctx context.Context, a netip.Addr) error {
	ref, ok := i.snapshots.Owner(a)
	if !ok {
		return nil
	}
	return i.Follow(ctx, ref)
}

// Asked says that a set that is shown was asked for.
func (i *Interests) Asked(ref spec.SetRef) { i.note(ref) }

// Has reports whether a set is asked for.
func (i *Interests) Has(ref spec.SetRef) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	_, is := i.asked[ref]
	return is
}

// note takes a set as asked for now. Beyond the bound the one that was not asked for the longest is
// given up.
func (i *Interests) note(ref spec.SetRef) {
	if _, is := ref.ServiceName(); is {
		return // which every node is sent in full
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	_, known := i.asked[ref]
	i.asked[ref] = i.clock()
	if known {
		return
	}
	if len(i.asked) > maxInterests {
		oldest := ref
		for other, at := range i.asked {
			if at < i.asked[oldest] {
				oldest = other
			}
		}
		delete(i.asked, oldest)
	}
	i.unsent = true
	i.notify()
}

// wait returns what is closed when the set was shown; nil: it is.
func (i *Interests) wait(ref spec.SetRef) <-chan struct{} {
	i.showing.Lock()
	defer i.showing.Unlock()
	if i.snapshots.inFull(ref) {
		return nil
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.waiting[ref] == nil {
		i.waiting[ref] = make(chan struct{})
	}
	return i.waiting[ref]
}

// shown ends the waiting for these sets, as far as they are there in full.
func (i *Interests) shown(refs []spec.SetRef) {
	i.mu.Lock()
	defer i.mu.Unlock()
	for _, ref := range refs {
		if came := i.waiting[ref]; came != nil && i.snapshots.inFull(ref) {
			close(came)
			delete(i.waiting, ref)
		}
	}
}

// expire gives up the sets that were not asked for in followTime; mu is held.
func (i *Interests) expire() {
	for ref, at := range i.asked {
		if i.clock()-at >= followTime {
			delete(i.asked, ref)
			i.unsent = true
		}
	}
}

// changed is all that is asked for, if it is not what was returned last (nil).
func (i *Interests) changed() *proto.Follow {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.expire()
	if !i.unsent {
		return nil
	}
	return i.list()
}

// all is all that is asked for.
func (i *Interests) all() *proto.Follow {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.expire()
	return i.list()
}

// list is all that is asked for, taken as sent; mu is held.
func (i *Interests) list() *proto.Follow {
	i.unsent = false
	m := &proto.Follow{}
	for _, ref := range slices.SortedFunc(maps.Keys(i.asked), spec.SetRef.Compare) {
		m.Sets = append(m.Sets, wire.SetName(ref))
	}
	return m
}
