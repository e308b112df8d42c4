package plan

import (
	"net/netip"
	"reflect"
	"strings"
	"testing"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
)

func TestPlace(t *testing.T) {
	check(t, []rule{
		{name: "no node", world: "ordered 1", want: "| 0:NoNode"},
		{name: "a silent node takes nothing", world: "ordered 1 n1~", want: "| 0:NoNode"},
		{name: "a cordoned node takes nothing", world: "ordered 1 n1! n2", want: "start=0/Create@n2 | 0:Starting"},
		{name: "members spread", world: "parallel 3 n1 n2 0:ready", want: "start=1/Create@n2 start=2/Create@n1 | 1:Starting 2:Starting"},
		{name: "a life on a node that is not known is left alone", world: "ordered 1 n1 0:ready@n9", want: "| 0:NodeSilent"},
		{name: "nor has it rebooted when another machine took its name", world: "ordered 1 n1 0:rebooted",
			change: func(w *World) { w.Slots[0].Member.NodeUID = "other" }, want: "| 0:NodeSilent"},
		{name: "one that is reported ready but does not run is not", world: "ordered 1 n1 0:ready",
			change: func(w *World) { w.Slots[0].Report.Phase = records.PhasePreparing }, want: "| 0:Starting"},
		{name: "the volume's node first", world: "ordered 1 volumes n1 n2 0:volume@n2", want: "start=0/Create@n2 | 0:Starting"},
		{name: "the volume's node alone", world: "ordered 1 volumes n1 n2~ 0:volume@n2", want: "| 0:NodeSilent"},
		{name: "the volume's node is cordoned", world: "ordered 1 volumes n1 n2! 0:volume@n2", want: "| 0:Cordoned"},
		{name: "the volume's node is unknown", world: "ordered 1 volumes n1 0:volume@n2", want: "| 0:NoNode"},
		{name: "no node has the storage class", world: "ordered 1 volumes n1 n2", change: classes("fast"), want: "| 0:NoStorageClass"},
		{name: "of several things that nodes lack the class is told", world: "ordered 1 volumes n1 n2!", change: classes("fast"), want: "| 0:NoStorageClass"},
		{name: "the node that has the storage class", world: "ordered 1 volumes n1 n2", change: classes("fast", nil, []string{"fast", "local"}),
			want: "start=0/Create@n2 | 0:Starting"},
		{name: "the volume's node lost the storage class", world: "ordered 1 volumes n1 n2 0:volume@n1",
			change: classes("fast", []string{"local"}, []string{"fast", "local"}), want: "| 0:NoStorageClass"},
		{name: "no agent knows a field of the template", world: "ordered 1 n1 n2", change: levels(1, 0), want: "revision=5qdnbnwwzv | 0:AgentTooOld",
			says: "no node can take it: node n1 has an agent that is too old for initContainers (also n2)"},
		{name: "a node that said nothing has an agent of long ago", world: "ordered 1 n1", change: levels(-1), want: "revision=5qdnbnwwzv | 0:AgentTooOld"},
		{name: "the node whose agent knows it", world: "ordered 1 n1 n2", change: levels(1, spec.Level), want: "revision=5qdnbnwwzv start=0/Create@n2/5qdnbnwwzv | 0:Starting"},
		{name: "no agent enforces NetworkPolicies", world: "ordered 1 n1 n2", change: isolated(1, 0), want: "| 0:AgentTooOld",
			says: "no node can take it: node n1 has an agent that is too old for the NetworkPolicies of the set (also n2)"},
		{name: "the node whose agent enforces them", world: "ordered 1 n1 n2", change: isolated(1, records.PolicyLevel), want: "start=0/Create@n2 | 0:Starting"},
		{name: "another machine under the node's name takes nothing", world: "ordered 1 n1",
			change: func(w *World) { w.Nodes[0].Session.UID = "other" }, want: "| 0:NoNode"},
		{name: "a life on another machine of the name is not ready", world: "ordered 1 n1 0:ready",
			change: func(w *World) { w.Slots[0].Member.NodeUID = "other" }, want: "| 0:NodeSilent"},
	})
}

