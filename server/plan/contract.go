// Package plan decides what is to be done for one set: Next is a pure function
// from a World to a Plan. No clock, no I/O, no goroutine; it imports
// spec and the pure packages proof and place.
package plan

import (
	"net/netip"
	"time"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/records/hooks"
	"github.com/stead-project/stead/records/moves"
	"github.com/stead-project/stead/server/proof"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/spec/causes"
)

// World is one set's world at one store revision. Records are shared and must
// not be changed.
type World struct {
	// Rev is the store's revision of this picture, Epoch the store's epoch.
	Rev   int64
	Epoch int64
	// Hold: the store went back; nil: nobody noticed that. Count is that of its newest
	// restore; nil: it was never restored. See Missing.
	Hold  *records.Hold
	Count *records.Count
	// Awaited are nodes that have not said hello since this leader's process began, as long
	// as it waits for them: AwaitFor still.
	Awaited  []spec.NodeName
	AwaitFor time.Duration
	Set      *records.Set
	// TemplateHash is the hash of Set's template (computed once per edit).
	TemplateHash spec.RevisionHash
	// Broken names records of the set that cannot be read; nothing is decided then.
	Broken []string
	// Status is the stored status; nil before the first.
	Status    *records.SetStatus
	Revisions []*records.Revision
	// Budgets are the disruption budgets that select the set.
	Budgets []*records.BudgetRecord
	// Isolated: a NetworkPolicy selects members of the set, which start only where it is enforced.
	Isolated bool
	// Slots holds every ordinal that has any record, in ascending order; in a folded world those that
	// matter one by one, which may be without any record.
	Slots []Slot
	// Folded counts the members that Slots leaves out; nil: it leaves none out. See Fold.
	Folded *Folded
	Nodes  []Node
	// Claims are the PersistentVolumeClaims that templates of the set name, by name, also those of
	// which there is nothing. Claim is set in the world of one claim, which has no set.
	Claims map[string]*ClaimState
	Claim  *ClaimState
	// Free are addresses that may be given to identities without one, in the
	// order of preference; at least as many as such identities, or all there are.
	Free         []netip.Addr
	Bootstrapped bool
	// WasBootstrapped: an earlier set of this name was, and volumes were kept when it
	// was deleted (SAFETY S19).
	WasBootstrapped bool
	// Jobs are which jobs of the set have run; nil: nothing is recorded of them.
	Jobs *hooks.Jobs
	// Rest is how long the life that replaces a failed one has to wait still, by
	// identity: a life that is refused again and again must not spin. The engine
	// measures it on its own monotonic clock; a new leader starts without any.
	Rest map[spec.Identity]time.Duration
	// MoveRest is how long the drain of a node begins no move of a member still, for its last was aborted;
	// measured as Rest.
	MoveRest map[spec.Identity]MoveRest
	// Outages is how long lives have not been available, as this leader measured it since a
	// plan first named them; a new leader starts again.
	Outages map[Outage]time.Duration
	// Standstill is how long the rollout has not come beyond Reached, as this leader
	// counted it while Plan.Clock; a new leader starts again.
	Standstill time.Duration
	Reached    Progress
	// Table asks for Status.Members; large sets are planned without.
	Table bool
	// VolumeID makes a fresh random id (seeded in tests).
	VolumeID func() records.VolumeID
	// Now is for people (BeganAt, CreatedAt); no decision may read it.
	Now time.Time
	// prepared: every node counts as having the images of an update, as Preview assumes.
	prepared bool
}

// MoveRest is how long the drain of a node leaves a member alone whose move was aborted, and why it was.
type MoveRest struct {
	Left time.Duration
	Why  string
}

