// Package hooks has the records of hooks that the servers order in a life (records.Member.Hook), and of what came of them.
package hooks

import (
	"net/netip"

	"github.com/stead-project/stead/spec"
)

// HookOrder has the agent of a life run a hook in it, beside its containers, until the hook succeeds or the order is gone: the
// engine writes it into the member's record, and the node says in its report (HookResult) what came of it. There is at most one
// in a life. It is void with its life, and when the life is to stop: then what runs of it is broken off.
//
// The hook runs at least once, whatever becomes of the agent or the servers meanwhile; while its container does
// not run it waits.
type HookOrder struct {
	// ID names the order: the epoch and the revision at which it was decided. Another one begins anew, after what runs
	// of the one before has ended.
	ID   spec.Sequence `json:"id"`
	Kind HookKind      `json:"kind"`
	// Hook is as it is to be run, with its Container: an edit of the set is another order.
	Hook spec.MemberHook `json:"hook"`
	// Gone is the member that the hook is about, for Forget; nil: the one in which it runs.
	Gone *GoneMember `json:"gone,omitempty"`
	// Job is the run that it is, for JobRun: unlike the others it is begun once at most.
	Job *JobFacts `json:"job,omitempty"`
}

// HookKind says what a hook is for; the command reads it as STEAD_HOOK.
type HookKind string

// The kinds.
const (
	Decommission HookKind = "decommission" // the member is about to leave for good
	Abort        HookKind = "abort"        // it stays after all
	Forget       HookKind = "forget"       // another one has left
	RunJob       HookKind = "job"          // a job of the set, once
)

// GoneMember is a member that has left for good, as its peers knew it.
type GoneMember struct {
	SetUID spec.UID      `json:"setUID"`
	ID     spec.Identity `json:"id"`
	// Token is that of its last life.
	Token spec.Token `json:"token"`
	// Service is the governing service with which it ran. Address is what it had, and may be another's by now.
	Service string     `json:"service,omitempty"`
	Address netip.Addr `json:"address,omitzero"`
}

// ForgottenLife is the last life of a member of which the others were told that the member has left for good. What its volumes had then counts
// no more, until another life of it was ready.
type ForgottenLife struct {
	Token spec.Token `json:"token"`
	// Epoch is that of the store: after a restore it says nothing, for a later life may have been ready since.
	Epoch int64 `json:"epoch"`
}

// HookResult is what came of a HookOrder so far. One without the present order's ID says nothing of it.
type HookResult struct {
	ID spec.Sequence `json:"id"`
	// Done: the hook has succeeded. It is run no more.
	Done bool `json:"done,omitempty"`
	// Failures is how often it failed; Message is why it did last, as people are to read it.
	Failures int    `json:"failures,omitempty"`
	Message  string `json:"message,omitempty"`
	// Overdue: the hook's time-out has passed since the node learnt of the order, on the node's clock since boot, however often
	// it was run. It is run on.
	Overdue bool `json:"overdue,omitempty"`
	// Begun, of a job: its command was started, or is about to be. Unknown: it ended without an exit code of its own, or nobody
	// saw its end. With Done, Unknown or a failure the run is over.
	Begun   bool `json:"begun,omitempty"`
	Unknown bool `json:"unknown,omitempty"`
}
