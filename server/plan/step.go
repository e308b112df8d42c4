package plan

import (
	"fmt"
	"slices"
	"time"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/server/place"
	"github.com/stead-project/stead/server/proof"
	"github.com/stead-project/stead/spec"
)

// step is one run of Next: the world as the rules see it, and what they decided.
type step struct {
	w    World
	plan Plan
	// seats holds every ordinal in range and every other one that has a record,
	// ascending. Rules that act change the seat, so that status tells what stands
	// after the actions.
	seats   []seat
	reach   spec.OrdinalRange // the ordinals wanted
	wanted  []int             // indexes of the seats in range
	blocked map[int]string    // text of Blocked by ordinal; only with World.Table
	current spec.RevisionHash
	update  spec.RevisionHash
	// aim is where members go: the update revision, or after a rollback the current one.
	aim spec.RevisionHash
	// completed: every member ran the current revision and was available, once.
	completed bool
	former    string            // the service before a rename that is not complete
	stalled   string            // rule 9: why and where the rollout stands still
	giveUp    bool              // rule 9: from the next step on the set goes back
	fresh     *records.Revision // the revision being added by this very step
	// Recreate: members of two revisions do not run beside each other. A member keeps
	// what it ran while others of another revision live, and, while the rollout is
	// paused, until one runs the update revision.
	apart    bool
	untimely string // why not all members go down now, though they should
	full     bool   // this step disturbs nobody more: it only says who waits
	freeUsed int    // how many of World.Free were given in this step
	placer   *place.Placer
	judge    *proof.Judge
}

// seat is one ordinal and what is known of its life.
type seat struct {
	id       spec.Identity
	identity *records.IdentityRecord
	member   *records.Member // nil: no life
	report   *records.Report // of this very life
	request  *records.Request
	volumes  map[spec.ClaimName]*records.Volume
	said     map[spec.ClaimName]*records.VolumeReport // of these volumes
	leftOn   []spec.NodeName                          // nodes with a volume of it that is in the way
	asked    map[spec.ClaimName]*records.VolumeRequest
	strays   []NodeStray

	live      bool // its node's session is that of the life's boot (SAFETY S15)
	stale     bool // and has not told of the life yet: what an earlier one told need not be so any more
	ready     bool
	available bool // ready for the set's minReadySeconds
	waits     bool // for its restart, and it was said
	over      bool // the life is proven gone: by a report of its token, or by its deadline
	forgotten bool // and its record goes in this very step
	decided   bool // the fate of its volumes is as it is to be, or recorded in this very step
	kept      bool // its volumes are kept after all, which is recorded in this very step
	lost      bool // that volumes of its are lost is recorded in this very step

	silence proof.Silence // of a life whose node has no session, and of which no report says that it is over
}

// vacant: no life, or one that is proven gone.
func (t *seat) vacant() bool { return t.member == nil || t.over }

// stopping: the life was told to end and is not proven gone.
func (t *seat) stopping() bool {
	return t.member != nil && t.member.Goal == records.GoalStop && !t.over
}

func newStep(w World) *step {
	s := &step{w: w, update: w.TemplateHash, judge: proof.NewJudge(w.Nodes, w.Epoch)}
	if s.reach = w.Set.Range(); w.Set.Deleting {
		s.reach = w.Set.Spec.Ordinals.Range(0)
	}
	if w.Table {
		s.blocked = map[int]string{}
	}
	s.current = s.update
	if w.Status != nil && s.template(w.Status.CurrentRevision) != nil {
		s.current, s.completed = w.Status.CurrentRevision, w.Status.CurrentCompleted
	}
	if s.aim = s.update; w.Status != nil && w.Status.RolledBackFrom == s.update {
		s.aim = s.current
	}
	s.former = Former(w.Set, w.Status, w.Slots)
	spread := map[spec.NodeName]int{}
	s.sit(spread)
	s.placer = place.New(w.Nodes, spread)
	for i := range s.seats {
		if s.inRange(&s.seats[i]) {
			s.wanted = append(s.wanted, i)
		}
	}
	s.plan.Outages = s.outages()
	return s
}