// Slot is what the store has of one identity.
type Slot struct {
	ID       spec.Identity
	Identity *records.IdentityRecord // nil: never had a life
	Member   *records.Member         // nil: no life now
	// Report is of Member's token, else nil (reports of another token are absent).
	Report  *records.Report
	Volumes map[spec.ClaimName]*records.Volume
	// Said is what the volume's node said of it in its present turn; of other volumes it is
	// absent. Where there is none: of the one in the trash that Asked wants back.
	Said map[spec.ClaimName]*records.VolumeReport
	// Left are the nodes on which a volume of the identity was left, lost with its host, and
	// which have not said yet that it is out of the way; sorted.
	Left []spec.NodeName
	// Asked are a person's requests about volumes, by claim, also those that are void.
	Asked map[spec.ClaimName]*records.VolumeRequest
	// Request is a person's, for Member's token; else nil.
	Request *records.Request
	// Move is the identity's; nil: there is none. MoveAsked is what a person asks about one.
	Move      *moves.Move
	MoveAsked *moves.MoveRequest
	// Strays are lives that a node says it runs and the store does not know.
	Strays []NodeStray
	// Unknown are volumes that a node says it has and the store does not know.
	Unknown []UnknownVolume
}

// Said is what was said of the present volume of a claim; nil: nothing.
func (w *World) Said(id spec.Identity, claim spec.ClaimName) *records.VolumeReport {
	if i, known := w.find(id.Ordinal); known {
		return w.Slots[i].Said[claim]
	}
	return nil
}

// NodeStray is a stray and the node that runs it.
type NodeStray struct {
	Node  spec.NodeName
	Stray spec.LifeID
}

// UnknownVolume is a volume that the store does not know, and the node that has it.
type UnknownVolume struct {
	Node spec.NodeName
	records.HostVolume
}

// Node is one host as the leader knows it, Resident a life on one.
type (
	Node     = proof.Node
	Resident = proof.Resident
)

// Outage is a life that is not available. Its time starts again with another life, when the life is
// to end, and with each session of its node: before a silence it may have been available.
type Outage struct {
	ID      spec.Identity
	Token   spec.Token
	Goal    records.Goal
	Session spec.SessionID // of its node; 0: it has none
}

// Plan is what Next decided.
type Plan struct {
	Actions []Action
	// Blocked names every member that waits, and why.
	Blocked []Blocked
	// Status is the status after the actions; the engine writes it when it differs from the
	// stored one. Members is filled if World.Table.
	Status records.SetStatus
	// Reached is how far the rollout has come; Clock: the time until it comes further
	// counts (rule 9).
	Reached Progress
	Clock   bool
	// Outages are the lives whose outage the engine measures for World.Outages.
	Outages []Outage
	// Wake asks to be called again after this time though nothing changed; 0: never.
	Wake time.Duration
	// Unfold: the world is folded, and this step needs the whole one; nothing else here counts.
	Unfold bool
}

// Blocked says why nothing is done for a member.
type Blocked struct {
	ID     spec.Identity
	Reason causes.BlockedReason
	Text   string // the sentence for people
	// Left is how long until a life on a silent node counts as over; 0: it is not waited
	// for by time.
	Left time.Duration
	// Others is how many members more wait for the same, in a folded world.
	Others int
}

// Action is one decision, of one of the types below; the engine turns it into guarded writes.
type Action interface{ action() }

// AddRevision stores a revision that must not exist yet.
type AddRevision struct{ Revision records.Revision }

// RaiseRevision gives a stored revision a new number: the newest, for the set goes
// back to it. Its name and template stay.
type RaiseRevision struct{ Revision records.Revision }

// PruneRevision removes a revision that nobody needs.
type PruneRevision struct {
	Hash   spec.RevisionHash
	Number int64
}

// Start begins a life: writes member, identity and new volumes, deletes the old report.
type Start struct {
	Member   records.Member
	Identity records.IdentityRecord
	// Volumes are those to be created with it (must not exist).
	Volumes []records.Volume
	// Moved are shared volumes that come with it from another node, and those of claims that
	// it holds alone.
	Moved []records.Volume
	// Claimed are the identities' records of claims whose volumes are created with it.
	Claimed []records.IdentityRecord
	// NewAddress: Member.Address was taken from Free and must be claimed.
	NewAddress bool
	// Lost is the node of the life before, when that is over by its deadline (see proof.Silence):
	// it must still have no session.
	Lost spec.NodeName
	Text string // for the event
}

