package spec

import "time"

// VolumeFate is what will become of a volume. It goes Keep → Delete → Reclaiming and
// then the record goes (Gone); Delete may return to Keep, Reclaiming to nothing. No
// volume of the same claim and identity is made before the record is gone.
type VolumeFate string

// The fates.
const (
	FateKeep VolumeFate = "Keep"
	// FateDelete: it goes when its last user is proven stopped.
	FateDelete VolumeFate = "Delete"
	// FateReclaiming: its node is told to move it to the trash.
	FateReclaiming VolumeFate = "Reclaiming"
	FateGone       VolumeFate = "Gone"
	// FateTrashed is shown of what has no record any more and lies in the trash of a node.
	FateTrashed VolumeFate = "Trashed"
)

// Going reports whether the volume is to go, as far as was decided.
func (f VolumeFate) Going() bool { return f == FateDelete || f == FateReclaiming }

// DefaultTrash is how long a volume that was given up stays in the trash of its node.
const DefaultTrash = 24 * time.Hour

// Volume is the record volumes/<ns>/<set>/<claim>/<ordinal>: the storage of one
// claim of one identity; it outlives member and set. Only writer: engine.
type Volume struct {
	ID    Identity  `json:"id"`
	Claim ClaimName `json:"claim"`
	UID   VolumeID  `json:"uid"`
	// Number counts the volumes the identity has had for this claim, from 1.
	Number    int        `json:"number"`
	Class     string     `json:"class"`
	Node      NodeName   `json:"node,omitempty"`
	SizeBytes int64      `json:"sizeBytes"`
	Fate      VolumeFate `json:"fate"`
	CreatedAt time.Time  `json:"createdAt"`
	// TrashAfter is the trash period as it was when the volume was made or its fate
	// decided; nil: DefaultTrash.
	TrashAfter *Duration `json:"trashAfter,omitempty"`
}

// VolumeName is a volume's name for people, which may be that of several: the claim
// "a" of the member "b-c-0" and the claim "a-b" of "c-0".
func VolumeName(id Identity, claim ClaimName) string { return string(claim) + "-" + id.MemberName() }

// Trash is how long the volume stays in the trash once it was given up.
func (v *Volume) Trash() time.Duration {
	if v.TrashAfter == nil {
		return DefaultTrash
	}
	return v.TrashAfter.Duration
}

// VolumeState is what a node says of a volume that it was told to give up.
type VolumeState string

// The states.
const (
	// VolumeTrashed: it lies in the trash, and nothing stands in its place.
	VolumeTrashed VolumeState = "Trashed"
	// VolumeAbsent: no life ever used it, and it was never made.
	VolumeAbsent VolumeState = "Absent"
	// VolumeRefused: nothing was touched, for the reason that Cause and Message tell.
	VolumeRefused VolumeState = "Refused"
	// VolumeErased: the trash does not hold it (any more).
	VolumeErased VolumeState = "Erased"
)

// Released reports whether nothing stands in the volume's place any more.
func (s VolumeState) Released() bool { return s == VolumeTrashed || s == VolumeAbsent }

// VolumeReport is volumereports/<ns>/<set>/<claim>/<ordinal>/<volume id>: what a node
// says of a volume that is being given up or lies in its trash. Only writer:
// dispatch, for the session that holds the node; an Erased one is removed.
type VolumeReport struct {
	ID     Identity    `json:"id"`
	Claim  ClaimName   `json:"claim"`
	Volume VolumeID    `json:"volume"`
	Number int         `json:"number,omitempty"`
	Class  string      `json:"class"`
	Node   NodeName    `json:"node"`
	State  VolumeState `json:"state"`
	// Left is how long it stayed to lie in the trash when this was said.
	Left Duration `json:"left,omitzero"`
	// At is the node's wall clock, for people only.
	At time.Time `json:"at,omitzero"`
	// Cause is one word for why it was refused, Message the sentence.
	Cause   string `json:"cause,omitempty"`
	Message string `json:"message,omitempty"`
}

// VolumeOrder tells a node what to do with one volume of its. Absence is no order.
type VolumeOrder struct {
	ID     Identity  `json:"id"`
	Claim  ClaimName `json:"claim"`
	Volume VolumeID  `json:"volume"`
	Number int       `json:"number"`
	Class  string    `json:"class"`
	// Fate is Reclaiming (move it to the trash and say so) or Gone (it is forgotten:
	// erase it when its time in the trash is over).
	Fate VolumeFate `json:"fate"`
	// Trash is how long it is to lie in the trash; of Reclaiming.
	Trash Duration `json:"trash,omitzero"`
	// Unused: no life was ever ready on it, so that it may never have been made.
	Unused bool `json:"unused,omitempty"`
}
