package records

import (
	"time"

	"github.com/stead-project/stead/spec"
)

// Fence is fences/<node>: a person's word that a machine is off, and what it ended (SAFETY
// S10). It holds for the lives it names and for no later ones, and is gone when the machine
// says hello again. Only writer: dispatch.
type Fence struct {
	Node spec.NodeName `json:"node"`
	UID  spec.UID      `json:"uid"`
	// Boot is the one that is over, as the node told it last.
	Boot  spec.BootID   `json:"boot"`
	Lives []spec.LifeID `json:"lives,omitempty"`
	// By is who said so, as the client says; At is for people only.
	By string    `json:"by,omitempty"`
	At time.Time `json:"at"`
}
