package plan

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/spec/scalar"
)

var sharedClaim = spec.ClaimIdentity("default", "shared")

// claimed makes the set mount the PersistentVolumeClaim "shared", of which this is stored.
func claimed(change ...func(*ClaimState)) func(*World) {
	return func(w *World) {
		mount := []spec.VolumeMedia{{Name: "files", PersistentVolumeClaim: &spec.ClaimVolume{ClaimName: "shared"}}}
		w.Set.Spec.Template.Spec.Volumes = mount
		for i := range w.Revisions {
			w.Revisions[i].Template.Spec.Volumes = mount
		}
		for i := range w.Nodes {
			w.Nodes[i].Facts = &records.NodeFacts{Level: spec.Level}
		}
		w.Claims = map[string]*ClaimState{"shared": claimState(change...)}
		for i := range w.Slots {
			v := w.Claims["shared"].Volume()
			if m := w.Slots[i].Member; m != nil && v != nil {
				m.Volumes = append(m.Volumes, records.MemberVolume{Claim: "shared", ID: v.UID, Number: 1, Class: spec.LocalClass, Object: true})
			}
		}
	}
}

func claimState(change ...func(*ClaimState)) *ClaimState {
	c := &ClaimState{Slot: Slot{ID: sharedClaim}, Record: &records.ClaimRecord{
		Meta: records.Meta{Namespace: "default", Name: "shared"},
		Spec: spec.ClaimSpec{AccessModes: []string{spec.ReadWriteOnce}, Resources: spec.VolumeResources{Requests: map[string]scalar.Quantity{"storage": {Milli: 10_000}}}},
	}}
	for _, f := range change {
		f(c)
	}
	return c
}

// boundTo gives the claim its volume, on a node, on which a life was ready.
func boundTo(node spec.NodeName, fate ...records.VolumeFate) func(*ClaimState) {
	return func(c *ClaimState) {
		c.Slot.Volumes = map[spec.ClaimName]*records.Volume{"shared": {
			ID: sharedClaim, Claim: "shared", UID: "old", Number: 1, Class: spec.LocalClass, Node: node, SizeBytes: 10, Fate: records.FateKeep,
		}}
		for _, f := range fate {
			c.Slot.Volumes["shared"].Fate = f
		}
		c.Slot.Identity = &records.IdentityRecord{ID: sharedClaim, VolumeNumbers: map[spec.ClaimName]int{"shared": 1}, VolumeReady: map[spec.ClaimName]int{"shared": 1}}
	}
}

func noRecord(c *ClaimState)      { c.Record = nil }
func claimDeleting(c *ClaimState) { c.Record.Deleting = true }
func onePod(c *ClaimState)        { c.Record.Spec.AccessModes = []string{spec.ReadWriteOncePod} }

// many makes the claim ReadWriteMany, bound to n1, and the nodes share its class.
func many(sharing ...spec.NodeName) func(*World) {
	return func(w *World) {
		claimed(boundTo("n1"), func(c *ClaimState) {
			c.Record.Spec.AccessModes = []string{spec.ReadWriteMany}
			c.Slot.Volumes["shared"].Shared = true
		})(w)
		for i := range w.Nodes {
			if slices.Contains(sharing, w.Nodes[i].Node.Name) {
				w.Nodes[i].Facts.Classes, w.Nodes[i].Facts.SharedClasses = []string{spec.LocalClass}, []string{spec.LocalClass}
			}
		}
	}
}

// unmade takes the claim's volume away.
func unmade(change func(*World)) func(*World) {
	return func(w *World) {
		change(w)
		w.Claims["shared"].Slot.Volumes, w.Claims["shared"].Slot.Identity = nil, nil
	}
}

// usedBy adds a member of another set that has the volume, in a phase.
func usedBy(phase records.Phase) func(*ClaimState) {
	id := spec.Identity{Namespace: "default", Set: "web", Ordinal: 0}
	return func(c *ClaimState) {
		c.Users = append(c.Users, ClaimUser{
			Member: &records.Member{ID: id, Token: spec.Token{Epoch: 1, Number: 7}, Node: "n1"},
			Report: &records.Report{ID: id, Token: spec.Token{Epoch: 1, Number: 7}, Phase: phase},
		})
	}
}

func unknownLife(c *ClaimState) {
	c.Strays = []NodeStray{{Node: "n2", Stray: spec.LifeID{ID: spec.Identity{Namespace: "default", Set: "web", Ordinal: 4}, Token: spec.Token{Epoch: 1, Number: 3}}}}
}

