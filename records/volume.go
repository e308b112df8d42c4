package records

import (
	"cmp"
	"time"

	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/spec/causes"
	"github.com/stead-project/stead/spec/scalar"
)

// VolumeID names one volume for ever; 32 hex digits.
type VolumeID string

// VolumeFate is what will become of a volume. It goes Keep → Delete → Reclaiming and
// then the record goes (Gone); Delete may return to Keep, Reclaiming to nothing. By hand
// it goes Keep or Reclaiming → Lost and then the record goes, or, when the volume is there
// after all, back to Keep; and a volume in the trash gets a record again: Restoring → Keep.
// No other volume of the same claim and identity is made before the record is gone.
type VolumeFate string

// The fates.
const (
	FateKeep VolumeFate = "Keep"
	// FateDelete: it goes when its last user is proven stopped.
	FateDelete VolumeFate = "Delete"
	// FateReclaiming: its node is told to move it to the trash.
	FateReclaiming VolumeFate = "Reclaiming"
	// FateLost: a person says that it is lost. Its node looks for it once more.
	FateLost VolumeFate = "Lost"
	// FateRestoring: its node is told to bring it back from the trash.
	FateRestoring VolumeFate = "Restoring"
	FateGone      VolumeFate = "Gone"
	// FateUnbound is shown of a claim that has no volume yet: none of its users has started.
	FateUnbound VolumeFate = "Unbound"
	// FateTrashed is shown of what has no record any more and lies in the trash of a node.
	FateTrashed VolumeFate = "Trashed"
)

// Going reports whether the volume is to go, as far as was decided.
func (f VolumeFate) Going() bool { return f == FateDelete || f == FateReclaiming }

// Ordered reports whether the volume's node is told to do something with it: nobody may
// use it meanwhile.
func (f VolumeFate) Ordered() bool {
	return f == FateReclaiming || f == FateLost || f == FateRestoring
}

// Volume is the record volumes/<ns>/<set>/<claim>/<ordinal>: the storage of one
// claim of one identity; it outlives member and set. Only writer: engine.
type Volume struct {
	ID    spec.Identity  `json:"id"`
	Claim spec.ClaimName `json:"claim"`
	UID   VolumeID       `json:"uid"`
	// Number counts the volumes the identity has had for this claim, from 1.
	Number int    `json:"number"`
	Class  string `json:"class"`
	// Node has it. A Shared one may be had by every node that has its class shared, and
	// goes where its member begins.
	Node      spec.NodeName `json:"node,omitempty"`
	Shared    bool          `json:"shared,omitempty"`
	SizeBytes int64         `json:"sizeBytes"`
	// Grown: SizeBytes is more than it was made with, which its node is told.
	Grown     bool       `json:"grown,omitempty"`
	Fate      VolumeFate `json:"fate"`
	CreatedAt time.Time  `json:"createdAt"`
	// Turn grows whenever the volume comes back from a fate: what its node said in an
	// earlier turn is void.
	Turn int `json:"turn,omitempty"`
	// TrashAfter is the trash period as it was when the volume was made or its fate
	// decided; nil: DefaultTrash.
	TrashAfter *scalar.Duration `json:"trashAfter,omitempty"`
	// Labels are those of the claim when the volume was made (see SetSpec.ClaimLabels); nil:
	// an older version made it, or its claim was not known.
	Labels map[string]string `json:"labels,omitempty"`
	// HeldBy is the life that was given it last; of a PersistentVolumeClaim that is
	// ReadWriteOncePod.
	HeldBy *spec.LifeID `json:"heldBy,omitempty"`
}

// Ordered reports whether the volume's node has an order about it. That a volume grew is one
// beside which it may be used.
func (v *Volume) Ordered() bool { return v.Fate.Ordered() || v.Fate == FateKeep && v.Grown }

// VolumeName is a volume's name for people, which may be that of several: the claim
// "a" of the member "b-c-0" and the claim "a-b" of "c-0".
func VolumeName(id spec.Identity, claim spec.ClaimName) string {
	if name, is := id.Ref().ClaimName(); is {
		return name
	}
	return string(claim) + "-" + id.MemberName()
}

// Trash is how long the volume stays in the trash once it was given up.
func (v *Volume) Trash() time.Duration {
	if v.TrashAfter == nil {
		return spec.DefaultTrash
	}
	return v.TrashAfter.Duration
}

// VolumeState is what a node says of a volume about which it has an order, or that lies in
// its trash.
type VolumeState string

// The states.
const (
	// VolumeTrashed: it lies in the trash, and nothing stands in its place.
	VolumeTrashed VolumeState = "Trashed"
	// VolumeFound: it stands in its place; said of one that was brought back, or that is
	// not lost after all.
	VolumeFound VolumeState = "Found"
	// VolumeAbsent: it is neither in its place nor in the trash, as it may be: no life ever
	// used it, so that it was never made, or a person said that it is lost, or in the trash.
	VolumeAbsent VolumeState = "Absent"
	// VolumeRefused: nothing was touched, for the reason that Cause and Message tell.
	VolumeRefused VolumeState = "Refused"
	// VolumeLeft: its host was said to be off and the volume lost, and nobody looked. Should
	// the host return, what stands there goes to the trash. Said by the engine, not by a node.
	VolumeLeft VolumeState = "Left"
	// VolumeErased: the trash does not hold it (any more).
	VolumeErased VolumeState = "Erased"
)

