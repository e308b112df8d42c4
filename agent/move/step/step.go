// Package step decides what a node does next for its part in a move, and what it says of it (SAFETY S12). It is pure:
// agent/move acts.
package step

import (
	"slices"

	"github.com/stead-project/stead/records/moves"
	"github.com/stead-project/stead/spec"
)

// Disk is what is on the node's disks of a part.
type Disk struct {
	// Sealed: at least one volume is; AllSealed: each is, or was given up.
	Sealed, AllSealed bool
	// Absent are the claims whose volumes are not in their place, of a source.
	Absent []spec.ClaimName
	// Arrived: at least one volume is in its place under its new id; AllArrived: each is, or was.
	Arrived, AllArrived bool
	// Staged: something lies in staging. Copied are its sums, if all of the sealed source is there, and on disk.
	Staged bool
	Copied []moves.MoveSum
}

// Situation is all that a decision looks at.
type Situation struct {
	Role moves.MoveRole
	// Order is the newest; nil: the node is told of no such move.
	Order *moves.MoveOrder
	// Told: this process has taken a list of orders. SameEpoch: it is of the epoch in which the move was named last.
	Told, SameEpoch bool
	Disk            Disk
	// Sums are those of a source, of its trees since they were sealed; nil: not known.
	Sums []moves.MoveSum
	// Warm: the last round of a target found little to copy.
	Warm bool
	// Back: it is noted on disk that the volumes were given back to this source.
	Back bool
	// Failed is why the part cannot be done; "": it may be.
	Failed string
}

// Op is what to do.
type Op string

// The operations. Each may be repeated.
const (
	Wait    Op = ""
	Offer   Op = "Offer"   // hand out the trees
	Seal    Op = "Seal"    // unless a life may have the volumes
	Sum     Op = "Sum"     // of the sealed trees
	Unseal  Op = "Unseal"  // and offer nothing
	Copy    Op = "Copy"    // a round while the member runs
	Last    Op = "Last"    // the round after which all must be equal
	Arrive  Op = "Arrive"  // from staging into their place
	Discard Op = "Discard" // what lies in staging
	Forget  Op = "Forget"  // the part
	// GiveBack notes for good, before the seal is broken, that the volumes were given back.
	GiveBack Op = "GiveBack"
)

// Next is a decision: what to do, and what to say meanwhile.
type Next struct {
	Op Op
	// Say is the state of the report; "": there is nothing to say. Error goes with it.
	Say    moves.MoveState
	Sums   []moves.MoveSum
	Absent []spec.ClaimName
	Error  string
}

// What is said of a part that no order names.
const (
	unknownSeal = "the volumes are sealed, and the servers know of no such move: no life starts with them here"
	unknownCopy = "the servers know of no such move since the store was restored: what was copied is kept until the move is aborted"
	notCopied   = "what was copied here is not all of the source: it is not put in its place"
	notSealed   = "no volume that this move sealed is here"
)

// Choose decides.
func Choose(v Situation) Next {
	if v.Role != moves.MoveSource {
		return target(v)
	}
	next := source(v)
	if next.Say != "" {
		next.Absent = v.Disk.Absent
	}
	return next
}

// source decides for a source. Only an order removes a seal; that to have the volumes back is noted, and holds whatever comes later.
func source(v Situation) Next {
	sealed := v.Disk.Sealed && v.Disk.AllSealed
	switch {
	case v.Back && v.Disk.Sealed:
		return Next{Op: Unseal, Say: moves.MoveSealed}
	case v.Back && v.Order == nil: // nothing is said, and the part is kept
		return Next{}
	case v.Back:
		return Next{Say: moves.MoveIsBack}
	case v.Order == nil && v.Disk.Sealed && v.Told:
		return Next{Say: moves.MoveSealed, Error: unknownSeal}
	case v.Order == nil && v.Disk.Sealed:
		return Next{Say: moves.MoveSealed}
	case v.Order == nil && v.Told:
		return Next{Op: Forget}
	case v.Order == nil:
		return Next{}
	case v.Order.Phase == moves.MoveBack:
		return Next{Op: GiveBack, Say: moves.MoveSealed}
	case v.Order.Phase == moves.MoveFlipped && !v.Disk.Sealed:
		return Next{Say: moves.MoveFailed, Error: notSealed}
	case v.Order.Phase == moves.MoveFlipped:
		return Next{Say: moves.MoveSealed, Sums: v.Sums}
	case v.Order.Phase == moves.MoveAborting && v.Order.Unseal && v.Disk.Sealed:
		return Next{Op: Unseal, Say: moves.MoveSealed}
	case v.Order.Phase == moves.MoveAborting && v.Order.Unseal:
		return Next{Say: moves.MoveUnsealed}
	case v.Order.Phase == moves.MoveAborting && v.Disk.Sealed:
		return Next{Say: moves.MoveSealed}
	case v.Order.Phase == moves.MoveAborting:
		return Next{Say: moves.MoveOffered}
	case v.Failed != "":
		return Next{Say: moves.MoveFailed, Error: v.Failed}
	case v.Order.Phase == moves.MoveSealing && !sealed:
		return Next{Op: Seal, Say: moves.MoveOffered}
	case v.Order.Phase == moves.MoveSealing && v.Sums == nil:
		return Next{Op: Sum, Say: moves.MoveOffered}
	case v.Disk.Sealed:
		return Next{Op: Offer, Say: moves.MoveSealed, Sums: v.Sums}
	}
	return Next{Op: Offer, Say: moves.MoveOffered}
}