func askedOf(verb records.VolumeVerb) func(*ClaimState) {
	return func(c *ClaimState) {
		c.Slot.Asked = map[spec.ClaimName]*records.VolumeRequest{"shared": {ID: sharedClaim, Claim: "shared", Volume: "old", Verb: verb}}
	}
}

func TestMembersStartWithAClaimsVolume(t *testing.T) {
	check(t, []rule{
		{name: "none starts before there is the claim", world: "parallel 2 n1", change: claimed(noRecord),
			want: "| 0:NoClaim 1:NoClaim", says: "PersistentVolumeClaim shared not found"},
		{name: "the first makes the volume, the next waits until that is recorded", world: "parallel 2 n1 n2", change: claimed(),
			want: "start=0/Create@n1 | 0:Starting 1:WaitingForTurn"},
		{name: "all start on the node of the volume", world: "parallel 2 n1 n2 n3", change: claimed(boundTo("n2")),
			want: "start=0/Create@n2 start=1/Create@n2 | 0:Starting 1:Starting"},
		{name: "and nowhere else", world: "ordered 1 n1 n2~", change: claimed(boundTo("n2")),
			want: "| 0:NodeSilent", says: "its volumes are on node n2"},
		{name: "nor where another volume of the member is", world: "ordered 1 volumes n1 n2 0:volume@n1", change: claimed(boundTo("n2")),
			want: "| 0:VolumeMismatch", says: "the volume of the PersistentVolumeClaim shared is on node n2, and another volume that it mounts on node n1"},
		{name: "none starts with a claim that is being deleted", world: "ordered 1 n1", change: claimed(boundTo("n1"), claimDeleting),
			want: "| 0:NoClaim", says: "is being deleted"},
		{name: "nor with a volume that is being given up", world: "ordered 1 n1", change: claimed(boundTo("n1", records.FateReclaiming)),
			want: "| 0:VolumeReclaiming"},
		{name: "nor while something is requested of it", world: "ordered 1 n1", change: claimed(boundTo("n1"), askedOf(records.VerbLost)),
			want: "| 0:WaitingForTurn"},
		{name: "nor with one of another class", world: "ordered 1 n1", change: claimed(boundTo("n1"), func(c *ClaimState) { c.Slot.Volumes["shared"].Class = "ssd" }),
			want: "| 0:VolumeMismatch", says: "of class ssd, but local is asked for"},
		{name: "nor when its record cannot be read", world: "ordered 1 n1", change: claimed(noRecord, func(c *ClaimState) { c.Unread = true }),
			want: "| 0:Unreadable"},
		{name: "a class that no node has", world: "ordered 1 n1", change: claimed(func(c *ClaimState) { class := "ssd"; c.Record.Spec.StorageClassName = &class }),
			want: "| 0:NoStorageClass", says: "node n1 has no storage class ssd"},
		{name: "an agent that would pass over the claim", world: "ordered 1 n1", change: func(w *World) { claimed()(w); w.Nodes[0].Facts.Level = 1 },
			want: "| 0:AgentTooOld", says: "too old for volumes[0].persistentVolumeClaim"},
		{name: "members of other sets do not matter", world: "ordered 1 n1", change: claimed(boundTo("n1"), usedBy(records.PhaseRunning)),
			want: "start=0/Create@n1 | 0:Starting"},
		{name: "ReadWriteOncePod: one life at a time", world: "parallel 2 n1", change: claimed(boundTo("n1"), onePod),
			want: "start=0/Create@n1 | 0:Starting 1:WaitingForTurn"},
		{name: "ReadWriteOncePod: another member of the set has it", world: "parallel 2 n1 0:ready", change: claimed(boundTo("n1"), onePod),
			want: "| 1:ClaimInUse", says: "ReadWriteOncePod, and token 1.10 of db-0 on node n1 uses it"},
		{name: "ReadWriteOncePod: a member of another set has it", world: "ordered 1 n1", change: claimed(boundTo("n1"), onePod, usedBy(records.PhaseStopping)),
			want: "| 0:ClaimInUse"},
		{name: "ReadWriteOncePod: and is over", world: "ordered 1 n1", change: claimed(boundTo("n1"), onePod, usedBy(records.PhaseStopped)),
			want: "start=0/Create@n1 | 0:Starting"},
		{name: "ReadWriteOncePod: an unknown life may have it", world: "ordered 1 n1", change: claimed(boundTo("n1"), onePod, unknownLife),
			want: "| 0:ClaimInUse"},
		{name: "ReadWriteMany: on all nodes that share the class", world: "parallel 4 n1 n2 n3 n4", change: many("n1", "n2", "n3"),
			want: "start=0/Create@n1 start=1/Create@n2 start=2/Create@n3 start=3/Create@n1 | 0:Starting 1:Starting 2:Starting 3:Starting"},
		{name: "ReadWriteMany: also while the node that made it is away", world: "parallel 1 n1~ n2 n3", change: many("n1", "n2"),
			want: "start=0/Create@n2 | 0:Starting"},
		{name: "ReadWriteMany: no node shares the class", world: "ordered 1 n1", change: many(), want: "| 0:NoStorageClass",
			says: "does not share its storage class local, and the PersistentVolumeClaim shared is ReadWriteMany"},
		{name: "ReadWriteMany: the first makes it, the next waits until that is recorded", world: "parallel 2 n1 n2", change: unmade(many("n1", "n2")),
			want: "start=0/Create@n1 | 0:Starting 1:WaitingForTurn"},
		{name: "ReadWriteMany: a volume that only its node has stays there", world: "parallel 2 n1 n2",
			change: func(w *World) { many("n1", "n2")(w); w.Claims["shared"].Volume().Shared = false },
			want:   "start=0/Create@n1 start=1/Create@n1 | 0:Starting 1:Starting"},
		{name: "ReadWriteOnce: on one node also where the class is shared", world: "parallel 2 n1 n2",
			change: func(w *World) {
				many("n1", "n2")(w)
				w.Claims["shared"].Record.Spec.AccessModes = []string{spec.ReadWriteOnce}
			},
			want: "start=0/Create@n1 start=1/Create@n1 | 0:Starting 1:Starting"},
		{name: "that a life was ready on it is marked once", world: "ordered 1 n1 0:ready", change: claimed(boundTo("n1"), func(c *ClaimState) { c.Slot.Identity.VolumeReady = nil }),
			want: "ready=0 |"},
		{name: "and then no more", world: "ordered 1 n1 0:ready", change: claimed(boundTo("n1")), want: "|"},
	})
}

