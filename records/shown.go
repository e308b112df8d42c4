package records

import (
	"net/netip"
	"time"

	"github.com/stead-project/stead/records/moves"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/spec/causes"
)

// Shown is the form in which the server sends every kind: that of a manifest, with what was
// seen as Status. Spec and Status are of any type where it is made, and of the kind's (any: not
// looked at) where it is read.
type Shown[S, T any] struct {
	APIVersion string    `json:"apiVersion"`
	Kind       string    `json:"kind"`
	Metadata   ShownMeta `json:"metadata"`
	Spec       S         `json:"spec,omitempty"`
	Data       any       `json:"data,omitempty"`
	BinaryData any       `json:"binaryData,omitempty"`
	Type       string    `json:"type,omitempty"`
	Immutable  bool      `json:"immutable,omitempty"`
	Status     T         `json:"status,omitempty"`

	// Of Endpoints and EndpointSlices.
	Subsets     []EndpointSubset `json:"subsets,omitempty"`
	AddressType string           `json:"addressType,omitempty"`
	Endpoints   []SliceEndpoint  `json:"endpoints,omitempty"`
	Ports       []EndpointPort   `json:"ports,omitempty"`
}

// ShownMeta is the metadata of what is shown. Namespace is empty for nodes.
type ShownMeta struct {
	Name              string            `json:"name"`
	Namespace         spec.Namespace    `json:"namespace,omitempty"`
	Labels            map[string]string `json:"labels,omitempty"`
	Annotations       map[string]string `json:"annotations,omitempty"`
	UID               string            `json:"uid,omitempty"`
	Generation        int64             `json:"generation,omitempty"`
	CreationTimestamp time.Time         `json:"creationTimestamp,omitzero"`
}

// ShownSet is a set's status: what was seen, and what users ordered beside the spec.
type ShownSet struct {
	SetStatus
	Paused   bool   `json:"paused,omitempty"`
	Deleting bool   `json:"deleting,omitempty"`
	Orphaned bool   `json:"orphaned,omitempty"`
	Edits    []Edit `json:"edits,omitempty"`
	// Moves are those of its members that are asked for or under way, by ordinal.
	Moves []moves.ShownMove `json:"moves,omitempty"`
}

// ShownMember is a member's status: its row of the set's table, and its report.
type ShownMember struct {
	MemberStatus
	Report *Report `json:"report,omitempty"`
	// Move is asked for or under way; nil: none is.
	Move *moves.ShownMove `json:"move,omitempty"`
	// Role is RoleLeader of the member that leads (Leader), else "".
	Role string `json:"role,omitempty"`
}

// ShownNode is a node's status; its NodeFacts are nil until it has connected once.
type ShownNode struct {
	*NodeFacts
	// State is Ready (a live session), Silent or Lost; SilentSeconds is how long the answering
	// server has seen it without a session, and Waits what its lives wait for meanwhile.
	State         string   `json:"state"`
	SilentSeconds int64    `json:"silentSeconds,omitempty"`
	Waits         string   `json:"waits,omitempty"`
	Session       *Session `json:"session,omitempty"`
	// Lives are on it, of all sets; AskedCPUMillis and AskedMemoryBytes are what they request.
	Lives            int   `json:"lives"`
	AskedCPUMillis   int64 `json:"askedCPUMillis"`
	AskedMemoryBytes int64 `json:"askedMemoryBytes"`
}

// ShownVolume is a volume's status.
type ShownVolume struct {
	// User is the life that uses it, as "db-0 1.23"; "": none. Of a claim's there may be several.
	User string `json:"user,omitempty"`
	// Said is what its node reported of it.
	Said *VolumeReport `json:"said,omitempty"`
	// Asked is what a user requested of it and what is not done yet.
	Asked VolumeVerb `json:"asked,omitempty"`
	// Use is how full it is; nil: its node was not asked, or has not said. Nothing of it is stored.
	Use *ShownUse `json:"use,omitempty"`
}

// ShownUse is how full a volume is, as its node says.
type ShownUse struct {
	// UsedBytes are what its files take on the disk, as they were measured MeasuredSecondsAgo; nil: not measured yet.
	UsedBytes          *int64 `json:"usedBytes,omitempty"`
	MeasuredSecondsAgo int64  `json:"measuredSecondsAgo,omitempty"`
	// FreeBytes can still be written to the file system that it is on, whose size is TotalBytes; nil: not known.
	FreeBytes  *int64 `json:"freeBytes,omitempty"`
	TotalBytes *int64 `json:"totalBytes,omitempty"`
	// Problem is why it is smaller than its claim asks for; "": it is not.
	Problem string `json:"problem,omitempty"`
}

// ShownService is the status of a Service of type LoadBalancer, as Kubernetes shows it.
type ShownService struct {
	LoadBalancer ShownBalancer `json:"loadBalancer"`
}

// ShownBalancer is where clients outside reach a Service; without Ingress they do not by an address of its own.
type ShownBalancer struct {
	Ingress []ShownIngress `json:"ingress,omitempty"`
}

// ShownIngress is an address for clients outside; IPMode is VIP: hosts lead packets to it.
type ShownIngress struct {
	IP     netip.Addr `json:"ip"`
	IPMode string     `json:"ipMode"`
}

// ShownFiles is the status of ConfigMaps and Secrets.
type ShownFiles struct {
	Keys []ShownFile `json:"keys"`
}

// ShownFile names one file of a ConfigMap or Secret, without its content.
type ShownFile struct {
	Name string `json:"name"`
	// SizeBytes is -1 where it is not known.
	SizeBytes int `json:"sizeBytes"`
}

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
