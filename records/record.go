package records

import (
	"cmp"
	"maps"
	"net/netip"
	"time"

	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/spec/causes"
)

// The records below are what the store keeps: one writer per key (DESIGN 5).

// Set is the record sets/<ns>/<set>. Only writer: control.
type Set struct {
	Ref        spec.SetRef `json:"ref"`
	UID        spec.UID    `json:"uid"`
	Generation int64       `json:"generation"`
	// InitialReplicas is the number of members when the set first had any: the set is
	// bootstrapped once each of them was ready once (SAFETY S16).
	InitialReplicas int `json:"initialReplicas"`
	// InitialOrdinals is Spec.Ordinals at that time; nil: see InitialRange.
	InitialOrdinals *spec.Ordinals    `json:"initialOrdinals,omitempty"`
	Labels          map[string]string `json:"labels,omitempty"`
	Annotations     map[string]string `json:"annotations,omitempty"`
	Spec            spec.SetSpec      `json:"spec"`
	// RestartedAt is set by "rollout restart": it is part of what members run (see
	// Template), so that a new value is a new revision; apply keeps it.
	RestartedAt string `json:"restartedAt,omitempty"`
	Paused      bool   `json:"paused,omitempty"`
	// Deleting is set by control; the engine removes the record last.
	Deleting bool `json:"deleting,omitempty"`
	// Orphaned: nobody owns the members. They run on as they are, and nothing is done
	// for them, until apply adopts them (which clears it) or the set is deleted.
	Orphaned bool `json:"orphaned,omitempty"`
	// CreatedAt is for people only; no decision reads it.
	CreatedAt time.Time `json:"createdAt"`
	// Edits are the last ones, the newest last; for people only.
	Edits []Edit `json:"edits,omitempty"`
}

// Edit tells who made a generation of a set, and of what. A deletion or an orphaning
// makes none: it stands with the generation it found.
type Edit struct {
	Generation int64 `json:"generation"`
	// Verb is what was done: apply, scale, undo, ...; By the user, as the client says.
	Verb string `json:"verb"`
	By   string `json:"by,omitempty"`
	// Changes are some of the fields: "spec.replicas 3 → 5".
	Changes []string  `json:"changes,omitempty"`
	At      time.Time `json:"at"`
}

// Replicas is the number of members wanted (0 when unset).
func (s *Set) Replicas() int {
	if s.Spec.Replicas == nil {
		return 0
	}
	return int(*s.Spec.Replicas)
}

// The annotations that concern revisions.
const (
	// RestartedAtAnnotation on a template tells when a restart of all was asked for.
	RestartedAtAnnotation = "stead.dev/restartedAt"
	// ChangeCauseAnnotation on a set says why its revision was made.
	ChangeCauseAnnotation = "kubernetes.io/change-cause"
)

// Template is what members run: the spec's template, marked with RestartedAt. The
// caller must not change it.
func (s *Set) Template() spec.Template {
	t := s.Spec.Template
	if s.RestartedAt != "" {
		t.Metadata.Annotations = maps.Clone(t.Metadata.Annotations)
		if t.Metadata.Annotations == nil {
			t.Metadata.Annotations = map[string]string{}
		}
		t.Metadata.Annotations[RestartedAtAnnotation] = s.RestartedAt
	}
	return t
}

// SetTemplate makes members run t, as a revision holds it.
func (s *Set) SetTemplate(t spec.Template) {
	s.Spec.Template = spec.Clone(t)
	s.RestartedAt = t.Metadata.Annotations[RestartedAtAnnotation]
	delete(s.Spec.Template.Metadata.Annotations, RestartedAtAnnotation)
}

// Start is the lowest ordinal.
func (s *Set) Start() int {
	if s.Spec.Ordinals == nil {
		return 0
	}
	return int(s.Spec.Ordinals.Start)
}

// Service is the governing service: the DNS name under which the members are found.
func (s *Set) Service() string { return cmp.Or(s.Spec.ServiceName, string(s.Ref.Name)) }

// Range is which ordinals the members have.
func (s *Set) Range() spec.OrdinalRange { return s.Spec.Ordinals.Range(s.Replicas()) }

