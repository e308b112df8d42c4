package records

import (
	"cmp"
	"slices"
	"time"

	"github.com/stead-project/stead/spec"
)

// HistoryWindow is how many of a set's changes are kept and shown: the newest.
const HistoryWindow = 256

// ChangeKind is what became of a member or its set.
type ChangeKind string

// The kinds of changes.
const (
	ChangeJoined      ChangeKind = "Joined"          // the first life of a member was begun
	ChangeReturned    ChangeKind = "Returned"        // a later life of a member was begun
	ChangeReady       ChangeKind = "Ready"           // the member serves
	ChangeNotReady    ChangeKind = "NotReady"        // it does not any more; its life goes on
	ChangeLeft        ChangeKind = "Left"            // its life is proven over, ready or not before
	ChangeReplicas    ChangeKind = "ReplicasChanged" // another number of members is wanted
	ChangeUpdateBegan ChangeKind = "UpdateBegan"     // the template became another revision
	ChangeUpdateEnded ChangeKind = "UpdateEnded"     // every member was available on it
)

// NoOrdinal stands in changes that concern the whole set.
const NoOrdinal = -1

// Change is one entry of a set's history. Epoch and Number name it for ever: every
// member of the set sees the same changes under the same numbers, in their order.
// Within an epoch numbers have no gaps, so that a reader sees what it missed.
type Change struct {
	Epoch   int64      `json:"epoch"`
	Number  int64      `json:"number"`
	Kind    ChangeKind `json:"kind"`
	Member  string     `json:"member,omitempty"`
	Ordinal int        `json:"ordinal"` // NoOrdinal: of the whole set
	// Token names the life meant.
	Token string `json:"token,omitempty"`
	// Reason is one word: of a begin and an end a Reason, of NotReady the cause.
	Reason   string            `json:"reason,omitempty"`
	Revision spec.RevisionHash `json:"revision,omitempty"`
	// Replicas is the number of members wanted then.
	Replicas int `json:"replicas"`
	// At is the leader's wall clock, for people only.
	At time.Time `json:"at"`
}

// ChangeID names a change; the zero value comes before all.
type ChangeID struct {
	Epoch  int64 `json:"epoch"`
	Number int64 `json:"number"`
}

// ID is the change's name.
func (c *Change) ID() ChangeID { return ChangeID{c.Epoch, c.Number} }

// Compare orders by epoch, then number.
func (i ChangeID) Compare(o ChangeID) int {
	return cmp.Or(cmp.Compare(i.Epoch, o.Epoch), cmp.Compare(i.Number, o.Number))
}

// LastChange names the newest of a history; zero when it is empty.
func LastChange(changes []Change) ChangeID {
	if len(changes) == 0 {
		return ChangeID{}
	}
	return changes[len(changes)-1].ID()
}

// ChangesAfter are those newer than seen; it shares memory with changes.
func ChangesAfter(changes []Change, seen ChangeID) []Change {
	i, _ := slices.BinarySearchFunc(changes, seen, func(c Change, id ChangeID) int {
		if c.ID().Compare(id) <= 0 {
			return -1
		}
		return 1
	})
	return changes[i:]
}

// Recorded is what a history has recorded up to a change: whatever differs from it in the
// store is to be recorded next.
type Recorded struct {
	Replicas int               `json:"replicas"`
	Update   spec.RevisionHash `json:"update,omitempty"` // the template's, as last recorded
	Updating bool              `json:"updating,omitempty"`
	Members  []RecordedMember  `json:"members,omitempty"` // by ordinal
}

// RecordedMember is what was recorded of one member's newest life.
type RecordedMember struct {
	Ordinal  int               `json:"ordinal"`
	Token    string            `json:"token"`
	Revision spec.RevisionHash `json:"revision,omitempty"`
	Ready    bool              `json:"ready,omitempty"`
	Left     bool              `json:"left,omitempty"` // that life is over
	Gone     bool              `json:"gone,omitempty"` // and no other is to come
}

// HistoryBase is history/<ns>/<set>/base: what had been told before the first change
// of the page Open. What was told since is on that page and those after it, with at most
// 2*HistoryWindow-1 changes. It outlives the set, so that no number comes twice. Only writer: engine.
type HistoryBase struct {
	Ref spec.SetRef `json:"ref"`
	// UID is the set's; none: it is gone.
	UID spec.UID `json:"uid,omitempty"`
	// SetUID is it in a base that an earlier version wrote, which added to the page Open alone. That version
	// takes a base without it for another set's: it begins anew, with higher numbers.
	SetUID spec.UID `json:"setUID"`
	Open   int64    `json:"open"`
	Next   int64    `json:"next"` // the number of the first change of the page Open
	Told   Recorded `json:"told"`
}

// Of is the uid of the base's set, also of one that an earlier version wrote; "": it is gone.
func (b *HistoryBase) Of() spec.UID { return cmp.Or(b.UID, b.SetUID) }

// HistoryPage is history/<ns>/<set>/<page>: changes in a row. Only writer: engine.
type HistoryPage struct {
	Ref     spec.SetRef `json:"ref"`
	SetUID  spec.UID    `json:"setUID"`
	Page    int64       `json:"page"`
	Changes []Change    `json:"changes"`
}

// NewestChanges is what of the newest HistoryWindow changes of the pages, which are ascending, is newer
// than seen. The result is the caller's.
func NewestChanges(pages []*HistoryPage, seen ChangeID) []Change {
	var parts [][]Change
	n := 0
	for _, p := range slices.Backward(pages) {
		newer := ChangesAfter(p.Changes, seen)
		parts, n = append(parts, newer), n+len(newer)
		if len(newer) < len(p.Changes) || n >= HistoryWindow {
			break
		}
	}
	slices.Reverse(parts)
	return slices.Clip(slices.Concat(parts...)[max(0, n-HistoryWindow):])
}

// History is the part of a set's history that a node is told: the newest changes
// after what it was told before.
type History struct {
	Ref     spec.SetRef `json:"ref"`
	Changes []Change    `json:"changes"`
}

// Find is the place of an ordinal among the members, and whether it is there.
func (t *Recorded) Find(ordinal int) (int, bool) {
	return slices.BinarySearchFunc(t.Members, ordinal, func(m RecordedMember, o int) int { return cmp.Compare(m.Ordinal, o) })
}

// Add takes a change as told. The members must not be shared.
func (t *Recorded) Add(c *Change) {
	switch c.Kind {
	case ChangeReplicas:
		t.Replicas = c.Replicas
	case ChangeUpdateBegan:
		t.Update, t.Updating = c.Revision, true
	case ChangeUpdateEnded:
		t.Updating = false
	}
	if c.Ordinal == NoOrdinal {
		return
	}
	i, known := t.Find(c.Ordinal)
	if !known {
		t.Members = slices.Insert(t.Members, i, RecordedMember{Ordinal: c.Ordinal})
	}
	m := &t.Members[i]
	m.Token, m.Revision = c.Token, c.Revision
	m.Ready, m.Left = c.Kind == ChangeReady, c.Kind == ChangeLeft
	m.Gone = m.Left && Reason(c.Reason).IsUnwanted()
}
