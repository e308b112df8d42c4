package records

import (
	"net/netip"
	"time"

	"github.com/stead-project/stead/records/hooks"
	"github.com/stead-project/stead/records/inplace"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/spec/causes"
)

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
	// ReasonScaleToZero is the ScaleDown of a set that is to have no members: all stop, and none leaves the others.
	ReasonScaleToZero Reason = "ScaleToZero"
	ReasonDelete      Reason = "Delete"  // the set is being deleted
	ReasonUpdate      Reason = "Update"  // the template changed
	ReasonRestart     Reason = "Restart" // a user asked
	ReasonFailed      Reason = "Failed"  // the life ended by itself
	ReasonDrain       Reason = "Drain"   // its node is to be empty
	// ReasonNodeShutdown: its host is being shut down or rebooted.
	ReasonNodeShutdown Reason = "NodeShutdown"
	ReasonMove         Reason = "Move" // its volumes go to another node, and it with them
)

// IsUnwanted reports that a life ends because its set does not want the member any more.
func (r Reason) IsUnwanted() bool {
	return r == ReasonScaleDown || r == ReasonScaleToZero || r == ReasonDelete
}

// Member is the record members/<ns>/<set>/<ordinal>: the present life of an
// identity and what we want of it. Only writer: engine.
type Member struct {
	ID     spec.Identity `json:"id"`
	SetUID spec.UID      `json:"setUID"`
	Token  spec.Token    `json:"token"`
	Goal   Goal          `json:"goal"`
	// Reason is why this life was begun; StopReason why it is being ended, or is to be (Leaving).
	Reason     Reason            `json:"reason"`
	StopReason Reason            `json:"stopReason,omitempty"`
	Revision   spec.RevisionHash `json:"revision"`
	// Began is the revision with which the life began, where Revision is a later one by which it runs the same; "": Revision. What
	// the member reads of its revision is this.
	Began   spec.RevisionHash `json:"began,omitempty"`
	Node    spec.NodeName     `json:"node"`
	NodeUID spec.UID          `json:"nodeUID"`
	// Boot is the boot of the node at which the life was assigned; an agent of
	// another boot refuses it (SAFETY S4).
	Boot    spec.BootID `json:"boot"`
	Address netip.Addr  `json:"address"`
	// HostNetwork: the life is in the network of its node, and Address was the node's when it was begun: it is
	// not the identity's own.
	HostNetwork bool `json:"hostNetwork,omitempty"`
	// Bound, when not 0, makes the life guarded: it ends by itself this long after the
	// last moment at which its node's session was confirmed (SAFETY S5, S6).
	Bound time.Duration `json:"bound,omitempty"`
	// Service is the set's governing service when the life was begun: part of its name
	// until it is over. "" of a life that an earlier version began: see plan.Service.
	Service string `json:"service,omitempty"`
	// Hook is what the life is to run by order; nil: nothing.
	Hook *hooks.HookOrder `json:"hook,omitempty"`
	// Change is a change in place that is under way; nil: none. Until it is done Revision stays what it was.
	Change *inplace.ChangeOrder `json:"change,omitempty"`
	// Changed is the newest change in place that is known to be done. What the node says of a newer one, but for Change, was ordered in a
	// history of the store that is lost.
	Changed spec.Sequence `json:"changed,omitzero"`
	// GraceSeconds between the stop signal and SIGKILL.
	GraceSeconds int64          `json:"graceSeconds"`
	Volumes      []MemberVolume `json:"volumes,omitempty"`
	// BeganAt is for people only.
	BeganAt time.Time `json:"beganAt"`
	// Trace names the span of the life's start, in traces (internal/trace); "": they are off.
	Trace string `json:"trace,omitempty"`
}

// HookResult is what the life's node says of the present order; the zero one: nothing yet, or there is no order. r may be nil.
func (m *Member) HookResult(r *Report) hooks.HookResult {
	if m.Hook == nil || r == nil || r.Token != m.Token || r.Hook.ID != m.Hook.ID {
		return hooks.HookResult{}
	}
	return r.Hook
}

// Leaving: the set does not want the member any more, and the life goes on until its hook Decommission has succeeded.
func (m *Member) Leaving() bool { return m.Goal == GoalRun && m.StopReason != "" }

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
	// Object: Claim is a PersistentVolumeClaim of the namespace, whose own the volume is;
	// false: it is a claim of the set, and the volume the member's.
	Object bool `json:"object,omitempty"`
}

// Owner is the identity to which the volume belongs that this member has.
func (v *MemberVolume) Owner(member spec.Identity) spec.Identity {
	if v.Object {
		return spec.ClaimIdentity(member.Namespace, string(v.Claim))
	}
	return member
}

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
	// Claim is what the member says of itself; nothing unless a container of it runs.
	Claim Claim `json:"claim,omitzero"`
	// Hook is what came of the member's hook.
	Hook hooks.HookResult `json:"hook,omitzero"`
	// Change is what came of the newest change in place that was ordered in the life.
	Change inplace.ChangeResult `json:"change,omitzero"`
	// At is the agent's wall clock, for people only.
	At time.Time `json:"at"`
}

// ContainerReport is what was seen of one container.
type ContainerReport struct {
	Name string             `json:"name"`
	Role spec.ContainerRole `json:"role,omitempty"`
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
	// Address is the identity's own, kept while member, volume or unproven life exists. Invalid: all its lives
	// were in the networks of their nodes.
	Address netip.Addr `json:"address"`
	// Due is the revision the ordinal last ran until its turn comes.
	Due spec.RevisionHash `json:"due,omitempty"`
	// ReadyOnce names the set's uid under which a life of this identity was ready.
	ReadyOnce spec.UID `json:"readyOnce,omitempty"`
	// ReadyToken is the newest life that was ready; AvailableOn the revision on which
	// a life was available last.
	ReadyToken  spec.Token        `json:"readyToken,omitzero"`
	AvailableOn spec.RevisionHash `json:"availableOn,omitempty"`
	// Gone is the member's last life while the others are to be told that it has left for good (hook forget); nil: nothing is owed.
	Gone *hooks.GoneMember `json:"gone,omitempty"`
	// Forgotten is what came of that, until a later life is ready; nil: nothing.
	Forgotten *hooks.ForgottenLife `json:"forgotten,omitempty"`
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
	// Now: also while it is busy, or waits for one that is.
	Now bool `json:"now,omitempty"`
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