// sit makes the seats.
func (s *step) sit(spread map[spec.NodeName]int) {
	s.seats = make([]seat, 0, max(s.w.Set.Replicas(), len(s.w.Slots)))
	next := s.reach.Next(0)
	fill := func(until int) { // seats in range of which nothing is stored
		for ; next < min(until, s.reach.End); next = s.reach.Next(next + 1) {
			s.seats = append(s.seats, seat{id: spec.Identity{Namespace: s.w.Set.Ref.Namespace, Set: s.w.Set.Ref.Name, Ordinal: next}})
		}
	}
	for i := range s.w.Slots {
		slot := &s.w.Slots[i]
		fill(slot.ID.Ordinal)
		if slot.ID.Ordinal == next {
			next = s.reach.Next(next + 1)
		}
		s.seats = append(s.seats, s.look(slot))
		if m := slot.Member; m != nil {
			spread[m.Node]++
		}
	}
	fill(s.reach.End)
	for i := range s.w.Nodes {
		if n := &s.w.Nodes[i]; n.Unread {
			for k := range s.seats {
				t := &s.seats[k]
				t.strays = append(t.strays, NodeStray{Node: n.Node.Name, Stray: spec.LifeID{ID: t.id}})
			}
		}
	}
}

// look judges one slot.
func (s *step) look(slot *Slot) seat {
	t := seat{
		id: slot.ID, identity: slot.Identity, member: slot.Member, report: slot.Report,
		volumes: slot.Volumes, said: slot.Said, leftOn: slot.Left, asked: slot.Asked, request: slot.Request,
	}
	for _, x := range slot.Strays {
		if t.member == nil || x.Stray.Token != t.member.Token || x.Node != t.member.Node {
			t.strays = append(t.strays, x)
		}
	}
	if t.member == nil {
		return t
	}
	l := s.judge.Life(t.member, t.report, time.Duration(s.w.Set.Spec.MinReadySeconds)*time.Second)
	t.live, t.stale, t.ready, t.available, t.over, t.silence = l.Live, l.Stale, l.Ready, l.Available, l.Over, l.Silence
	return t
}

// node finds a node of the world; nil: no such record.
func (s *step) node(name spec.NodeName) *Node { return s.judge.Node(name) }

// seatOf finds the seat of an ordinal that has one.
func (s *step) seatOf(ordinal int) *seat {
	i, _ := slices.BinarySearchFunc(s.seats, ordinal, func(t seat, o int) int { return t.id.Ordinal - o })
	return &s.seats[i]
}

// inRange: the set wants a member of this ordinal.
func (s *step) inRange(t *seat) bool {
	return s.reach.Has(t.id.Ordinal)
}

// ordered: members start and stop one at a time.
func (s *step) ordered() bool { return s.w.Set.Spec.PodManagementPolicy != spec.Parallel }

func (s *step) act(a Action) { s.plan.Actions = append(s.plan.Actions, a) }

// block says why nothing is done for a member, and returns what it said.
func (s *step) block(t *seat, reason spec.BlockedReason, text string) *Blocked {
	s.plan.Blocked = append(s.plan.Blocked, Blocked{ID: t.id, Reason: reason, Text: text})
	if s.blocked != nil {
		s.blocked[t.id.Ordinal] = text
	}
	return &s.plan.Blocked[len(s.plan.Blocked)-1]
}

// unreadable reports whether the records do not allow any decision: one of the set
// cannot be read, or the store is of an older epoch than a life it knows.
func (s *step) unreadable() bool {
	text := ""
	switch {
	case len(s.w.Broken) > 0:
		text = fmt.Sprintf("the stored record %s cannot be read; nothing is done for the set until it is repaired", s.w.Broken[0])
	case s.w.Epoch < 1:
		text = "the store has no epoch; nothing is done until it has one"
	}
	for i := range s.seats {
		if last := s.seats[i].lastToken(); last.Epoch > s.w.Epoch && text == "" {
			text = fmt.Sprintf("%s had a life of epoch %d, but the store is at epoch %d", s.seats[i].id.MemberName(), last.Epoch, s.w.Epoch)
		}
	}
	if text == "" {
		return false
	}
	for _, i := range s.wanted {
		s.block(&s.seats[i], spec.BlockedUnreadable, text)
	}
	return true
}

// lastToken is the newest token the identity ever had.
func (t *seat) lastToken() spec.Token {
	var last spec.Token
	if t.identity != nil {
		last = t.identity.LastToken
	}
	if t.member != nil && t.member.Token.Compare(last) > 0 {
		last = t.member.Token
	}
	return last
}
