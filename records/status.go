package records

import (
	"net/netip"
	"time"

	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/spec/causes"
)

// SetStatus is the record status/<ns>/<set>; Kubernetes' names and meaning with
// the corrections of SEMANTICS Part 1. Written only when something differs.
type SetStatus struct {
	ObservedGeneration       int64             `json:"observedGeneration"`
	Replicas                 int               `json:"replicas"`
	ReadyReplicas            int               `json:"readyReplicas"`
	AvailableReplicas        int               `json:"availableReplicas"`
	CurrentReplicas          int               `json:"currentReplicas"`
	UpdatedReplicas          int               `json:"updatedReplicas"`
	UpdatedReadyReplicas     int               `json:"updatedReadyReplicas"`
	UpdatedAvailableReplicas int               `json:"updatedAvailableReplicas"`
	TerminatingReplicas      int               `json:"terminatingReplicas"`
	CurrentRevision          spec.RevisionHash `json:"currentRevision,omitempty"`
	// CurrentCompleted: every member ran the current revision and was available, once.
	CurrentCompleted bool              `json:"currentCompleted,omitempty"`
	UpdateRevision   spec.RevisionHash `json:"updateRevision,omitempty"`
	// RolledBackFrom is the update revision when it was given up (onFailure: Rollback):
	// the members go to the current revision until the template changes.
	RolledBackFrom spec.RevisionHash `json:"rolledBackFrom,omitempty"`
	// ServiceName is the governing service with which every member runs. It follows the
	// spec's when a rename is complete; until then members are found under both.
	ServiceName    string         `json:"serviceName,omitempty"`
	CollisionCount int            `json:"collisionCount,omitempty"`
	Bootstrapped   bool           `json:"bootstrapped,omitempty"`
	Conditions     []Condition    `json:"conditions,omitempty"`
	Members        []MemberStatus `json:"members,omitempty"`
}

// Condition is Available, Progressing, Stalled or Degraded.
type Condition struct {
	Type    string `json:"type"`
	Status  string `json:"status"` // True, False, Unknown
	Reason  string `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`
}

// MemberStatus is one row of the table of members.
type MemberStatus struct {
	Name     string            `json:"name"`
	Ordinal  int               `json:"ordinal"`
	Node     spec.NodeName     `json:"node,omitempty"`
	Address  netip.Addr        `json:"address,omitzero"`
	Revision spec.RevisionHash `json:"revision,omitempty"`
	Token    string            `json:"token,omitempty"`
	Phase    Phase             `json:"phase,omitempty"`
	Goal     Goal              `json:"goal,omitempty"`
	Ready    bool              `json:"ready,omitempty"`
	Restarts int               `json:"restarts,omitempty"`
	// Cause and Message tell what is wrong with the life, from its report.
	Cause   causes.Cause `json:"cause,omitempty"`
	Message string       `json:"message,omitempty"`
	// Blocked tells why nothing is done for the member, in words.
	Blocked string    `json:"blocked,omitempty"`
	BeganAt time.Time `json:"beganAt,omitzero"`
}