// target decides for a target. A copy of which a part has its new id is the volume, in any phase of the order: a restored store may
// order an earlier one. One that goes back arrives as well: it may be the last that is whole, and is given up by its record later.
func target(v Situation) Next {
	now := Next{Say: moves.MoveCopyingNow}
	switch {
	case len(v.Disk.Copied) > 0:
		now = Next{Say: moves.MoveCopied, Sums: v.Disk.Copied}
	case v.Warm:
		now.Say = moves.MoveWarm
	}
	do := func(op Op) Next { now.Op = op; return now }
	o := v.Order
	over := o == nil && v.Told && v.SameEpoch
	flipped := o != nil && (o.Phase == moves.MoveFlipped || o.Phase == moves.MoveBack)
	left := v.Disk.Staged || len(v.Disk.Copied) > 0
	switch {
	case v.Disk.AllArrived && over:
		return Next{Op: Forget}
	case v.Disk.AllArrived:
		return Next{Say: moves.MoveArrived}
	case v.Disk.Arrived && over && left: // one that was flipped is over before all of it arrived if it went back
		return do(Discard)
	case v.Disk.Arrived && over:
		return Next{Op: Forget}
	case v.Disk.Arrived:
		return do(Arrive)
	case o == nil && !v.Told:
		return now
	case o == nil && !v.SameEpoch && v.Disk.Staged:
		now.Error = unknownCopy
		return now
	case o == nil && v.Disk.Staged:
		return Next{Op: Discard}
	case o == nil:
		return Next{Op: Forget}
	case o.Phase == moves.MoveAborting && left:
		return do(Discard)
	case o.Phase == moves.MoveAborting:
		return Next{Say: moves.MoveDiscarded}
	case flipped && len(v.Disk.Copied) == 0:
		return Next{Say: moves.MoveFailed, Error: notCopied}
	case flipped:
		return do(Arrive)
	case v.Failed != "":
		return Next{Say: moves.MoveFailed, Error: v.Failed}
	case o.Phase == moves.MoveSealing && len(o.Sums) > 0 && slices.Equal(o.Sums, v.Disk.Copied):
		return now
	case (o.PeerKey == "" || o.PeerPort == 0) && now.Say == moves.MoveCopied && o.Phase == moves.MoveSealing:
		return now // it is kept while its move is aborted, and the sums are not known since the store was restored
	case o.PeerKey == "" || o.PeerPort == 0:
		now.Error = moves.NothingOffered
		return now
	case o.Phase == moves.MoveSealing && len(o.Sums) > 0:
		return Next{Op: Last, Say: moves.MoveWarm}
	}
	if now.Say == moves.MoveCopied {
		now = Next{Say: moves.MoveCopyingNow} // it is about to be written to again
	}
	return do(Copy)
}

// Interrupts reports whether a new order ends what is under way for the one before, so that another thing is done, or the
// same with another peer. What arrives is never interrupted.
func Interrupts(op Op, old, now *moves.MoveOrder) bool {
	switch {
	case op == Wait || op == Arrive || op == Unseal || op == Discard:
		return false
	case old == nil || now == nil || now.Phase == moves.MoveAborting || now.Phase == moves.MoveBack:
		return true
	case op == Copy:
		return len(now.Sums) > 0 || old.PeerKey != now.PeerKey || old.PeerPort != now.PeerPort
	case op == Last:
		return !slices.Equal(old.Sums, now.Sums) || old.PeerKey != now.PeerKey || old.PeerPort != now.PeerPort
	}
	return false
}