// InitialRange is which ordinals the initial members had. A set that an earlier version
// made does not say; its present range is taken then.
func (s *Set) InitialRange() spec.OrdinalRange {
	return cmp.Or(s.InitialOrdinals, s.Spec.Ordinals).Range(s.InitialReplicas)
}

// Revision is the record revisions/<ns>/<set>/<hash>. The template never changes.
type Revision struct {
	Ref         spec.SetRef       `json:"ref"`
	SetUID      spec.UID          `json:"setUID"`
	Hash        spec.RevisionHash `json:"hash"`
	HashVersion int               `json:"hashVersion"`
	Number      int64             `json:"number"`
	Template    spec.Template     `json:"template"`
	// ChangeCause is the set's annotation kubernetes.io/change-cause at that time.
	ChangeCause string    `json:"changeCause,omitempty"`
	CreatedAt   time.Time `json:"createdAt"`
}

// Goal is what we want of a life. Stop is final for its token.
type Goal string

// The goals.
const (
	GoalRun  Goal = "Run"
	GoalStop Goal = "Stop"
)

// Reason says why an action is taken; shown to users and given to members.
type Reason string

// The reasons.
const (
	ReasonCreate    Reason = "Create"    // the identity has no life yet
	ReasonReplace   Reason = "Replace"   // the life before failed or vanished
	ReasonScaleUp   Reason = "ScaleUp"   // a member beyond those at creation
	ReasonScaleDown Reason = "ScaleDown" // the ordinal is out of range
	ReasonDelete    Reason = "Delete"    // the set is being deleted
	ReasonUpdate    Reason = "Update"    // the template changed
	ReasonRestart   Reason = "Restart"   // a user asked
	ReasonFailed    Reason = "Failed"    // the life ended by itself
)

// Member is the record members/<ns>/<set>/<ordinal>: the present life of an
// identity and what we want of it. Only writer: engine.
type Member struct {
	ID     spec.Identity `json:"id"`
	SetUID spec.UID      `json:"setUID"`
	Token  spec.Token    `json:"token"`
	Goal   Goal          `json:"goal"`
	// Reason is why this life was begun; StopReason why it is being ended.
	Reason     Reason            `json:"reason"`
	StopReason Reason            `json:"stopReason,omitempty"`
	Revision   spec.RevisionHash `json:"revision"`
	Node       spec.NodeName     `json:"node"`
	NodeUID    spec.UID          `json:"nodeUID"`
	// Boot is the boot of the node at which the life was assigned; an agent of
	// another boot refuses it (SAFETY S4).
	Boot    spec.BootID `json:"boot"`
	Address netip.Addr  `json:"address"`
	// Bound, when not 0, makes the life guarded: it ends by itself this long after the
	// last moment at which its node's session was confirmed (SAFETY S5, S6).
	Bound time.Duration `json:"bound,omitempty"`
	// Service is the set's governing service when the life was begun: part of its name
	// until it is over. "" of a life that an earlier version began: see plan.Service.
	Service string `json:"service,omitempty"`
	// GraceSeconds between the stop signal and SIGKILL.
	GraceSeconds int64          `json:"graceSeconds"`
	Volumes      []MemberVolume `json:"volumes,omitempty"`
	// BeganAt is for people only.
	BeganAt time.Time `json:"beganAt"`
}

// MemberVolume says which volume a life uses for a claim.
type MemberVolume struct {
	Claim spec.ClaimName `json:"claim"`
	ID    VolumeID       `json:"id"`
	// Number counts the volumes the identity has had for this claim, from 1.
	Number    int    `json:"number"`
	Class     string `json:"class"`
	SizeBytes int64  `json:"sizeBytes"`
	// Shared is the volume's; Fenced: its storage was declared to fence by itself on the
	// node of the life.
	Shared bool `json:"shared,omitempty"`
	Fenced bool `json:"fenced,omitempty"`
}

// VolumeID names one volume for ever; 32 hex digits.
type VolumeID string

// Phase is what was seen of a life. It only grows, in this order.
type Phase string

// The phases in their order.
const (
	PhaseAssigned  Phase = "Assigned"
	PhasePreparing Phase = "Preparing"
	PhaseStarting  Phase = "Starting"
	PhaseRunning   Phase = "Running"
	PhaseStopping  Phase = "Stopping"
	PhaseStopped   Phase = "Stopped" // proven gone: cgroup empty, mounts and links gone
	PhaseFailed    Phase = "Failed"  // refused for good before anything started; nothing is left of it
)

