package plan

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/records/moves"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/spec/causes"
	"github.com/stead-project/stead/spec/scalar"
)

// stage is the world of a scenario.
type stage struct {
	t       *testing.T
	w       World
	bad     map[string]string         // what members or revisions do instead of getting ready
	missing map[records.VolumeID]bool // volumes whose directories are not there
	trash   map[string]*records.VolumeReport
	// gone: it was told that the set is; refused: why a person's request was not made.
	gone    bool
	refused string
	answers []string      // what a person was told
	ended   map[life]bool // lives that ended by themselves, of which nobody was told
	claims  map[string]records.Claim
}

// command carries one out; what follows from it comes with rest.
//
//	set WORDS...              a set as kit_test.go writes it
//	update h2                 apply a file with this template
//	h2 | db-1 crashes         it will be in a crash loop; is-unready: it runs, and that is
//	                          all; dies: its life ends; recovers: all is well again
//	db-1 leads | busy | idle  it says so, and the others do not; busy 60 (seconds at most); order LeaderLast
//	rename dbs h2             give it another service, which is another template
//	scale 5 | pause | resume | delete | orphan | adopt | restart db-1 | parallel | ordered
//	strategy Recreate | partition 1 | max 50% | floor 2 | minReady 5 | start 2
//	reserve 1 5-7 | deadline 60 | onFailure Rollback | replaceBroken Never
//	node n1 silent | back     it loses its session, or has one again
//	node n1 fenced            a person says that it is off: its lives are over
//	node n1 disk=ssd          it has this label
//	selects ssd               the template's nodeSelector; before update
//	differs 1 ssd 3-4 hdd     those ordinals have a nodeSelector of their own, and no others; before update
//	image db:2                that of the template's container; before update
//	memory 64 | 64/32         its limit, and its request if that is another, in Mi; before update
//	inPlace Image Resources   what updates change in place; none: nothing
//	node n1 in-place | old    its agent knows that, or does not
//	h2 | db-1 refuses         it does not change in place; lacks-image: it runs on as it is; dawdles: nothing comes of it
//	node n1 prepares          it pulls images of updates ahead; has-h2, lacks-h2: what it says of them
//	reclaim | lost | restore data-db-2   a person gives a volume up, says that it is
//	                          lost, or wants it back
//	vanishes | returns data-db-2         its directory
//	nodeLoss Replace 60s | Hold          what becomes of members of a silent node
//	leave | stay | forget fails, succeeds   what the command of a hook does; skip: members leave without
//	db-1 tells-nothing        its host dies before it says anything of a new life
//	node n1 boots             it is back, in another boot
//	leader | restored         another server leads; the store is restored from a backup
//	drain n1 | drain n1 at-once | uncordon n1   its members are to stop, or may start there again
//	move db-1 n2 | abort db-1 | drain-move n1   its volumes go to another node, or not; all go from a node
//	back db-1                 they are those where it was again
//	rebalance                 its members are spread over the nodes
//	pass 600s                 time goes by
func (s *stage) command(words []string) {
	s.t.Helper()
	switch {
	case words[0] == "set":
		s.w, s.bad, s.gone = world(s.t, strings.Join(words[1:], " ")), map[string]string{}, false
		s.ended, s.claims = map[life]bool{}, map[string]records.Claim{}
		say(&s.w)
		s.missing, s.trash = map[records.VolumeID]bool{}, map[string]*records.VolumeReport{}
	case words[0] == "reclaim":
		s.ask(words[1], records.VerbReclaim)
	case words[0] == "lost":
		s.ask(words[1], records.VerbLost)
	case words[0] == "restore":
		s.ask(words[1], records.VerbRestore)
	case words[0] == "vanishes", words[0] == "returns":
		s.lose(words[1], words[0] == "vanishes")
	case words[0] == "pass":
		s.pass(words[1])
	case words[0] == "node":
		s.node(spec.NodeName(words[1]), words[2])
	case words[0] == "drain", words[0] == "uncordon":
		s.drain(spec.NodeName(words[1]), words[0] == "drain", len(words) > 2)
	case words[0] == "move":
		s.askMove(words[1], moves.MoveBegin, spec.NodeName(words[2]))
	case words[0] == "rebalance":
		s.rebalance()
	case words[0] == "abort":
		s.askMove(words[1], moves.MoveAbort, "")
	case words[0] == "back":
		s.askMove(words[1], moves.MoveGiveBack, "")
	case words[0] == "drain-move":
		s.drainMoves(spec.NodeName(words[1]))
	case words[0] == "leader", words[0] == "restored":
		s.anew(words[0] == "restored")
	case words[0] == "restart":
		slot := s.slot(words[1])
		slot.Request = &records.Request{ID: slot.ID, Token: slot.Member.Token}
	case words[0] == "rename":
		set := spec.Clone(*s.w.Set)
		set.Spec.ServiceName = words[1]
		s.w.Set = &set
		s.template(words[2])
	case words[0] == "update":
		s.template(words[1])
	case len(words) == 2 && slices.Contains([]string{"crashes", "is-unready", "recovers", "tells-nothing", "refuses", "lacks-image", "dawdles"}, words[1]):
		s.bad[words[0]] = words[1]
	case len(words) == 2 && words[1] == "leads":
		s.claims = map[string]records.Claim{words[0]: {Leads: true}}
	case len(words) == 2 && words[1] == "busy":
		s.claims = map[string]records.Claim{words[0]: {Busy: "a backup"}}
	case len(words) == 2 && words[1] == "idle":
		s.claims = map[string]records.Claim{}
	case len(words) == 2 && (words[1] == "fails" || words[1] == "succeeds"):
		s.bad[words[0]] = words[1]
	case len(words) == 2 && words[1] == "dies":
		slot := s.slot(words[0])
		r := *slot.Report
		r.Phase, r.Ready, r.Cause = records.PhaseStopped, false, "Exited"
		slot.Report = &r
	default:
		s.editJobs(words)
	}
}

