package runtime

import (
	"context"

	"github.com/stead-project/stead/records/moves"
	"github.com/stead-project/stead/spec"
)

// MovePart is what a node keeps of its part in a move, on its disk (SAFETY S12).
type MovePart struct {
	ID   spec.Identity  `json:"id"`
	Move moves.MoveID   `json:"move"`
	Role moves.MoveRole `json:"role"`
	// Peer is the other node.
	Peer   spec.NodeName     `json:"peer"`
	Claims []moves.MoveClaim `json:"claims"`
	// Epoch is that of the list which named the move last.
	Epoch int64 `json:"epoch"`
	// Copied are the sums of what lies in staging, when all of it is on disk and nothing writes there any more; of a target.
	Copied []moves.MoveSum `json:"copied,omitempty"`
	// Back: the volumes were given back to this source. It stays, and so does the part: the servers must learn of it again when the store
	// is restored from an older backup.
	Back bool `json:"back,omitempty"`
}

// MoveDisk is what is on a node's disks of its part in a move.
type MoveDisk struct {
	// Sealed: the owner file of at least one volume says so, for this move; AllSealed: each does, or the volume was given up.
	Sealed, AllSealed bool
	// Absent are the claims whose volumes are not in their place, of a source.
	Absent []spec.ClaimName
	// Arrived: at least one volume is in its place under its new id; AllArrived: each is, or was, and that is noted.
	Arrived, AllArrived bool
	// Staged: something of it is in staging. Missing: a volume is neither there nor in its place, nor was; of a target.
	Staged, Missing bool
}

// MoveTree is the directory of one volume of a move: that which members see.
type MoveTree struct {
	Claim spec.ClaimName
	Path  string
	// SizeBytes is how large the volume is where its class enforces sizes; 0: it has what the disk has.
	SizeBytes int64
}

// MoveVolumes does with the volumes of moves what a node is told to. All of it is durable when it returns, and may be
// repeated. Of one move one caller acts at a time. Errors are as those of Volumes. Body: agent/volume.
type MoveVolumes interface {
	// Parts are the parts that were noted and not forgotten, by move and role.
	Parts(ctx context.Context) ([]MovePart, error)
	// Note keeps a part; Forget removes it.
	Note(ctx context.Context, p MovePart) error
	Forget(ctx context.Context, p MovePart) error
	// Look says what is on disk.
	Look(ctx context.Context, p MovePart) (MoveDisk, error)
	// Source finds the volumes that go: each is in its place with its old id, sealed or not, and nothing is mounted in it.
	Source(ctx context.Context, p MovePart) ([]MoveTree, error)
	// Seal has all owner files say that the volumes are sealed: from then on Ensure refuses them. Unseal takes that back, of
	// those that are sealed for this move.
	Seal(ctx context.Context, p MovePart) error
	Unseal(ctx context.Context, p MovePart) error
	// Stage makes what is copied into, beside the volumes of their classes: directories, or file systems of the claims' sizes.
	// ErrExists, ErrForeign: something is where the volumes are to come. ErrNoSpace: the disk has no room for the sizes.
	Stage(ctx context.Context, p MovePart) ([]MoveTree, error)
	// Arrive renames what was copied into its place, under the new ids, and notes the volumes as made. It goes on where an
	// earlier call ended.
	Arrive(ctx context.Context, p MovePart) error
	// Discard deletes what is in staging.
	Discard(ctx context.Context, p MovePart) error
	// Release unmounts what Source and Stage have mounted; nobody reads or writes it any more.
	Release(ctx context.Context, p MovePart) error
}