// formerly has the revision before the update's alone mount the claim.
func formerly(change ...func(*ClaimState)) func(*World) {
	return func(w *World) {
		claimed(change...)(w)
		w.Set.Spec.Template.Spec.Volumes = nil
		for _, r := range w.Revisions {
			if r.Hash == w.TemplateHash {
				r.Template.Spec.Volumes = nil
			}
		}
	}
}

// A member that ends in the middle of an update returns on what it ran; not so when that mounts a
// claim which is gone: without another way to end what it waits for, the update would never complete.
// (In Kubernetes it returns on the new revision in any case.)
func TestAMemberWhoseFormerClaimIsGoneReturnsOnItsTarget(t *testing.T) {
	const gone = "ordered 2 n1 update=h2 current=h1 0:over 1:ready/h2"
	check(t, []rule{
		{name: "the claim is there", world: gone, change: formerly(boundTo("n1")), want: "start=0/Replace@n1 | 0:Starting"},
		{name: "the claim is gone", world: gone, change: formerly(noRecord), want: "start=0/Replace@n1/h2 | 0:Starting"},
		{name: "the claim is being deleted", world: gone, change: formerly(boundTo("n1"), claimDeleting), want: "start=0/Replace@n1/h2 | 0:Starting"},
		{name: "the claim cannot be read", world: gone, change: formerly(noRecord, func(c *ClaimState) { c.Unread = true }), want: "| 0:Unreadable"},
		{name: "the claim is on another node than a volume of its own", world: "ordered 2 volumes n1 n2 update=h2 current=h1 0:over@n1 1:ready@n1/h2", change: formerly(boundTo("n2")),
			want: "start=0/Replace@n1/h2 | 0:Starting"},
		{name: "the update mounts it, too", world: gone, change: claimed(noRecord), want: "| 0:NoClaim"},
		{name: "the rollout is paused", world: "ordered 2 paused n1 update=h2 current=h1 0:over 1:ready/h2", change: formerly(noRecord), want: "| 0:NoClaim"},
	})
}

