package proof

import (
	"testing"
	"time"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
)

// known is a life on n1, with its last report, among nodes n1 to n3 that are all connected.
type known struct {
	nodes  []Node
	member records.Member
	report *records.Report
}

func newKnown() *known {
	token := spec.Token{Epoch: 1, Number: 10}
	k := &known{
		member: records.Member{Node: "n1", NodeUID: "uid-n1", Boot: "boot1", Token: token, Goal: records.GoalRun},
		report: &records.Report{Token: token, Session: 5, Phase: records.PhaseRunning, Ready: true, ReadyFor: 10 * time.Second},
	}
	for _, name := range []spec.NodeName{"n1", "n2", "n3"} {
		uid := spec.UID("uid-" + name)
		k.nodes = append(k.nodes, Node{
			Node: &records.Node{Name: name, UID: uid}, Facts: &records.NodeFacts{Name: name, UID: uid, Epoch: 1, Guards: true},
			Session: &records.Session{Node: name, UID: uid, Boot: "boot1", ID: 5},
		})
	}
	return k
}

func (k *known) silence(nodes ...spec.NodeName) {
	for _, name := range nodes {
		FindNode(k.nodes, name).Session = nil
	}
}

func TestEffectiveReady(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*known)
		want   bool
	}{
		{"a member that is ready", func(*known) {}, true},
		{"one that is not", func(k *known) { k.report.Ready = false }, false},
		{"a life of which nothing was reported", func(k *known) { k.report = nil }, false},
		{"what was reported of another life", func(k *known) { k.report.Token.Number-- }, false},
		{"one that is over, whatever its report says besides", func(k *known) { k.report.Phase = records.PhaseStopped }, false},
		{"one that was told to stop", func(k *known) { k.member.Goal = records.GoalStop }, false},
		{"one of the boot before", func(k *known) { k.member.Boot = "boot0" }, false},
		{"one of another machine under the node's name", func(k *known) { k.member.NodeUID = "other" }, false},
		{"one on a node that is not known", func(k *known) { k.member.Node = "n9" }, false},
		{"one on a silent node", func(k *known) { k.silence("n1") }, false},
		{"one on a silent node of two", func(k *known) { k.silence("n1"); k.nodes = k.nodes[:2] }, false},
		{"when most nodes are silent, the last report", func(k *known) { k.silence("n1", "n2") }, true},
		{"what another session reported", func(k *known) { k.report.Session = 4 }, false},
		{"what was reported to a session that this one took over", func(k *known) { k.report.Session = 4; k.nodes[0].Session.Resumed = true }, true},
		{"but not when this one has reported otherwise", func(k *known) { k.report.Ready = false; k.nodes[0].Session.Resumed = true }, false},
		{"nor that of another boot where the node is connected", func(k *known) { k.member.Boot = "boot0"; k.silence("n2", "n3") }, false},
	} {
		k := newKnown()
		c.change(k)
		if got := NewJudge(k.nodes, 1).EffectiveReady(&k.member, k.report); got != c.want {
			t.Errorf("%s: %v; want %v", c.name, got, c.want)
		}
	}
}

func TestLife(t *testing.T) {
	ready := Life{Live: true, Ready: true, Available: true}
	for _, c := range []struct {
		name   string
		change func(*known)
		want   Life
	}{
		{"ready for long enough", func(*known) {}, ready},
		{"ready, but not for long enough", func(k *known) { k.report.ReadyFor-- }, Life{Live: true, Ready: true}},
		{"not ready, though it was", func(k *known) { k.report.Ready = false }, Life{Live: true}},
		{"it is not running yet, whatever its report says besides", func(k *known) { k.report.Phase = records.PhasePreparing }, Life{Live: true}},
		{"it was told to stop", func(k *known) { k.member.Goal = records.GoalStop }, Life{Live: true}},
		{"nothing was reported", func(k *known) { k.report = nil }, Life{Live: true}},
		{"a report of another token proves nothing", func(k *known) { k.report.Token.Number++; k.report.Phase = records.PhaseStopped }, Life{Live: true}},
		{"what an earlier session reported is stale", func(k *known) { k.report.Session = 4 }, Life{Live: true, Stale: true}},
		{"its report says that it is over, in whichever session", func(k *known) { k.report.Session, k.report.Phase = 4, records.PhaseStopped }, Life{Live: true, Over: true}},
		{"a changed boot is no proof", func(k *known) { k.member.Boot = "boot0" }, Life{}},
		{"over by its report though its node is silent", func(k *known) { k.silence("n1"); k.report.Phase = records.PhaseFailed }, Life{Over: true}},
	} {
		k := newKnown()
		c.change(k)
		if got := NewJudge(k.nodes, 1).Life(&k.member, k.report, 10*time.Second); got != c.want {
			t.Errorf("%s: %+v; want %+v", c.name, got, c.want)
		}
	}
}

func TestSilenceProvesOnlyAGuardedLifeOver(t *testing.T) {
	const bound = time.Minute
	needed := SilenceNeeded(bound)
	for _, c := range []struct {
		name   string
		change func(*known)
		over   bool
		left   time.Duration
	}{
		{"its deadline and the margin are past", func(*known) {}, true, 0},
		{"they are not quite", func(k *known) { k.nodes[0].Gone-- }, false, 1},
		{"it is not guarded", func(k *known) { k.member.Bound = 0 }, false, 0},
		{"its node was heard of", func(k *known) { k.nodes[0].Session = &records.Session{UID: "uid-n1", Boot: "boot2"} }, false, 0},
		{"another machine has the name", func(k *known) { k.nodes[0].Session = &records.Session{UID: "other"} }, false, 0},
		{"its node has no record", func(k *known) { k.member.Node = "n9" }, false, 0},
		{"its node never said anything", func(k *known) { k.nodes[0].Facts = nil }, false, 0},
		{"its node spoke before a restore", func(k *known) { k.nodes[0].Facts.Epoch = 0 }, false, 0},
		{"it was begun before a restore", func(k *known) { k.member.Token.Epoch = 0 }, false, 0},
		{"its node does not guard", func(k *known) { k.nodes[0].Facts.Guards = false }, false, 0},
		{"it was reported with another bound", func(k *known) { k.report.Bound-- }, false, 0},
		{"nothing was reported of it", func(k *known) { k.report = nil }, true, 0},
		{"most nodes are silent", func(k *known) { k.silence("n2") }, false, 0},
		{"its volume is shared, and what it wrote may be late", func(k *known) { k.member.Volumes = []records.MemberVolume{{Shared: true}} }, false, 0},
		{"its volume is shared, and fences by itself", func(k *known) { k.member.Volumes = []records.MemberVolume{{Shared: true, Fenced: true}} }, true, 0},
	} {
		k := newKnown()
		k.silence("n1")
		k.nodes[0].Gone, k.member.Bound, k.report.Bound = needed, bound, bound
		c.change(k)
		j := NewJudge(k.nodes, 1)
		if got := j.Silence(&k.member, k.report); got.Over != c.over || got.Left != c.left {
			t.Errorf("%s: over %v, left %s; want %v, %s (%s)", c.name, got.Over, got.Left, c.over, c.left, got.Text)
		}
		if got := j.Over(&k.member, k.report); got != c.over {
			t.Errorf("%s: over %v; want %v", c.name, got, c.over)
		}
	}
}
