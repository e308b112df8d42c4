package moves

import (
	"time"

	"github.com/stead-project/stead/spec"
)

// MoveRequested is the phase, as shown alone, of a move that is asked for and has not begun.
const MoveRequested MovePhase = "Requested"

// ShownMove is how the move of a member stands, as users read it.
type ShownMove struct {
	Member string        `json:"member"`
	Phase  MovePhase     `json:"phase"`
	From   spec.NodeName `json:"from"`
	To     spec.NodeName `json:"to"`
	// By is who asked for it, or the drain that did; BeganAt is when it was begun, or asked for.
	By      string    `json:"by,omitempty"`
	BeganAt time.Time `json:"beganAt,omitzero"`
	// DoneBytes of TotalBytes are at the target, as it said last, at most 10 s ago; 0 of 0: it has not said yet.
	DoneBytes  int64 `json:"doneBytes,omitempty"`
	TotalBytes int64 `json:"totalBytes,omitempty"`
	// BytesPerSecond is how much was copied in a second, lately; 0: nothing is, or that is not known.
	BytesPerSecond int64 `json:"bytesPerSecond,omitempty"`
	// LimitBytesPerSecond bounds that; 0: what the nodes bound all their copying by.
	LimitBytesPerSecond int64 `json:"limitBytesPerSecond,omitempty"`
	// Why says of one that is aborted, or goes back, why.
	Why string `json:"why,omitempty"`
	// Waits is what is being done, and what that waits for: a sentence.
	Waits string `json:"waits,omitempty"`
}

// Percent is how much of it is copied, 0 to 100; -1: that is not known.
func (s *ShownMove) Percent() int {
	if s.TotalBytes <= 0 {
		return -1
	}
	return int(min(s.DoneBytes, s.TotalBytes) * 100 / s.TotalBytes)
}