// levels has the set run an init container, which agents of level 1 pass over, and gives the agents of the
// nodes their levels in order; -1: the node said nothing of itself.
func levels(have ...int) func(*World) {
	return func(w *World) {
		w.Set.Spec.Template.Spec.InitContainers = []spec.Container{{Name: "i", Image: "i"}}
		w.TemplateHash = spec.HashTemplate(w.Set.Template())
		for i, level := range have {
			w.Nodes[i].Facts = &records.NodeFacts{Name: w.Nodes[i].Node.Name, Level: level}
			if level < 0 {
				w.Nodes[i].Facts = nil
			}
		}
	}
}

// isolated has a NetworkPolicy select the set, and gives the agents of the nodes their levels in order.
func isolated(have ...int) func(*World) {
	return func(w *World) {
		w.Isolated = true
		for i, level := range have {
			w.Nodes[i].Facts = &records.NodeFacts{Name: w.Nodes[i].Node.Name, Level: level}
		}
	}
}

// classes asks for a storage class, and gives the nodes theirs in order.
func classes(class string, have ...[]string) func(*World) {
	return func(w *World) {
		w.Set.Spec.VolumeClaimTemplates[0].Spec.StorageClassName = &class
		for i, c := range have {
			w.Nodes[i].Facts = &records.NodeFacts{Name: w.Nodes[i].Node.Name, Classes: c}
		}
	}
}

func TestAMissingStorageClassIsNamedWithThoseKnown(t *testing.T) {
	w := world(t, "ordered 1 volumes n1 n2")
	classes("gold", []string{"local", "ssd"}, []string{"hdd", "local"})(&w)
	p := Next(w)
	want := "no node can take it: node n1 has no storage class gold (also n2); known storage classes are hdd, local, ssd"
	if len(p.Blocked) != 1 || p.Blocked[0].Text != want {
		t.Errorf("got %+v\nwant %s", p.Blocked, want)
	}
}

func addClaim(w *World) {
	w.Set.Spec.VolumeClaimTemplates = append(w.Set.Spec.VolumeClaimTemplates, claim("log", 5))
}

// second gives the first member another volume: on this node, or on none, or ("") on
// that of the first.
func second(node spec.NodeName) func(*World) {
	return func(w *World) {
		addClaim(w)
		v := *w.Slots[0].Volumes["data"]
		v.Claim = "log"
		switch node {
		case "":
		case "none":
			v.Node = ""
		default:
			v.Node = node
		}
		w.Slots[0].Volumes["log"] = &v
	}
}

func TestVolumes(t *testing.T) {
	change := func(f func(*World, *records.Volume)) func(*World) {
		return func(w *World) { f(w, w.Slots[0].Volumes["data"]) }
	}
	check(t, []rule{
		{name: "a larger volume serves", world: "ordered 1 volumes n1 0:volume",
			change: change(func(w *World, v *records.Volume) { v.SizeBytes = 11 }), want: "start=0/Create@n1 | 0:Starting"},
		{name: "a smaller volume grows first", world: "ordered 1 volumes n1 0:volume",
			change: change(func(w *World, v *records.Volume) { v.SizeBytes = 9 }), want: "set=0/Keep | 0:WaitingForTurn"},
		{name: "that of a member that runs grows, too", world: "ordered 1 volumes n1 0:ready",
			change: change(func(w *World, v *records.Volume) { v.SizeBytes = 9 }), want: "set=0/Keep |"},
		{name: "one of another class does not grow", world: "ordered 1 volumes n1 0:volume",
			change: change(func(w *World, v *records.Volume) { v.SizeBytes, v.Class = 9, "fast" }), want: "| 0:VolumeMismatch"},
		{name: "a claim that was added comes with the next life", world: "ordered 1 volumes n1 0:ready",
			change: addClaim, want: "|"},
		{name: "and is made then, on the node of the others", world: "ordered 1 volumes n1 n2 0:over@n2",
			change: addClaim, want: "start=0/Replace@n2 | 0:Starting"},
		{name: "a volume of another class does not", world: "ordered 1 volumes n1 0:volume",
			change: change(func(w *World, v *records.Volume) { v.Class = "fast" }), want: "| 0:VolumeMismatch"},
		{name: "a volume that is being given up does not", world: "ordered 1 volumes n1 0:volume",
			change: change(func(w *World, v *records.Volume) { v.Fate = records.FateReclaiming }), want: "| 0:VolumeReclaiming"},
		{name: "two volumes on one node bind to it", world: "ordered 1 volumes n1 n2 0:volume@n2",
			change: second(""), want: "start=0/Create@n2 | 0:Starting"},
		{name: "a volume that is on no node binds to none", world: "ordered 1 volumes n1 n2 0:volume@n2",
			change: second("none"), want: "start=0/Create@n2 | 0:Starting"},
		{name: "volumes on two nodes bind to none", world: "ordered 1 volumes n1 n2 0:volume",
			change: second("n2"), want: "| 0:VolumeMismatch"},
	})
}