// Rank orders phases; unknown ones are 0.
func (p Phase) Rank() int {
	switch p {
	case PhaseAssigned:
		return 1
	case PhasePreparing:
		return 2
	case PhaseStarting:
		return 3
	case PhaseRunning:
		return 4
	case PhaseStopping:
		return 5
	case PhaseStopped, PhaseFailed:
		return 6
	}
	return 0
}

// Over reports whether the phase proves the life gone.
func (p Phase) Over() bool { return p == PhaseStopped || p == PhaseFailed }

// Report is the record reports/<ns>/<set>/<ordinal>: what an agent saw of one
// life. Only writer: dispatch, for the session that holds the node.
type Report struct {
	ID      spec.Identity  `json:"id"`
	Token   spec.Token     `json:"token"`
	Node    spec.NodeName  `json:"node"`
	Session spec.SessionID `json:"session"`
	// Seq grows with each report of a life; an older one is dropped.
	Seq   int64 `json:"seq"`
	Phase Phase `json:"phase"`
	// Bound is the member's, as the agent guards the life; 0: it does not.
	Bound time.Duration `json:"bound,omitempty"`
	Ready bool          `json:"ready,omitempty"`
	// ReadyOnce: the member is or was ready in this life.
	ReadyOnce bool `json:"readyOnce,omitempty"`
	// ReadyFor is how long the member had been ready when the report was made, on
	// the agent's monotonic clock. It is reported anew when it passes the set's
	// minReadySeconds.
	ReadyFor time.Duration `json:"readyFor,omitempty"`
	// Cause is one word for what is wrong, or why the life is over; Message the sentence.
	Cause      causes.Cause      `json:"cause,omitempty"`
	Message    string            `json:"message,omitempty"`
	Containers []ContainerReport `json:"containers,omitempty"`
	// At is the agent's wall clock, for people only.
	At time.Time `json:"at"`
}

// ContainerReport is what was seen of one container.
type ContainerReport struct {
	Name string `json:"name"`
	// State is Waiting, Running or Exited.
	State    string       `json:"state"`
	Ready    bool         `json:"ready,omitempty"`
	Restarts int          `json:"restarts,omitempty"`
	ExitCode *int         `json:"exitCode,omitempty"`
	Cause    causes.Cause `json:"cause,omitempty"`
	Image    string       `json:"image,omitempty"`
	Started  time.Time    `json:"started,omitzero"`
}

// IdentityRecord is identities/<ns>/<set>/<ordinal>: what outlives member and set.
// Only writer: engine.
type IdentityRecord struct {
	ID        spec.Identity `json:"id"`
	LastToken spec.Token    `json:"lastToken"`
	// Address is the identity's own, kept while member, volume or unproven life exists.
	Address netip.Addr `json:"address"`
	// Due is the revision the ordinal last ran until its turn comes.
	Due spec.RevisionHash `json:"due,omitempty"`
	// ReadyOnce names the set's uid under which a life of this identity was ready.
	ReadyOnce spec.UID `json:"readyOnce,omitempty"`
	// ReadyToken is the newest life that was ready; AvailableOn the revision on which
	// a life was available last.
	ReadyToken  spec.Token        `json:"readyToken,omitzero"`
	AvailableOn spec.RevisionHash `json:"availableOn,omitempty"`
	// VolumeNumbers holds the last number given to a volume, by claim.
	VolumeNumbers map[spec.ClaimName]int `json:"volumeNumbers,omitempty"`
	// VolumeReady holds the number of the volume on which a life was ready once, by claim.
	VolumeReady map[spec.ClaimName]int `json:"volumeReady,omitempty"`
}

// Request is requests/<ns>/<set>/<ordinal>: what a person asks of one life: its
// restart. Written by control, removed by the engine in the transaction that acts;
// one of another token is void.
type Request struct {
	ID    spec.Identity `json:"id"`
	Token spec.Token    `json:"token"`
	// At is for people only.
	At time.Time `json:"at"`
}

