package records

import (
	"time"

	"github.com/stead-project/stead/spec"
)

// Shown is the form in which the server sends every kind: that of a manifest, with what was
// seen as Status. A Part is any value where it is made, and raw JSON where it is read.
type Shown[Part any] struct {
	APIVersion string    `json:"apiVersion"`
	Kind       string    `json:"kind"`
	Metadata   ShownMeta `json:"metadata"`
	Spec       Part      `json:"spec,omitempty"`
	Data       Part      `json:"data,omitempty"`
	BinaryData Part      `json:"binaryData,omitempty"`
	Type       string    `json:"type,omitempty"`
	Status     Part      `json:"status,omitempty"`
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
}

// ShownMember is a member's status: its row of the set's table, and its report.
type ShownMember struct {
	MemberStatus
	Report *Report `json:"report,omitempty"`
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
	// User is the life that uses it, as "db-0 1.23"; "": none.
	User string `json:"user,omitempty"`
	// Said is what its node reported of it.
	Said *VolumeReport `json:"said,omitempty"`
	// Asked is what a user requested of it and what is not done yet.
	Asked VolumeVerb `json:"asked,omitempty"`
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
