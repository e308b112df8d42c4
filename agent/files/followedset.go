package files

import (
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
)

// recentTime is how old what a set's new life is shown may be, if it names that life.
const recentTime = 100 * time.Millisecond

// followedSet is a set of which members follow what is written.
type followedSet struct {
	key   SetKey
	stale atomic.Bool // snapshot or history changed since it was written
	due   atomic.Bool // and since it was shown to all

	mu      sync.Mutex // of all that follows
	gone    bool       // nobody follows any more, and another may have its name
	members map[spec.Identity]*follower
	shownAt time.Time // to all

	// What is written. The versions count contents; zero: there is none.
	version, eventsVersion int
	writtenAt              time.Time
	snapshot               records.Snapshot
	event                  records.ChangeID // that set.json includes
	confirmed              Uptime           // in set.json
	last                   records.ChangeID // in events
	bootstrapped           bool             // a snapshot or a life said so
	bootstrappedWritten    bool
	behind                 bool // a member was shown more of the same or an older snapshot
	text                   setText
}

// follower is a life that follows its set.
type follower struct {
	token spec.Token
	place Place
	SetHead
	// What it was shown of what is written; zero: nothing.
	version, eventsVersion int
	bootstrapped           bool
	until                  Uptime // confirmed
	isNew                  bool   // it was shown nothing yet, and none of its containers has started
}

func newFollower(token spec.Token, place Place, disk SetDisk) *follower {
	head, until := disk.Head(place)
	return &follower{token: token, place: place, SetHead: head, until: until, isNew: head == (SetHead{}) && until == 0}
}

// forgetMissing has what was removed from the member's directory shown again; until is what
// is written in confirmed.
func (m *follower) forgetMissing(set *followedSet, until Uptime, disk SetDisk) {
	if m.version == set.version && !(disk.IsShown(set.key, SetFile, m.place) && disk.IsShown(set.key, SetEnvFile, m.place)) {
		m.version = 0
	}
	if m.eventsVersion == set.eventsVersion && set.eventsVersion > 0 && !disk.IsShown(set.key, EventsFile, m.place) {
		m.eventsVersion = 0
	}
	if m.bootstrapped && !disk.IsShown(set.key, BootstrappedFile, m.place) {
		m.bootstrapped = false
	}
	if m.until > 0 && m.until == until && !disk.IsShown(SetKey{}, ConfirmedFile, m.place) {
		m.until = 0
	}
}

// wasShownMore reports that set.json named a later event or moment to the member than what is
// written does: by an agent before this one.
func (m *follower) wasShownMore(set *followedSet) bool {
	return m.Event.Compare(set.event) > 0 || m.ConfirmedUntil > set.confirmed
}

// ids are the members, sorted.
func (set *followedSet) ids() []spec.Identity {
	return slices.SortedFunc(maps.Keys(set.members), spec.Identity.Compare)
}

// isRecent reports that what is written names the life and is not old: it was known when
// the life was ordered, or a moment later.
func (set *followedSet) isRecent(l *records.Life, now time.Time) bool {
	return now.Sub(set.writtenAt) < recentTime && slices.ContainsFunc(set.snapshot.Peers, func(p records.Peer) bool {
		return p.Ordinal == l.Member.ID.Ordinal && p.Address == l.Member.Address
	})
}

// write writes what is known of a set now. A history that is older than what is written, or a
// snapshot with a lower sequence, is ignored.
func (s *SetFiles) write(set *followedSet) error {
	set.stale.Store(false)
	err := s.writeKnown(set)
	if err != nil {
		set.stale.Store(true)
	}
	return err
}