func TestAFirstLifeMakesTheClaimsVolumeWhereItStarts(t *testing.T) {
	w := world(t, "ordered 1 n1")
	claimed()(&w)
	start := Next(w).Actions[0].(Start)
	if len(start.Volumes) != 1 || len(start.Claimed) != 1 || len(start.Member.Volumes) != 1 {
		t.Fatalf("got %+v", start)
	}
	v, rec, mount := start.Volumes[0], start.Claimed[0], start.Member.Volumes[0]
	if v.ID != sharedClaim || v.UID != "new-1" || v.Node != "n1" || v.SizeBytes != 10 || v.Fate != records.FateKeep || v.Shared || v.Number != 1 {
		t.Errorf("made %+v", v)
	}
	if rec.ID != sharedClaim || rec.VolumeNumbers["shared"] != 1 || len(rec.VolumeReady) != 0 {
		t.Errorf("its identity is %+v", rec)
	}
	if !mount.Object || mount.ID != v.UID || mount.Claim != "shared" || mount.Owner(start.Member.ID) != sharedClaim {
		t.Errorf("the life has %+v", mount)
	}
	if start.Identity.VolumeNumbers != nil {
		t.Errorf("the member's own volumes are %v", start.Identity.VolumeNumbers)
	}
}

// TestALifeKnowsThatItsClaimsVolumeIsOnOtherNodes: so that time alone does not prove that its writes are over.
func TestALifeKnowsThatItsClaimsVolumeIsOnOtherNodes(t *testing.T) {
	for _, fenced := range []bool{false, true} {
		w := world(t, "ordered 1 n1")
		unmade(many("n1"))(&w)
		if fenced {
			w.Nodes[0].Facts.FencedClasses = w.Nodes[0].Facts.SharedClasses
		}
		start := Next(w).Actions[0].(Start)
		if v, mount := start.Volumes[0], start.Member.Volumes[0]; !v.Shared || v.Node != "n1" || !mount.Shared || mount.Fenced != fenced || !mount.Object {
			t.Errorf("fenced %v: made %+v, the life has %+v", fenced, v, mount)
		}
	}
}

// TestAnotherNodeGivesASharedVolumeUpWhenItsMakerIsAway: one that is connected and shares the class; of a volume
// that is on one node alone none does.
func TestAnotherNodeGivesASharedVolumeUpWhenItsMakerIsAway(t *testing.T) {
	for _, c := range []struct {
		shared, away bool
		sharing      int
		want         spec.NodeName
	}{
		{true, false, 1, "n1"}, {true, true, 1, "n2"}, {true, true, 0, "n1"}, {false, true, 1, "n1"},
	} {
		state := claimState(boundTo("n1"), claimDeleting)
		state.Slot.Volumes["shared"].Shared = c.shared
		nodes := claimNodes()
		if c.away {
			nodes[0].Session = nil
		}
		if c.sharing > 0 {
			nodes[1].Facts = &records.NodeFacts{Classes: []string{spec.LocalClass}, SharedClasses: []string{spec.LocalClass}}
		}
		p := Next(World{Rev: 100, Epoch: 1, Claim: state, Nodes: nodes, Slots: []Slot{state.Slot}})
		set, ok := p.Actions[0].(SetVolumes)
		if !ok || set.Volumes[0].Fate != records.FateReclaiming || set.Volumes[0].Node != c.want {
			t.Errorf("%+v: got %+v", c, p.Actions)
		}
	}
}

// planOf is what is decided about a claim by itself, as "what | why it waits".
func planOf(c *ClaimState) string {
	p := Next(World{Rev: 100, Epoch: 1, Claim: c, Nodes: claimNodes(), Slots: []Slot{c.Slot}})
	var words []string
	for _, a := range p.Actions {
		switch a := a.(type) {
		case SetVolumes:
			words = append(words, fmt.Sprintf("%s/%d", a.Volumes[0].Fate, a.Volumes[0].SizeBytes))
		case DropVolume:
			words = append(words, "drop")
		case RemoveClaim:
			words = append(words, "remove")
		case VoidRequest:
			words = append(words, "void")
		case RestoreVolume:
			words = append(words, "restore")
		default:
			words = append(words, fmt.Sprintf("%T", a))
		}
	}
	words = append(words, "|")
	for _, b := range p.Blocked {
		words = append(words, string(b.Reason))
	}
	return strings.Join(words, " ")
}

func claimNodes() (nodes []Node) {
	for _, name := range []spec.NodeName{"n1", "n2"} {
		nodes = append(nodes, Node{Node: &records.Node{Name: name, UID: "u"}, Session: &records.Session{Node: name, UID: "u", ID: 5}})
	}
	return nodes
}