// edit changes the set as a person does.
func (s *stage) edit(words []string) {
	s.t.Helper()
	set := spec.Clone(*s.w.Set)
	s.w.Set = &set
	var n int32
	value := ""
	if len(words) > 1 {
		value = words[1]
		x, _ := strconv.Atoi(value)
		n = int32(x)
	}
	limit, _ := scalar.ParseIntOrPercent(value)
	u := &set.Spec.UpdateStrategy
	if u.RollingUpdate == nil && (words[0] == "partition" || words[0] == "max" || words[0] == "onFailure" || words[0] == "order") {
		u.RollingUpdate = &spec.RollingUpdate{}
	}
	switch words[0] {
	case "scale":
		set.Spec.Replicas, set.SkipDecommission = &n, false
	case "skip":
		set.SkipDecommission = true
	case "pause", "resume":
		set.Paused = words[0] == "pause"
	case "delete":
		set.Deleting = true
	case "orphan", "adopt":
		set.Orphaned = words[0] == "orphan"
	case "ordered":
		set.Spec.PodManagementPolicy = spec.OrderedReady
	case "parallel":
		set.Spec.PodManagementPolicy = spec.Parallel
	case "strategy":
		*u = spec.UpdateStrategy{Type: value}
	case "partition":
		u.RollingUpdate.Partition = &n
	case "max":
		u.RollingUpdate.MaxUnavailable = &limit
	case "nodeLoss":
		set.Spec.NodeLoss = loss(words[1:])
	case "floor":
		set.Spec.Disruption = &spec.Disruption{MinAvailable: &limit}
	case "minReady":
		set.Spec.MinReadySeconds = n
	case "start":
		set.Spec.Ordinals = &spec.Ordinals{Start: n}
	case "reserve":
		set.Spec.Ordinals = &spec.Ordinals{Reserved: []spec.OrdinalSpan{{First: n, Last: n}}}
	case "deadline":
		set.Spec.ProgressDeadlineSeconds = &n
	case "order":
		u.RollingUpdate.Order = value
	case "busy":
		set.Spec.Busy = &spec.Busy{MaxSeconds: &n}
	case "onFailure":
		u.RollingUpdate.OnFailure = value
	case "image", "memory", "inPlace":
		editInPlace(s.t, &set.Spec, words)
	case "selects":
		set.Spec.Template.Spec.NodeSelector = map[string]string{"disk": value}
	case "differs":
		set.Spec.Members = differences(s.t, words[1:])
	case "replaceBroken":
		u.ReplaceBroken = value
	default:
		s.t.Fatalf("%q is no command", words)
	}
}

