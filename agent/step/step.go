// Package step decides what an agent does next for one identity: Next is a pure
// function from what is Wanted and what was Seen to at most one operation. It
// never goes back: a life that is being ended is ended, a closed token stays
// closed. The worker performs the operation, looks again, and asks again; every
// operation may be repeated, so a crash between any two calls loses nothing.
package step

import (
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/spec/causes"
)

// Order is what the agent is to do with a life.
type Order string

// The orders. Without an order a life is left as it is (SAFETY S2).
const (
	OrderNone Order = ""
	OrderRun  Order = "Run"
	// OrderStop: the server said Stop for this very token, or that the identity's
	// newest token is a newer one.
	OrderStop Order = "Stop"
)

// Wanted is what is wanted of the life in question.
type Wanted struct {
	Order Order
	// OtherBoot: the life was assigned for another boot of this node (SAFETY S4).
	OtherBoot bool
	// Restored: the life was assigned before a restore of the store of which this node has
	// heard. What was decided since, and is in no store any more, may have replaced it
	// while this node had not started it (SAFETY S8).
	Restored bool
}

// Standing is what the ledger says of the life's token.
type Standing string

// The standings.
const (
	Fresh  Standing = "Fresh"  // never opened here, newer than all known
	Open   Standing = "Open"   // may run here, in this boot
	Closed Standing = "Closed" // over; nothing may be started again
	Spent  Standing = "Spent"  // over or never here, and a newer token is known: what is here is not its
)

// Seen is what the worker saw of the identity on this host just now.
type Seen struct {
	Standing Standing
	// Told: the end of this token was reported since it was last asked for.
	Told bool
	// Unknown: the runtime is away, so that Containers says nothing.
	Unknown bool
	// Strange is the sentence about something that is here and that the ledger
	// does not know; it is never touched. Empty: nothing.
	Strange string
	// Missing is the sentence about a ConfigMap, Secret or key that a container
	// needs and that is not there. Empty: all is there.
	Missing string

	// Prepared: what was made for this life and need not be made again.
	Volumes, Sandbox, Network, Files bool
	// Containers of the life in the order in which they start: those of initContainers first.
	Containers []Container

	// Empty: the host itself shows no process of the identity (SAFETY S13).
	Empty bool
	// Signalled: the stop has begun, and the stop signal was sent to all containers that have no
	// preStop hook to run; GraceOver, of those only: the time since is over.
	Signalled, GraceOver bool
	// What is proven to be gone of any life of the identity.
	Removed, Detached, Unmounted, Unpinned bool

	// Of guarded lives only (SAFETY S3, S6). Expired: its deadline has passed, or nothing
	// on this host would end it; that is final. Unconfirmed, of a fresh one: the deadline
	// that it would have has passed already. Unwatched: the node's watchdog does not guard
	// it yet, so that no container of it may begin.
	Expired, Unconfirmed, Unwatched bool

	// Ordered is the hook that the server ordered.
	Ordered Ordered

	// Held are operations that failed and whose back-off is not over.
	Held []Held
}

// State of a container, as the worker judges what the runtime says.
type State = spec.ContainerState

// The states.
const (
	Absent  = spec.ContainerAbsent
	Created = spec.ContainerCreated
	Running = spec.ContainerRunning
	Exited  = spec.ContainerExited
	Lost    = spec.ContainerLost
)

// Container is what was seen of one container of the life.
type Container struct {
	Name  string
	State State
	// Role is its part in the start of the member. Passed, of one of initContainers: it
	// ended with 0 in this life, or, of a sidecar, it has started once: what comes after it
	// may begin.
	Role   spec.ContainerRole
	Passed bool
	// Loaded, of those Created only: its own process is there, and waits to be started.
	Loaded bool
	// Unborn, when Lost: a crash came into its very start, and it was never seen running.
	Unborn bool
	// Left, when Exited: processes that it started are still there.
	Left bool
	// Image: it is present.
	Image bool
	// Due: the back-off after its last end is over. Cause and Message tell of that end.
	Due     bool
	Cause   causes.Cause
	Message string
	// Pulling: its image is being pulled beside the turns; PullText, of those only: it takes long.
	Pulling  bool
	PullText string
	// Outdated: its image is not that of the change in place that was ordered. Unfit: what it may use is not. Changing: its end was
	// begun for that, and what follows it was not seen to run; of one that runs, by this agent or one before: see Ending.
	Outdated, Unfit, Changing bool
	// Leads: the member leads, and steps down before it is to stop.
	Leads bool
	// Unhealthy: its liveness or startup probe failed for good, or its postStart hook did. Ending:
	// its end was begun for that; Overdue, of those only: the grace since then is over.
	Unhealthy, Ending, Overdue bool
	Hooks                      Hooks
	// Asked, of a sidecar of a life that is being stopped: it was sent the stop signal, which
	// it gets after the containers. Overdue: its time since then is over.
	Asked bool
}

