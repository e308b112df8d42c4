package records

import (
	"time"

	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/spec/scalar"
)

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
	// Node in whose trash the volume lies; of VerbRestore. "": of an older version.
	Node spec.NodeName `json:"node,omitempty"`
	// Token is the newest that the identity had; zero: none.
	Token spec.Token `json:"token"`
	// Trash is how long the volume is to lie in the trash; nil: as its claim says.
	Trash *scalar.Duration `json:"trash,omitempty"`
	// At is for people only.
	At time.Time `json:"at"`
}