func (s *stage) slot(name string) *Slot {
	s.t.Helper()
	for i := range s.w.Slots {
		if s.w.Slots[i].ID.MemberName() == name {
			s.w.Slots = slices.Clone(s.w.Slots)
			return &s.w.Slots[i]
		}
	}
	s.t.Fatalf("there is no %s", name)
	return nil
}

// template makes h the template. Its revision is the planner's to store.
func (s *stage) template(h string) { s.w.TemplateHash = spec.RevisionHash(h) }

// pass lets time go by as an engine measures it.
func (s *stage) pass(text string) {
	s.t.Helper()
	d, err := time.ParseDuration(text)
	if err != nil {
		s.t.Fatal(err)
	}
	p := Next(s.w)
	if p.Clock {
		s.w.Standstill += d
	}
	s.w.Outages = lasting(s.w.Outages, p.Outages, d)
	for name, c := range s.claims {
		c.BusyFor += d
		s.claims[name] = c
	}
	s.silentFor(d)
	s.w.Slots = slices.Clone(s.w.Slots)
	for i := range s.w.Slots {
		slot := &s.w.Slots[i]
		if slot.Report != nil {
			r := *slot.Report
			r.ReadyFor += d
			slot.Report = &r
		}
	}
}

// rest runs planner and hosts until nothing changes, and tells what happened and how
// the set stands.
func (s *stage) rest(out io.Writer) {
	s.t.Helper()
	for _, line := range s.answers {
		fmt.Fprintln(out, "  "+line)
	}
	s.answers = nil
	for range 200 {
		s.w.Rev++
		p := Next(s.w)
		explained(s.t, s.w, p)
		if s.w.Set != nil {
			new(folder).check(s.t, s.w)
		}
		for _, a := range p.Actions {
			if line := said(a); line != "" {
				fmt.Fprintln(out, "  "+line)
			}
			s.w = applyOne(s.w, a)
		}
		if s.w.Set == nil {
			if !s.gone {
				s.gone = true
				fmt.Fprintln(out, "    the set is gone")
			}
			if !s.move() && !s.copies() && len(p.Actions) == 0 {
				s.volumes(out)
				return
			}
			continue
		}
		s.w.Outages = lasting(s.w.Outages, p.Outages, 0)
		changed := len(p.Actions) > 0 || s.w.Status == nil || !equal(*s.w.Status, p.Status)
		s.w.Status = &p.Status
		if p.Reached.Beyond(s.w.Reached) {
			s.w.Standstill = 0
		}
		s.w.Reached = p.Reached
		if !s.obey() && !s.move() && !s.copies() && !changed {
			s.picture(out, p)
			s.volumes(out)
			return
		}
	}
	s.t.Fatalf("the set does not come to rest: %s", brief(Next(s.w)))
}

// said is an action in words; "" for those that nobody sees.
func said(a Action) string {
	switch a := a.(type) {
	case Start:
		return fmt.Sprintf("%s starts on %s (%s)", a.Member.ID.MemberName(), a.Member.Revision, a.Member.Reason)
	case Stop:
		return fmt.Sprintf("%s stops (%s)", a.ID.MemberName(), a.Reason)
	case Forget:
		return a.ID.MemberName() + " is gone"
	case SetVolumes, DropVolume, RestoreVolume, VoidRequest:
		return saidOfVolumes(a)
	case BeginMove, AdvanceMove, FlipMove, BackMove, ForwardMove, EndMove, VoidMoveRequest:
		return saidOfMoves(a)
	case OrderHook:
		if a.Hook == nil {
			return a.ID.MemberName() + " is to run no hook any more"
		}
		return fmt.Sprintf("%s is to run %s", a.ID.MemberName(), a.Hook.Kind)
	case ChangeInPlace, Promote:
		return saidOfChanges(a)
	case Forgotten:
		return fmt.Sprintf("%s has forgotten %s", a.By.MemberName(), a.Identity.ID.MemberName())
	case MarkBootstrapped:
		return "the set is bootstrapped"
	}
	return saidOfJobs(a)
}

