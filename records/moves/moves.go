// Package moves has the records and messages of moves: a member with its local volumes goes to another node (SAFETY S12).
package moves

import (
	"cmp"
	"net/netip"
	"reflect"
	"slices"
	"time"

	"github.com/stead-project/stead/spec"
)

// MoveID names one move of a member with its local volumes for ever; 32 hex digits.
type MoveID string

// MovePhase is how far a move has come (SAFETY S12): Copying → Stopping → Sealing → Flipped, after which the record
// goes; or, before Flipped, Aborting, after which it goes as well; or after Flipped Back, if the target was lost.
type MovePhase string

// The phases.
const (
	// MoveCopying: the target copies in rounds while the member runs.
	MoveCopying MovePhase = "Copying"
	// MoveStopping: the life is to end; the target goes on copying. From now until Flipped no life of the member starts.
	MoveStopping MovePhase = "Stopping"
	// MoveSealing: the life is proven over. The source seals; then the target makes its last round and compares.
	MoveSealing MovePhase = "Sealing"
	// MoveFlipped: the volumes are the target's. It puts them in their place, and only then a life may start there.
	// When one is ready there the old copies are given up (VolumeLeft), and the record goes.
	MoveFlipped MovePhase = "Flipped"
	// MoveAborting: the source breaks its seal, the target discards what it has, and the member starts there again. A copy that may be whole
	// is kept until the source says that it has the volumes; until then the target is told that the move is Sealing. Should they be lost
	// there, a person can have it Flipped.
	MoveAborting MovePhase = "Aborting"
	// MoveBack: the target was lost before a life was ready there, and the old ids are the volumes again. The source notes that
	// for good, breaks its seal, and says that it has them all; only then a life may start there, and the record goes. Until then the
	// target keeps what it has, and is told that the move is Flipped.
	MoveBack MovePhase = "Back"
)

// Down reports whether no life of the member may start because of the move.
func (p MovePhase) Down() bool { return p == MoveStopping || p == MoveSealing }

// Move is moves/<ns>/<set>/<ordinal>: the move of a member's local volumes to another node. Only writer: engine.
type Move struct {
	ID    spec.Identity `json:"id"`
	Move  MoveID        `json:"move"`
	Phase MovePhase     `json:"phase"`
	From  MoveEnd       `json:"from"`
	To    MoveEnd       `json:"to"`
	// Claims are the local volumes that move, ascending by claim; at least one.
	Claims []MoveClaim `json:"claims"`
	// Epoch is that of the store when the move was begun. In a later one the record may be older than what the
	// nodes have done (SAFETY S8).
	Epoch int64 `json:"epoch"`
	// Stopped is the newest token of the identity when the move was stopped for; zero before that, or: it never had one.
	Stopped spec.Token `json:"stopped,omitzero"`
	// Sums are those of the sealed source, as it first said them, by claim; nil: it has not yet.
	Sums []MoveSum `json:"sums,omitempty"`
	// BytesPerSecond bounds the copying; 0: what the nodes bound all their copying by.
	BytesPerSecond int64 `json:"bytesPerSecond,omitempty"`
	// Why says of one that is aborted, or goes back, why.
	Why string `json:"why,omitempty"`
	// By is who asked for it, as the client says, or the drain that did; BeganAt is for people only.
	By      string    `json:"by,omitempty"`
	BeganAt time.Time `json:"beganAt"`
}

// MoveEnd is one of the two machines of a move.
type MoveEnd struct {
	Node spec.NodeName `json:"node"`
	UID  spec.UID      `json:"uid"`
}

// MoveClaim is one volume of a move. Its copy is another volume of the same number.
type MoveClaim struct {
	Claim     spec.ClaimName `json:"claim"`
	Old       string         `json:"old"` // a records.VolumeID
	New       string         `json:"new"` // another
	Number    int            `json:"number"`
	Class     string         `json:"class"`
	SizeBytes int64          `json:"sizeBytes"`
}

// NothingOffered is the error of a target that has not all of the source, and to which its order names nobody that offers it. Planners read it.
const NothingOffered = "the other node offers nothing yet"

// MoveVerb is what a person asks of a member's move.
type MoveVerb string

// The verbs.
const (
	MoveBegin MoveVerb = "Move"
	MoveAbort MoveVerb = "Abort"
	// MoveGiveBack: the target is lost for good, and the source is to have the volumes back. While it goes back, or is aborted, MoveBegin to
	// its target makes the copies there the volumes after all.
	MoveGiveBack MoveVerb = "Back"
)

// MoveRequest is moverequests/<ns>/<set>/<ordinal>: what a person asks about the move of a member. Written by control,
// removed by the engine in the transaction that acts, or when it is void.
type MoveRequest struct {
	ID   spec.Identity `json:"id"`
	Verb MoveVerb      `json:"verb"`
	// To is where the member is to be moved; of MoveBegin.
	To MoveEnd `json:"to,omitzero"`
	// Move is the one to be aborted, or to go back; of MoveAbort and MoveGiveBack.
	Move           MoveID `json:"move,omitempty"`
	BytesPerSecond int64  `json:"bytesPerSecond,omitempty"`
	// By and At are for people only.
	By string    `json:"by,omitempty"`
	At time.Time `json:"at"`
}

// MoveRole is what a node does in a move.
type MoveRole string

// The roles.
const (
	MoveSource MoveRole = "Source"
	MoveTarget MoveRole = "Target"
)

// MaxMoves is how many moves a node is told of at a time, in either role; others wait.
const MaxMoves = 64