// AddressRecord is addresses/<ip>: who holds an address, or since when it rests.
type AddressRecord struct {
	Address netip.Addr    `json:"address"`
	ID      spec.Identity `json:"id"`
	// FreedAt is set while the address is quarantined (SAFETY S17).
	FreedAt *time.Time `json:"freedAt,omitempty"`
}

// Node is nodes/<name>. Written by auth when the node is let in, or by dispatch when it
// joins without that; from then on only by control, until dispatch removes it.
type Node struct {
	Name   spec.NodeName     `json:"name"`
	UID    spec.UID          `json:"uid"`
	Labels map[string]string `json:"labels,omitempty"`
	Cordon bool              `json:"cordon,omitempty"`
	Taints []spec.Taint      `json:"taints,omitempty"`
	// EnrolledBy is the id of the client by whose join token it came; "": root's, or none.
	EnrolledBy spec.UID `json:"enrolledBy,omitempty"`
}

// AllLabels are the node's labels and those that every node has.
func (n *Node) AllLabels() map[string]string {
	all := make(map[string]string, len(n.Labels)+2)
	maps.Copy(all, n.Labels)
	all[spec.HostnameLabel], all["kubernetes.io/os"] = string(n.Name), "linux"
	return all
}

// NodeFacts is nodefacts/<name>: what a node says of itself. Only writer: dispatch.
type NodeFacts struct {
	Name        spec.NodeName `json:"name"`
	UID         spec.UID      `json:"uid"`
	Boot        spec.BootID   `json:"boot"`
	CPUMillis   int64         `json:"cpuMillis"`
	MemoryBytes int64         `json:"memoryBytes"`
	Version     string        `json:"version"`
	HostIP      string        `json:"hostIP,omitempty"`
	// Classes are the storage classes the node has, ascending; none: LocalClass alone.
	Classes []string `json:"classes,omitempty"`
	// SharedClasses are those of them whose directory is one and the same on every node that
	// has them shared; FencedClasses those of these whose storage takes no late write of a
	// node whose lives count as over (SAFETY S14). Ascending.
	SharedClasses []string `json:"sharedClasses,omitempty"`
	FencedClasses []string `json:"fencedClasses,omitempty"`
	// Guards: the node's agent guards lives that have a bound.
	Guards bool `json:"guards,omitempty"`
	// Epoch is that of the store when the node last said hello: in an older one it did
	// not say what it runs now (SAFETY S8).
	Epoch int64 `json:"epoch,omitempty"`
	// Strays are lives the node runs and the store does not know.
	Strays []spec.LifeID `json:"strays,omitempty"`
	// Known is what the node knew of the store when it last said hello, if that was more
	// than the store itself: the evidence for a hold.
	Known *Known `json:"known,omitempty"`
}

// Address is the host's own address; invalid: it says none. f may be nil.
func (f *NodeFacts) Address() (a netip.Addr) {
	if f != nil {
		a, _ = netip.ParseAddr(f.HostIP)
	}
	return a
}

// Session is sessions/<name> (leased): the live connection of a node. Only writer: dispatch.
type Session struct {
	Node   spec.NodeName  `json:"node"`
	UID    spec.UID       `json:"uid"`
	Boot   spec.BootID    `json:"boot"`
	ID     spec.SessionID `json:"id"`
	Server string         `json:"server"`
	// At is where other hosts reach that server: host:port, with commas between them.
	At string `json:"at,omitempty"`
	// Resumed: the session before it lived until this one began, or those of most nodes were
	// gone at once. Until the node reports anew DNS keeps its last answer (SAFETY S15).
	Resumed bool `json:"resumed,omitempty"`
}

// Event is events/<ns>/<set>/<id> (leased 24 h): what happened and why, once per cause.
type Event struct {
	Ref     spec.SetRef `json:"ref"`
	Member  string      `json:"member,omitempty"`
	Type    string      `json:"type"` // Normal or Warning
	Reason  string      `json:"reason"`
	Message string      `json:"message"`
	Count   int         `json:"count"`
	At      time.Time   `json:"at"`
}

// Bootstrapped is bootstrapped/<set uid>, never unset while the set is there; and
// bootstrapped/<ns>/<set> while the set is gone and volumes of it are kept.
type Bootstrapped struct {
	SetUID spec.UID   `json:"setUID"`
	Token  spec.Token `json:"token"`
}