func TestAFirstLifeGetsAllThatIsItsOwn(t *testing.T) {
	w := world(t, "ordered 1 volumes n1")
	grace := int64(7)
	w.Revisions[0].Template.Spec.TerminationGracePeriodSeconds = &grace
	got := Next(w).Actions[0].(Start)
	id := spec.Identity{Namespace: "default", Set: "db"}
	token, addr := spec.Token{Epoch: 1, Number: 100}, netip.MustParseAddr("10.88.1.0")
	want := Start{
		Member: records.Member{
			ID: id, SetUID: "u1", Token: token, Goal: records.GoalRun, Reason: records.ReasonCreate, Revision: "h1", Node: "n1", NodeUID: "uid-n1",
			Boot: "boot1", Address: addr, Service: "db", GraceSeconds: 7,
			Volumes: []records.MemberVolume{{Claim: "data", ID: "new-1", Number: 1, Class: "local", SizeBytes: 10}},
		},
		Identity:   records.IdentityRecord{ID: id, LastToken: token, Address: addr, Due: "h1", VolumeNumbers: map[spec.ClaimName]int{"data": 1}},
		Volumes:    []records.Volume{{ID: id, Claim: "data", UID: "new-1", Number: 1, Class: "local", Node: "n1", SizeBytes: 10, Fate: records.FateKeep}},
		NewAddress: true, Text: got.Text,
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

func TestAReplacedLifeKeepsIdentityAndVolume(t *testing.T) {
	w := world(t, "ordered 1 volumes n1 n2 0:over@n2")
	got := Next(w).Actions[0].(Start)
	old := w.Slots[0]
	if got.NewAddress || got.Member.Address != old.Member.Address || len(got.Volumes) > 0 ||
		!reflect.DeepEqual(got.Member.Volumes, old.Member.Volumes) || got.Member.Node != "n2" {
		t.Errorf("got %+v; want the address, volume and node of %+v", got, old.Member)
	}
	if !strings.Contains(got.Text, old.Member.Token.String()) {
		t.Errorf("text %q; want the token that is over", got.Text)
	}
}

func TestTheTokenIsNewerThanTheRevisionAndAnyLife(t *testing.T) {
	cases := map[string]struct {
		last spec.Token
		want spec.Token
	}{
		"the picture's revision":        {spec.Token{Epoch: 1, Number: 10}, spec.Token{Epoch: 1, Number: 100}},
		"one more than the last":        {spec.Token{Epoch: 1, Number: 100}, spec.Token{Epoch: 1, Number: 101}},
		"the last of an epoch before":   {spec.Token{Epoch: 0, Number: 500}, spec.Token{Epoch: 1, Number: 501}},
		"no life ever: revision's only": {spec.Token{}, spec.Token{Epoch: 1, Number: 100}},
	}
	for name, c := range cases {
		w := world(t, "ordered 1 n1 0:none")
		w.Slots[0].Identity.LastToken = c.last
		if got := Next(w).Actions[0].(Start).Member.Token; got != c.want {
			t.Errorf("%s: got %s; want %s", name, got, c.want)
		}
	}
	w := world(t, "ordered 1 n1 0:over")
	w.Slots[0].Member.Token, w.Slots[0].Report.Token = spec.Token{Epoch: 1, Number: 200}, spec.Token{Epoch: 1, Number: 200}
	if got := Next(w).Actions[0].(Start).Member.Token.Number; got != 201 {
		t.Errorf("got %d; want more than the member's, though its identity record lags", got)
	}
}

func TestEachNewMemberGetsItsOwnAddress(t *testing.T) {
	w := world(t, "parallel 3 n1")
	w.Free = w.Free[:2]
	p := Next(w)
	if got := brief(p); got != "start=0/Create@n1 start=1/Create@n1 | 0:Starting 1:Starting 2:NoAddress" {
		t.Fatalf("got %s; want two starts and one that waits for an address", got)
	}
	if a, b := p.Actions[0].(Start).Member.Address, p.Actions[1].(Start).Member.Address; a == b {
		t.Errorf("both got %s", a)
	}
}

func TestAMemberStartsOnTheRevisionItIsDue(t *testing.T) {
	w := world(t, "parallel 3 n1 0:none 1:none")
	w.Revisions = append(w.Revisions, &records.Revision{Hash: "h2", Number: 2})
	w.TemplateHash = "h2"
	w.Slots[1].Identity.Due = "of a set that was removed"
	var got []spec.RevisionHash
	for _, a := range Next(w).Actions {
		got = append(got, a.(Start).Member.Revision)
	}
	if want := []spec.RevisionHash{"h1", "h2", "h2"}; !reflect.DeepEqual(got, want) {
		t.Errorf("got %v; want %v", got, want)
	}
}

// Its record is written with the first life; where it is missing all the same, nothing
// that is read in it holds of the member.
func TestAMemberWithoutTheRecordOfItsIdentity(t *testing.T) {
	lost := func(w *World) { w.Slots[0].Identity = nil }
	check(t, []rule{
		{name: "is not known to have been available, nor not to", world: "ordered 1 n1 update=h2 current=h1? 0:running/h1?", change: lost, want: "| 0:NotReady"},
		{name: "is not marked", world: "ordered 1 n1 0:ready", change: lost, want: "|"},
		{name: "may stop", world: "ordered 0 n1 0:ready", change: lost, want: "stop=0/ScaleToZero | 0:Stopping"},
		{name: "may be waited for", world: "ordered 1 n1~ 0:ready", change: lost, want: "| 0:NodeSilent"},
	})
}

func TestWhatIsSaidOfAVolumeIsFoundByItsIdentity(t *testing.T) {
	w := world(t, "ordered 2 volumes n1 0:ready=Keep+Present 1:ready")
	if said := w.Said(w.Slots[0].ID, "data"); said == nil || said != w.Slots[0].Said["data"] {
		t.Errorf("of the first: %+v", said)
	}
	if said := w.Said(w.Slots[1].ID, "data"); said != nil {
		t.Errorf("of the second: %+v, though nothing was said", said)
	}
}

func TestALifeHasTheGraceOfItsOwnTemplate(t *testing.T) {
	w := world(t, "ordered 2 n1 current=h1 0:ready 1:over")
	own, next := int64(7), int64(9)
	w.Revisions[0].Template.Spec.TerminationGracePeriodSeconds = &own
	w.Set.Spec.Template.Spec.TerminationGracePeriodSeconds = &next
	w.TemplateHash = "h2" // added in this very step
	for _, a := range Next(w).Actions {
		if start, ok := a.(Start); ok && (start.Member.GraceSeconds != own || start.Member.Revision != "h1") {
			t.Errorf("%s with a grace of %d; want that of h1", start.Member.Revision, start.Member.GraceSeconds)
		}
	}
	w = world(t, "ordered 1 n1")
	if got := Next(w).Actions[0].(Start).Member.GraceSeconds; got != defaultGraceSeconds {
		t.Errorf("grace %d where the template says nothing", got)
	}
}

func TestAVolumeThatFollowsALostOneSaysSo(t *testing.T) {
	w := world(t, "ordered 1 volumes n1 0:none")
	w.Slots[0].Identity.VolumeNumbers = map[spec.ClaimName]int{"data": 1}
	got := Next(w).Actions[0].(Start)
	if got.Volumes[0].Number != 2 || got.Member.Volumes[0].Number != 2 || got.Identity.VolumeNumbers["data"] != 2 {
		t.Errorf("got %+v; want the second volume of the claim", got)
	}
}