// MoveOrder tells a node of one move that it has a part in. A node is always told of all; one that is not told of any
// more is over: after Flipped, Aborting or Back. Absence is no order: a seal stays, and what lies in staging may be discarded.
// A later phase of the same move never goes back to an earlier one.
type MoveOrder struct {
	ID    spec.Identity `json:"id"`
	Move  MoveID        `json:"move"`
	Role  MoveRole      `json:"role"`
	Phase MovePhase     `json:"phase"`
	// Peer is the other node, and where its agent is; Port and Key are as that node reported them: 0 and "" until it did.
	Peer        spec.NodeName `json:"peer"`
	PeerAddress netip.Addr    `json:"peerAddress,omitzero"`
	PeerPort    uint16        `json:"peerPort,omitempty"` // of the source; told to the target
	PeerKey     string        `json:"peerKey,omitempty"`  // hex of the SHA-256 of its public key
	Claims      []MoveClaim   `json:"claims"`
	// BytesPerSecond is as in Move.
	BytesPerSecond int64 `json:"bytesPerSecond,omitempty"`
	// Sums are those of the sealed source; told to the target in Sealing: with them it makes its last round and compares.
	Sums []MoveSum `json:"sums,omitempty"`
	// Unseal: the source may break its seal, for no copy elsewhere can be the volume (SAFETY S12); in Aborting. Until then it
	// only stops offering.
	Unseal bool `json:"unseal,omitempty"`
}

// MoveSum is the sum of the tree of one volume: 64 hex digits.
type MoveSum struct {
	Claim spec.ClaimName `json:"claim"`
	Sum   string         `json:"sum"`
}

// MoveState is what a node says of its part in a move. What is said must be on disk before it is said.
type MoveState string

// The states of a source.
const (
	// MoveOffered: it hands out the trees to the peer whose key it was told.
	MoveOffered MoveState = "Offered"
	// MoveSealed: the owner files say that the volumes are sealed for this move. No life has them open, nobody can, and
	// all is on disk. Sums are those of the trees since then.
	MoveSealed MoveState = "Sealed"
	// MoveUnsealed: the volumes are as before the move, and may be used. Said in Aborting with Unseal alone.
	MoveUnsealed MoveState = "Unsealed"
	// MoveIsBack: it was ordered to have the volumes back, which it keeps for good, and nothing is sealed for this move. Absent are those
	// that it has not. Said in any phase: after a restore of the store it shows that what arrived at the target does not count any more.
	MoveIsBack MoveState = "Back"
)

// The states of a target.
const (
	// MoveCopyingNow: it copies, or waits for the source.
	MoveCopyingNow MoveState = "Copying"
	// MoveWarm: what is missing is little. It goes on copying.
	MoveWarm MoveState = "Warm"
	// MoveCopied: what lies in staging is all of the sealed source, compared by content, and on disk. Sums are its own.
	MoveCopied MoveState = "Copied"
	// MoveArrived: the volumes are in their place under their new ids, and may be used. Said in any phase when it is so: after
	// a restore of the store it shows that the move was flipped.
	MoveArrived MoveState = "Arrived"
	// MoveDiscarded: nothing of the move is left, and nothing of it was ever in its place here. Said in Aborting.
	MoveDiscarded MoveState = "Discarded"
)

// MoveFailed, of either: it cannot do its part, and will not try again, for the reason that Error tells.
const MoveFailed MoveState = "Failed"

// MoveReport is what a node says of its part in a move, all of its moves each time. In its facts it is as of the present
// session.
type MoveReport struct {
	ID    spec.Identity `json:"id"`
	Move  MoveID        `json:"move"`
	Role  MoveRole      `json:"role"`
	State MoveState     `json:"state"`
	// Key and Port are for the peer: the SHA-256 of the public key that was made for this move, in hex; where a source offers.
	Key  string `json:"key,omitempty"`
	Port uint16 `json:"port,omitempty"`
	// DoneBytes of TotalBytes are at the target, as it knows; reported now and then.
	DoneBytes  int64 `json:"doneBytes,omitempty"`
	TotalBytes int64 `json:"totalBytes,omitempty"`
	// BytesPerSecond is how many came in a second since it was told before; 0: none, or that is not known.
	BytesPerSecond int64     `json:"bytesPerSecond,omitempty"`
	Sums           []MoveSum `json:"sums,omitempty"`
	// Absent are the claims whose old volumes are not in their place here; said by a source, in any state.
	Absent []spec.ClaimName `json:"absent,omitempty"`
	// Peer and Claims are said with a seal of a move that no order names: what the servers need to know of it to abort it.
	Peer   spec.NodeName `json:"peer,omitempty"`
	Claims []MoveClaim   `json:"claims,omitempty"`
	// Error is why it failed, or what holds it up now: a sentence.
	Error string `json:"error,omitempty"`
}

// Compare orders them by what they are about.
func (r *MoveReport) Compare(o *MoveReport) int {
	return cmp.Or(r.ID.Compare(o.ID), cmp.Compare(r.Move, o.Move), cmp.Compare(r.Role, o.Role))
}

// Equal reports whether both say the same.
func (r MoveReport) Equal(o MoveReport) bool {
	lists := slices.Equal(r.Sums, o.Sums) && slices.Equal(r.Claims, o.Claims) && slices.Equal(r.Absent, o.Absent)
	r.Sums, o.Sums, r.Claims, o.Claims, r.Absent, o.Absent = nil, nil, nil, nil, nil, nil
	return lists && reflect.DeepEqual(r, o)
}

// Said is what the node says of its part in a move, of all that it says; nil: nothing in this session.
func Said(all []MoveReport, move MoveID, role MoveRole) *MoveReport {
	for i := range all {
		if r := &all[i]; r.Move == move && r.Role == role {
			return r
		}
	}
	return nil
}