func (s *SetFiles) writeKnown(set *followedSet) error {
	snapshot, ok := s.c.Snapshot(set.key.Ref)
	if !ok {
		return nil
	}
	// What it names of a history comes with the history, which is read later.
	changes := s.c.History(set.key.Ref)
	last := records.LastChange(changes)
	if last.Compare(snapshot.Told) < 0 {
		snapshot.Told = last
	}
	if last.Compare(set.last) > 0 || len(changes) > 0 && set.eventsVersion == 0 {
		doc, err := set.text.ofEvents(changes)
		if err == nil {
			err = s.c.Disk.Write(set.key, EventsFile, doc)
		}
		if err != nil {
			return err
		}
		set.last = last
		set.eventsVersion++
	}
	if set.version > 0 && set.snapshot.Sequence.Compare(snapshot.Sequence) > 0 {
		return nil
	}
	return s.writeSet(set, snapshot)
}

// writeSet writes bootstrapped, which stays once it is true, set.env, and set.json, in which neither
// the event nor confirmedUntil goes back.
func (s *SetFiles) writeSet(set *followedSet, snapshot records.Snapshot) error {
	set.bootstrapped = set.bootstrapped || snapshot.Bootstrapped
	snapshot.Bootstrapped = set.bootstrapped
	if set.bootstrapped && !set.bootstrappedWritten {
		if err := s.c.Disk.Write(set.key, BootstrappedFile, []byte("1\n")); err != nil {
			return err
		}
		set.bootstrappedWritten = true
	}
	event, confirmed := set.shown(&snapshot, max(set.confirmed, Uptime(s.c.Confirmed())))
	same := set.version > 0 && set.snapshot.Sequence == snapshot.Sequence
	if same && !set.behind && event == set.event && set.snapshot.Bootstrapped == snapshot.Bootstrapped {
		set.writtenAt = s.c.Now()
		return nil // however much confirmed moved
	}
	snapshot.Told = event
	doc, env, err := set.text.both(&snapshot, confirmed)
	if err == nil {
		err = s.c.Disk.Write(set.key, SetEnvFile, env)
	}
	if err == nil {
		err = s.c.Disk.Write(set.key, SetFile, doc)
	}
	if err != nil {
		return err
	}
	set.snapshot, set.event, set.confirmed, set.writtenAt, set.behind = snapshot, event, confirmed, s.c.Now(), false
	set.version++
	return nil
}

// shown is the event that a snapshot includes, and until when it is confirmed, when the
// members were shown older ones that said more: those of an agent before this one. What such a
// member was shown of an event that this agent does not know yet is left to it alone.
func (set *followedSet) shown(snapshot *records.Snapshot, confirmed Uptime) (records.ChangeID, Uptime) {
	event := snapshot.Told
	if set.event.Compare(event) > 0 {
		event = set.event
	}
	for _, m := range set.members {
		if m.Sequence.Compare(snapshot.Sequence) > 0 || m.Event.Compare(set.last) > 0 {
			continue
		}
		confirmed = max(confirmed, m.ConfirmedUntil)
		if m.Event.Compare(event) > 0 {
			event = m.Event
		}
	}
	return event, confirmed
}

// show shows a member what is written and it was not shown, the events first, for set.json
// names one of them; but nothing that is older than what it was shown.
func (set *followedSet) show(m *follower, disk SetDisk) error {
	if m.eventsVersion != set.eventsVersion && m.Last.Compare(set.last) <= 0 {
		if err := disk.Link(set.key, EventsFile, m.place, m.isNew); err != nil {
			return err
		}
		m.Last, m.eventsVersion = set.last, set.eventsVersion
	}
	if set.bootstrappedWritten && !m.bootstrapped {
		if err := disk.Link(set.key, BootstrappedFile, m.place, m.isNew); err != nil {
			return err
		}
		m.bootstrapped = true
	}
	if m.version == set.version || m.Sequence.Compare(set.snapshot.Sequence) > 0 || m.wasShownMore(set) {
		return nil
	}
	for _, name := range []string{SetEnvFile, SetFile} {
		if err := disk.Link(set.key, name, m.place, m.isNew); err != nil {
			return err
		}
	}
	m.Sequence, m.Event, m.ConfirmedUntil, m.version = set.snapshot.Sequence, set.event, set.confirmed, set.version
	return nil
}