func saidOfIt(state records.VolumeState) func(*ClaimState) {
	return func(c *ClaimState) {
		c.Slot.Said = map[spec.ClaimName]*records.VolumeReport{"shared": {ID: sharedClaim, Claim: "shared", Volume: "old", Node: "n1", State: state}}
	}
}

func TestAClaimsVolumeGoesOnlyWithItsClaimAndWhenNothingUsesIt(t *testing.T) {
	bound := boundTo("n1")
	for name, c := range map[string]struct {
		state *ClaimState
		want  string
	}{
		"a claim that nobody uses stays":               {claimState(bound), "|"},
		"a claim without a volume stays":               {claimState(), "|"},
		"deleted and used":                             {claimState(bound, claimDeleting, usedBy(records.PhaseRunning)), "| ClaimInUse"},
		"deleted and assigned to a life":               {claimState(bound, claimDeleting, usedBy(records.PhaseAssigned)), "| ClaimInUse"},
		"deleted, and an unknown life may use it":      {claimState(bound, claimDeleting, unknownLife), "| ClaimInUse"},
		"deleted, and its last user is over":           {claimState(bound, claimDeleting, usedBy(records.PhaseStopped)), "Reclaiming/10 |"},
		"deleted and not used":                         {claimState(bound, claimDeleting), "Reclaiming/10 |"},
		"deleted and given up":                         {claimState(boundTo("n1", records.FateReclaiming), claimDeleting), "remove | VolumeReclaiming"},
		"deleted and never made":                       {claimState(claimDeleting), "remove |"},
		"deleted while it is looked for":               {claimState(boundTo("n1", records.FateLost), claimDeleting), "| VolumeReclaiming"},
		"gone from its place":                          {claimState(noRecord, boundTo("n1", records.FateReclaiming), saidOfIt(records.VolumeTrashed)), "drop | VolumeReclaiming"},
		"kept without a claim":                         {claimState(noRecord, bound), "|"},
		"grown":                                        {claimState(bound, func(c *ClaimState) { c.Slot.Volumes["shared"].SizeBytes = 9 }), "Keep/10 |"},
		"never shrunk":                                 {claimState(bound, func(c *ClaimState) { c.Slot.Volumes["shared"].SizeBytes = 11 }), "|"},
		"given up by hand, but the claim exists":       {claimState(bound, askedOf(records.VerbReclaim)), "void |"},
		"given up by hand without a claim":             {claimState(noRecord, bound, askedOf(records.VerbReclaim)), "Reclaiming/10 |"},
		"lost, but used":                               {claimState(bound, askedOf(records.VerbLost), usedBy(records.PhaseRunning)), "void |"},
		"lost, but an unknown life may use it":         {claimState(bound, askedOf(records.VerbLost), unknownLife), "void | Stray"},
		"lost":                                         {claimState(bound, askedOf(records.VerbLost)), "Lost/10 | VolumeReclaiming"},
		"lost and not found":                           {claimState(boundTo("n1", records.FateLost), saidOfIt(records.VolumeAbsent)), "drop | VolumeReclaiming"},
		"lost and found":                               {claimState(boundTo("n1", records.FateLost), saidOfIt(records.VolumeFound)), "Keep/10 |"},
		"brought back from the trash":                  {claimState(askedOf(records.VerbRestore), saidOfIt(records.VolumeTrashed)), "restore | VolumeRestoring"},
		"brought back, but an unknown life may use it": {claimState(askedOf(records.VerbRestore), saidOfIt(records.VolumeTrashed), unknownLife), "| Stray"},
		"a record of it cannot be read":                {claimState(bound, claimDeleting, func(c *ClaimState) { c.Unread = true }), "|"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := planOf(c.state); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

// A preview follows what it is given to the end: every member gets its start, the volume is made once.
func TestAPreviewStartsAllThatShareAClaim(t *testing.T) {
	w := world(t, "parallel 3 n1 n2")
	claimed()(&w)
	starts, made := 0, 0
	f := Preview(w)
	for _, step := range f.Steps {
		if a, is := step.Action.(Start); is {
			starts++
			made += len(a.Volumes)
			if a.Member.Node != "n1" {
				t.Errorf("%s starts on %s", a.Member.ID, a.Member.Node)
			}
		}
	}
	if starts != 3 || made != 1 || len(f.Never) != 0 {
		t.Errorf("%d starts, %d volumes, never: %v", starts, made, f.Never)
	}
	if w.Claims["shared"].Volume() != nil {
		t.Error("the preview changed the world that it was given")
	}
}