// Stop sets the goal of a life to Stop, after the fate of its volumes was
// recorded in the same transaction.
type Stop struct {
	ID     spec.Identity
	Token  spec.Token
	Reason records.Reason
	// Volumes with their new fate; only those that change: its own, and those of the
	// members that stop after it.
	Volumes []records.Volume
	// Move is the move that it stops for, as it is to be; nil: none.
	Move *moves.Move
	Text string
}

// SetVolumes gives volumes another fate or size; Text tells why. What a person asked of
// one that is given up or lost is answered with it.
type SetVolumes struct {
	Volumes []records.Volume
	Text    string
}

// DropVolume removes the record of a volume that is proven not to be in its place any more.
type DropVolume struct {
	ID     spec.Identity
	Claim  spec.ClaimName
	Volume records.VolumeID
	Turn   int
	// Identity is the identity's record as it is to be, nil when it stays; FreeAddress:
	// nothing of the identity remains, so that its address goes to quarantine.
	Identity    *records.IdentityRecord
	FreeAddress bool
	// Left: its host is off, and nobody looked; see proof.LostWithHost.
	Left bool
	Text string
}

// RestoreVolume gives a volume that lies in the trash a record again, for its claim has
// none, and answers the request for it. Identity is the identity's record as it is to be. Unknown: it is in its place, and was not
// known; a volume that its claim had is left where it is not.
type RestoreVolume struct {
	Volume   records.Volume
	Identity records.IdentityRecord
	Unknown  bool
	Left     []records.VolumeReport
	Text     string
}

// LeaveVolume gives up a volume that the store does not know, where it is, and answers the request for that.
type LeaveVolume struct {
	Left records.VolumeReport
	Text string
}

// VoidRequest removes what a person asked of a volume and what will not be done; Text
// says why.
type VoidRequest struct {
	ID     spec.Identity
	Claim  spec.ClaimName
	Volume records.VolumeID
	Text   string
}

// Forget removes member and report of a life that is proven over.
type Forget struct {
	ID    spec.Identity
	Token spec.Token
	// Text tells the proof.
	Text string
	Lost spec.NodeName // as of Start
	// The identity's due revision is forgotten with the life. FreeAddress: nothing of the identity
	// remains; its address goes to quarantine and its record keeps only the last token.
	FreeAddress bool
	// Gone is what the others are to be told of the member; nil: nothing.
	Gone *hooks.GoneMember
}

// MarkReady records what a life of the identity reached: that it was ready
// (IdentityRecord ReadyOnce, ReadyToken, VolumeReady) and available (AvailableOn).
type MarkReady struct{ Identity records.IdentityRecord }

// MarkBootstrapped records, permanently, that every initial member was ready once, or that
// the set continues with the data of an earlier one of its name (Inherited). What was
// remembered of that one goes with it.
type MarkBootstrapped struct{ Inherited bool }

// ForgetBootstrapped removes what was remembered of a set that is gone: that it was
// bootstrapped. No volume of it is kept any more.
type ForgetBootstrapped struct{}

// RemoveClaim removes the record of a claim that is Deleting: nothing uses its volume, and that is
// given up or was never made.
type RemoveClaim struct {
	Namespace spec.Namespace
	Name      string
}

// RemoveSet removes the set's record, status and revisions: the last act of a deletion.
type RemoveSet struct{}

func (AddRevision) action()        {}
func (RaiseRevision) action()      {}
func (PruneRevision) action()      {}
func (Start) action()              {}
func (Stop) action()               {}
func (Forget) action()             {}
func (MarkReady) action()          {}
func (MarkBootstrapped) action()   {}
func (ForgetBootstrapped) action() {}
func (SetVolumes) action()         {}
func (DropVolume) action()         {}
func (RestoreVolume) action()      {}
func (LeaveVolume) action()        {}
func (VoidRequest) action()        {}
func (RemoveClaim) action()        {}
func (RemoveSet) action()          {}