// Released reports whether nothing stands in the volume's place any more.
func (s VolumeState) Released() bool { return s == VolumeTrashed || s == VolumeAbsent }

// VolumeReport is volumereports/<ns>/<set>/<claim>/<ordinal>/<volume id>: what a node
// says of a volume that is being given up or lies in its trash. Only writer:
// dispatch, for the session that holds the node; an Erased one is removed.
type VolumeReport struct {
	ID     spec.Identity  `json:"id"`
	Claim  spec.ClaimName `json:"claim"`
	Volume VolumeID       `json:"volume"`
	Number int            `json:"number,omitempty"`
	Class  string         `json:"class"`
	Node   spec.NodeName  `json:"node"`
	State  VolumeState    `json:"state"`
	// Turn is that of the order that it follows.
	Turn int `json:"turn,omitempty"`
	// SizeBytes is as the order said, by which it was given up.
	SizeBytes int64 `json:"sizeBytes,omitempty"`
	// Left is how long it stayed to lie in the trash when this was said.
	Left scalar.Duration `json:"left,omitzero"`
	// Unproven: when the node first said this, the store knew of no such volume on any node
	// (it was restored from a backup, or the node lies). It is brought back only for a person
	// who names the node. Set by dispatch.
	Unproven bool `json:"unproven,omitempty"`
	// At is the node's wall clock, for people only.
	At time.Time `json:"at,omitzero"`
	// Cause is one word for why it was refused, Message the sentence.
	Cause   causes.Cause `json:"cause,omitempty"`
	Message string       `json:"message,omitempty"`
}

// HostVolume is a volume that a node has in its place, or may have, as it says when it says hello.
type HostVolume struct {
	ID     spec.Identity  `json:"id"`
	Claim  spec.ClaimName `json:"claim"`
	Volume VolumeID       `json:"volume"`
	Number int            `json:"number"`
	Class  string         `json:"class"`
	// SealedFor is the target of the move that sealed it; "": it is not sealed.
	SealedFor spec.NodeName `json:"sealedFor,omitempty"`
	// Unseen: its disk is not there or does not answer, so that it is not known whether it is in its place.
	Unseen bool `json:"unseen,omitempty"`
}

// Unknown reports whether the fate is that which is shown of what the store does not know, and a node has in its place.
func (f VolumeFate) Unknown() bool { return f == "Unknown" }

// Compare orders them by what they are of, and by their ids.
func (h *HostVolume) Compare(o *HostVolume) int {
	return cmp.Or(h.ID.Compare(o.ID), cmp.Compare(h.Claim, o.Claim), cmp.Compare(h.Volume, o.Volume))
}

// VolumeOrder tells a node what to do with one volume of its. Absence is no order.
type VolumeOrder struct {
	ID     spec.Identity  `json:"id"`
	Claim  spec.ClaimName `json:"claim"`
	Volume VolumeID       `json:"volume"`
	Number int            `json:"number"`
	Class  string         `json:"class"`
	// Fate is Keep (let it grow to SizeBytes, if its class has enforced sizes; agents of earlier versions
	// pass over that), Reclaiming (move it to the trash and say so), Lost (say whether it is there,
	// and leave it), Restoring (move it back from the trash and say so) or Gone (it is
	// forgotten: erase it when its time in the trash is over).
	Fate VolumeFate `json:"fate"`
	// Turn is repeated in what is said of it.
	Turn      int   `json:"turn,omitempty"`
	SizeBytes int64 `json:"sizeBytes,omitempty"`
	// Trash is how long it is to lie in the trash; of Reclaiming.
	Trash scalar.Duration `json:"trash,omitzero"`
	// Unused: no life was ever ready on it, so that it may never have been made.
	Unused bool `json:"unused,omitempty"`
}

// VolumeVerb is what a person asks of a volume.
type VolumeVerb string

// The verbs.
const (
	// VerbReclaim gives a kept volume up, which then goes as by the set's policy.
	VerbReclaim VolumeVerb = "Reclaim"
	// VerbLost says that a volume that is missing is lost for good.
	VerbLost VolumeVerb = "Lost"
	// VerbRestore brings a volume back from the trash.
	VerbRestore VolumeVerb = "Restore"
	// VerbDelete is shown of the volume of a claim that is being deleted; no request has it.
	VerbDelete VolumeVerb = "Delete"
)

// VolumeRequest is volumerequests/<ns>/<set>/<claim>/<ordinal>: what a person asks of
// one volume. Written by control, removed by the engine in the transaction that acts on
// it. It is void for another volume, and once a life of the identity began that the
// person did not know: then the engine removes it, too.
type VolumeRequest struct {
	ID     spec.Identity  `json:"id"`
	Claim  spec.ClaimName `json:"claim"`
	Volume VolumeID       `json:"volume"`
	Verb   VolumeVerb     `json:"verb"`
	// Node in whose trash the volume lies, of VerbRestore; "": of an older version. Of a volume that the store does not know, and which
	// is to be the member's, or to be given up, by VerbRestore and VerbReclaim: the one that has it in its place.
	Node spec.NodeName `json:"node,omitempty"`
	// Token is the newest that the identity had; zero: none.
	Token spec.Token `json:"token"`
	// Trash is how long the volume is to lie in the trash; nil: as its claim says.
	Trash *scalar.Duration `json:"trash,omitempty"`
	// At is for people only.
	At time.Time `json:"at"`
}
