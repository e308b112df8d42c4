package files

import (
	"cmp"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stead-project/stead/internal/notify"
	"github.com/stead-project/stead/internal/trouble"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
)

// SetFilesConfig is what SetFiles needs; all of it.
type SetFilesConfig struct {
	// Snapshot is the newest snapshot of a set; false: none was received yet.
	Snapshot func(spec.SetRef) (records.Snapshot, bool)
	// History is the newest changes of a set, oldest first; it must not be changed.
	History func(spec.SetRef) []records.Change
	// Confirmed is until when, on the clock since boot, snapshots and histories are confirmed.
	Confirmed func() time.Duration
	// RunDir is where members' files are, which Disk writes.
	RunDir string
	Disk   SetDisk
	// Renew is the least time between two showings of a set to the members that run.
	Renew  time.Duration
	Now    func() time.Time
	Logger *slog.Logger
}

// SetFiles shows the members of a node their sets: set.json, set.env, events, bootstrapped and
// confirmed. Each content is written once, and linked into the directory of each member that
// follows its set. Safe for concurrent use.
type SetFiles struct {
	c    SetFilesConfig
	wake *notify.Signal

	mu      sync.Mutex
	sets    map[SetKey]*followedSet
	follows map[spec.Identity]SetKey
	awaited map[spec.SetRef]map[spec.Identity]func() // who waits for the first snapshot

	moved   atomic.Bool // Confirmed moved since it was shown to all
	confirm sync.Mutex  // of what follows
	until   Uptime      // that is written
	trouble trouble.Last
}

// NewSetFiles shows nothing yet.
func NewSetFiles(c SetFilesConfig) *SetFiles {
	return &SetFiles{
		c: c, wake: notify.New(), sets: map[SetKey]*followedSet{}, follows: map[spec.Identity]SetKey{},
		awaited: map[spec.SetRef]map[spec.Identity]func(){},
	}
}

// IsKnown reports whether there is a snapshot of the member's set. If there is none, came is
// called once, and must not block, when one came.
func (s *SetFiles) IsKnown(id spec.Identity, came func()) bool {
	ref := id.Ref()
	if _, ok := s.c.Snapshot(ref); ok {
		return true
	}
	s.mu.Lock()
	if s.awaited[ref] == nil {
		s.awaited[ref] = map[spec.Identity]func(){}
	}
	s.awaited[ref][id] = came
	s.mu.Unlock()
	_, ok := s.c.Snapshot(ref) // it may have come meanwhile
	return ok
}

// Changed has the sets for which of is true shown anew: a snapshot or history changed. It does
// not block.
func (s *SetFiles) Changed(of func(spec.SetRef) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for key, set := range s.sets {
		if of(key.Ref) {
			set.stale.Store(true)
			set.due.Store(true)
		}
	}
	for ref, waiting := range s.awaited {
		if of(ref) {
			for _, came := range waiting {
				came()
			}
			delete(s.awaited, ref)
		}
	}
	s.wake.Notify()
}

// ConfirmedMoved has every member shown the moment that Confirmed returns. It does not block.
func (s *SetFiles) ConfirmedMoved() {
	s.moved.Store(true)
	s.wake.Notify()
}

// Follow shows a life its set, and again whenever it changes, until Leave. A life that is shown
// it for the first time gets what is known now; of one that follows already, what was removed
// is put back. What it was shown before is never replaced by something older.
func (s *SetFiles) Follow(l *records.Life) error {
	set := s.lock(l.Member.ID, SetKey{l.Member.ID.Ref(), l.Member.SetUID})
	defer set.mu.Unlock()
	set.bootstrapped = set.bootstrapped || l.Bootstrapped
	m, known := set.members[l.Member.ID]
	if known && m.token == l.Member.Token {
		until, err := s.writeConfirmed()
		if err != nil {
			return err
		}
		m.forgetMissing(set, until, s.c.Disk)
	} else {
		m = newFollower(l.Member.Token, At(s.c.RunDir, l.Member.ID), s.c.Disk)
		set.members[l.Member.ID] = m
		set.behind = set.behind || m.wasShownMore(set)
		if set.version == 0 || set.behind || set.stale.Load() && !set.isRecent(l, s.c.Now()) {
			if err := s.write(set); err != nil {
				return err
			}
		}
	}
	err := set.show(m, s.c.Disk)
	if err == nil {
		err = s.showConfirmed(set, m)
	}
	m.isNew = false
	return err
}

// Leave ends Follow, before the member's files are removed. It may be called without.
func (s *SetFiles) Leave(id spec.Identity) {
	s.mu.Lock()
	delete(s.awaited[id.Ref()], id)
	set := s.sets[s.follows[id]]
	delete(s.follows, id)
	s.mu.Unlock()
	if set == nil {
		return
	}
	set.mu.Lock()
	defer set.mu.Unlock()
	delete(set.members, id)
	if len(set.members) > 0 || set.gone {
		return
	}
	set.gone = true
	s.mu.Lock()
	delete(s.sets, set.key)
	s.mu.Unlock()
	if err := s.c.Disk.Drop(set.key); err != nil {
		s.c.Logger.Warn("files of a set not removed", "set", set.key.Ref.String(), "err", err)
	}
}

// lock returns the set that a member is to follow, made if need be, locked.
func (s *SetFiles) lock(id spec.Identity, key SetKey) *followedSet {
	for {
		s.mu.Lock()
		had, ok := s.follows[id]
		if ok && had != key {
			s.mu.Unlock()
			s.Leave(id)
			continue
		}
		set := s.sets[key]
		if set == nil {
			set = &followedSet{key: key, members: map[spec.Identity]*follower{}}
			s.sets[key] = set
		}
		s.follows[id] = key
		s.mu.Unlock()
		set.mu.Lock()
		if !set.gone {
			return set
		}
		set.mu.Unlock() // the last member left it meanwhile
	}
}

// all are the sets that are followed, by name.
func (s *SetFiles) all() []*followedSet {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.SortedFunc(maps.Values(s.sets), func(a, b *followedSet) int {
		return cmp.Or(strings.Compare(a.key.Ref.String(), b.key.Ref.String()), cmp.Compare(a.key.UID, b.key.UID))
	})
}
