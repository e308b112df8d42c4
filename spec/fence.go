package spec

import "time"

// Fence is fences/<node>: a person's word that a machine is off, and what it ended (SAFETY
// S10). It holds for the lives it names and for no later ones, and is gone when the machine
// says hello again. Only writer: dispatch.
type Fence struct {
	Node NodeName `json:"node"`
	UID  UID      `json:"uid"`
	// Boot is the one that is over, as the node told it last.
	Boot  BootID   `json:"boot"`
	Lives []Fenced `json:"lives,omitempty"`
	// By is who said so, as the client says; At is for people only.
	By string    `json:"by,omitempty"`
	At time.Time `json:"at"`
}

// Fenced is a life that counts as over by a fence.
type Fenced struct {
	ID    Identity `json:"id"`
	Token Token    `json:"token"`
}