// obey has the hosts do and tell one thing of every life; it reports whether any did.
func (s *stage) obey() (any bool) {
	s.w.Slots = slices.Clone(s.w.Slots)
	for i := range s.w.Slots {
		slot := &s.w.Slots[i]
		m := slot.Member
		if m == nil || slot.Report != nil && slot.Report.Phase.Over() || !s.live(m.Node) {
			continue
		}
		r := records.Report{ID: slot.ID, Token: m.Token, Node: m.Node, Session: 5, Phase: records.PhaseRunning, Bound: m.Bound}
		how := s.bad[slot.ID.MemberName()]
		if how == "" || how == "recovers" {
			how = s.bad[string(m.Revision)]
		}
		switch {
		case how == "tells-nothing":
			continue
		case s.ended[lifeOf(m)]:
			r.Phase, r.Cause, r.Message = records.PhaseStopped, "DeadlinePassed", "no server was heard of in time"
		case m.Goal == records.GoalStop || !s.boots(m):
			r.Phase = records.PhaseStopped
		case s.misses(m) && (slot.Report == nil || slot.Report.Phase != records.PhaseRunning):
			r.Phase, r.Cause, r.Message = records.PhasePreparing, causes.VolumeMissing, "it was in use before and is not there"
		case how == "crashes":
			r.Cause, r.Message = "CrashLoop", "exited with code 1"
		case how != "is-unready":
			r.Ready, r.ReadyFor, r.Claim = true, time.Hour, s.claims[slot.ID.MemberName()]
		}
		if m.Hook != nil && !r.Phase.Over() {
			r.Hook = s.hookEnds(m.Hook)
		}
		s.change(m, slot.Report, &r)
		if old := slot.Report; old != nil && old.Phase == r.Phase && old.Ready == r.Ready && old.Cause == r.Cause && old.Claim == r.Claim && old.Hook == r.Hook && old.Change == r.Change {
			continue
		}
		slot.Report, any = &r, true
	}
	return any
}

func (s *stage) live(name spec.NodeName) bool {
	return slices.ContainsFunc(s.w.Nodes, func(n Node) bool { return n.Node.Name == name && n.Session != nil })
}

// picture writes how every member stands, and what conditions say of trouble.
func (s *stage) picture(out io.Writer, p Plan) {
	st := p.Status
	for _, m := range st.Members {
		state := "available"
		if m.Blocked != "" && m.Ready {
			state = "ready; " + m.Blocked
		} else if m.Blocked != "" {
			state = m.Blocked
		}
		fmt.Fprintf(out, "    %s %s: %s\n", m.Name, m.Revision, state)
	}
	if former := Former(s.w.Set, &st, s.w.Slots); former != "" {
		fmt.Fprintf(out, "    found under %s and %s\n", former, s.w.Set.Service())
	}
	line := "    current " + string(st.CurrentRevision)
	if st.UpdateRevision != st.CurrentRevision {
		line += ", update " + string(st.UpdateRevision)
	}
	for _, c := range st.Conditions[1:] {
		switch {
		case c.Type == ConditionProgressing && c.Reason != "Complete":
			line += "; " + c.Reason
		case c.Type == ConditionBusyTooLong, c.Type == ConditionJobsDone && c.Status != "True":
			line += "; " + c.Message
		case c.Type == ConditionStalled && c.Status == "True":
			line += "; stalled: " + c.Message
		case c.Type == ConditionDegraded && c.Status == "True":
			line += "; degraded"
		}
	}
	fmt.Fprintln(out, line)
}
