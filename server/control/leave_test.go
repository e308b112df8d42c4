package control

import (
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"

	"github.com/stead-project/stead/proto"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/store"
)

// leaveYAML is setYAML with both hooks.
var leaveYAML = strings.Replace(strings.Replace(setYAML, "apps/v1", "stead/v1", 1), "  replicas: 3\n",
	"  replicas: 3\n  decommission: {exec: {command: [leave]}}\n  forget: {exec: {command: [forget]}}\n", 1)

// hooked is running with hooks, on nodes whose agents run them.
func (r *rig) hooked() {
	r.t.Helper()
	r.running()
	r.agentRunsHooks(true)
	r.mustApply(leaveYAML)
}

// agentRunsHooks stores the node of the members.
func (r *rig) agentRunsHooks(does bool) {
	r.t.Helper()
	r.Record(store.NodeKey("n1"), records.Node{Name: "n1", UID: "uid1"})
	r.Record(store.SessionKey("n1"), records.Session{Node: "n1", UID: "uid1", Boot: "b1", ID: 1})
	r.Record(store.FactsKey("n1"), records.NodeFacts{Name: "n1", UID: "uid1", Boot: "b1", Epoch: 1, Hooks: does})
}

// agentRunsJobs has it run jobs, too.
func (r *rig) agentRunsJobs() {
	r.t.Helper()
	r.Record(store.FactsKey("n1"), records.NodeFacts{Name: "n1", UID: "uid1", Boot: "b1", Epoch: 1, Hooks: true, Jobs: true})
}

// A scale-down says which hooks run first, and may be told to do without one; that ends when the range changes.
func TestAScaleDownSaysWhichHooksRun(t *testing.T) {
	r := newRig(t)
	r.hooked()
	r.disks()
	effects := func(replicas int32, skip bool, want string) {
		t.Helper()
		out, err := r.api.Scale(r.ctx, &proto.ScaleRequest{Name: "db", Replicas: replicas, SkipDecommission: skip})
		if got := strings.Join(out.GetEffects(), "; "); err != nil || got != want {
			t.Errorf("scaled to %d: %q, %v; want %q", replicas, got, err, want)
		}
	}
	skips := func(want bool) {
		t.Helper()
		if s, _ := r.set("db"); s.SkipDecommission != want {
			t.Errorf("SkipDecommission is %v, want %v", s.SkipDecommission, want)
		}
	}
	const kept = "; volumes kept"
	effects(1, false, "scales db 3 → 1: stops db-2, db-1 in this order, each after its decommission hook has succeeded, and the others forget it"+kept)
	skips(false)
	effects(1, true, "stops db-2, db-1 in this order, and the others forget each"+kept)
	skips(true)
	before := r.rev()
	effects(1, true, "")
	effects(1, false, "")
	if r.rev() != before {
		t.Error("what is so already was written")
	}
	r.mustApply(strings.Replace(leaveYAML, "replicas: 3", "replicas: 1\n  minReadySeconds: 5", 1))
	skips(true)
	effects(2, false, "stops db-2, each after its decommission hook has succeeded, and the others forget it; volumes kept")
	skips(false)
	effects(1, true, "stops db-2, and the others forget each; volumes kept; scales db 2 → 1: stops db-1, and the others forget each; volumes kept")
	skips(true)
	r.mustApply(strings.Replace(leaveYAML, "replicas: 3", "replicas: 1\n  minReadySeconds: 5\n  ordinals: {start: 1}", 1))
	skips(false)
}

func TestHooksThatAgentsWouldNotRunAreRefused(t *testing.T) {
	const fix = "upgrade stead on the hosts, and apply it again"
	r := newRig(t)
	r.running()
	r.agentRunsHooks(false)
	_, err := r.apply(leaveYAML)
	refused(t, err, codes.FailedPrecondition, "spec.decommission", "an agent that is too old to run it runs on n1", fix)
	forget := strings.Replace(leaveYAML, "  decommission: {exec: {command: [leave]}}\n", "", 1)
	_, err = r.apply(forget)
	refused(t, err, codes.FailedPrecondition, "spec.forget", fix)
	r.agentRunsHooks(true)
	r.mustApply(leaveYAML)
	r.agentRunsHooks(false) // the set can be changed all the same
	r.mustApply(strings.Replace(leaveYAML, "replicas: 3", "replicas: 4", 1))
	if s, _ := r.set("db"); s.Spec.Forget == nil || !slices.Equal(s.Spec.Forget.Exec.Command, []string{"forget"}) {
		t.Errorf("got %+v", s.Spec.Forget)
	}
}