// Held is an operation that must wait, and why.
type Held struct {
	Op        Kind
	Container string
	Cause     causes.Cause
	Message   string
}

// Kind names an operation.
type Kind string

// The operations. All but Wait and Nothing change something on the host.
const (
	Nothing Kind = "Nothing" // all is as it should be
	Wait    Kind = "Wait"    // Cause and Message say for what

	OpenToken       Kind = "OpenToken"
	Refuse          Kind = "Refuse" // close the token without ever having started it
	EnsureImage     Kind = "EnsureImage"
	EnsureVolumes   Kind = "EnsureVolumes"
	EnsureSandbox   Kind = "EnsureSandbox"
	AttachNetwork   Kind = "AttachNetwork"
	WriteFiles      Kind = "WriteFiles"
	CreateContainer Kind = "CreateContainer"
	StartContainer  Kind = "StartContainer"
	RunPostStart    Kind = "RunPostStart"  // begin the hook; it goes on beside the turns
	RunOrdered      Kind = "RunOrdered"    // begin the hook that the server ordered; it goes on beside the turns
	ShowReason      Kind = "ShowReason"    // show the member why it is to leave, or not that it is any more
	EndContainer    Kind = "EndContainer"  // ask a container that begins again to end, unless it has a preStop hook
	KillContainer   Kind = "KillContainer" // it did not
	ResizeContainer Kind = "ResizeContainer"
	RefuseChange    Kind = "RefuseChange" // a change in place cannot be done in this life; Message says why
	KillLeft        Kind = "KillLeft"     // kill what a container that ended has left
	RemoveContainer Kind = "RemoveContainer"

	RunStepDown      Kind = "RunStepDown" // begin the hook; it goes on beside the turns
	SignalStop       Kind = "SignalStop"
	RunPreStop       Kind = "RunPreStop"      // begin the hook; it goes on beside the turns
	SignalContainer  Kind = "SignalContainer" // ask a container to end whose preStop hook is over
	SignalSidecar    Kind = "SignalSidecar"   // the stop signal for one, after the containers
	KillAll          Kind = "KillAll"
	RemoveContainers Kind = "RemoveContainers"
	Detach           Kind = "Detach"
	RemoveScratch    Kind = "RemoveScratch"
	RemoveSandbox    Kind = "RemoveSandbox"
	CloseToken       Kind = "CloseToken"
	Expire           Kind = "Expire" // close the token of a life that missed its deadline
	ReportOver       Kind = "ReportOver"
)

// Op is one operation.
type Op struct {
	Kind Kind
	// Container is set for operations on one container.
	Container string
	// Cause and Message say what a Wait waits for; Message of RefuseChange, why.
	Cause   causes.Cause
	Message string
}

// Memory is what the ledger knows of the identity.
type Memory struct {
	Newest, Open spec.Token
	// Ends are closed tokens whose end the server has not stored, oldest first.
	Ends []spec.Token
}

// Orders is what the server last said of the identity. Stop is final: who keeps
// the orders never turns a Stop of a token back into Run.
type Orders struct {
	// Token is the life last ordered; zero: none. Goal is what is wanted of it.
	Token spec.Token
	Goal  records.Goal
	// Over is the highest token that was said to be superseded; zero: none.
	Over spec.Token
}

// Choose picks the token that is to be dealt with now, with its standing and its
// order: the open one until it is closed, then ends that were not reported yet, then
// what is wanted. The zero token: the identity needs nothing.
func Choose(m Memory, o Orders, reported func(spec.Token) bool) (spec.Token, Standing, Order) {
	if !m.Open.IsZero() {
		return m.Open, Open, o.of(m.Open)
	}
	for _, t := range m.Ends {
		if !reported(t) {
			return t, Closed, OrderNone
		}
	}
	switch c := o.Token.Compare(m.Newest); {
	case o.Token.IsZero() || c == 0:
		return m.Newest, Closed, OrderNone
	case c < 0:
		return o.Token, Spent, OrderNone
	}
	return o.Token, Fresh, o.of(o.Token)
}

// of is the order for the life t: absence is none, a newer life means Stop.
func (o Orders) of(t spec.Token) Order {
	switch {
	case o.Over.Compare(t) >= 0, o.Token.Compare(t) > 0:
		return OrderStop
	case o.Token != t:
		return OrderNone
	case o.Goal == records.GoalStop:
		return OrderStop
	case o.Goal == records.GoalRun:
		return OrderRun
	}
	return OrderNone
}
