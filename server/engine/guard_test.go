package engine

import (
	"cmp"
	"context"
	"log/slog"
	"net/netip"
	"reflect"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/records/hooks"
	"github.com/stead-project/stead/records/moves"
	"github.com/stead-project/stead/server/cache"
	"github.com/stead-project/stead/server/plan"
	"github.com/stead-project/stead/server/proof"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/store"
	"github.com/stead-project/stead/store/memstore"
)

var ip = netip.MustParseAddr("10.88.0.9")

// stage is a store in which one decision is about to be written, and all it relies on.
type stage struct {
	name string
	// left out of the base records, by key
	without []string
	change  func(*records.Set)
	report  records.Phase
	ordinal bool // out of range: replicas 0
	relies  []string
	action  plan.Action
	fate    records.VolumeFate
	said    bool                  // the volume lies in the trash, says its node
	says    records.VolumeState   // or this
	asked   records.VolumeRequest // of the volume, when it has a verb
	drained bool                  // its node is to be empty
	shut    bool                  // its host is being shut down
	move    *moves.Move           // from n1 to n2
	moveAsk *moves.MoveRequest
	source  moves.MoveState  // what n1 says of the move
	target  moves.MoveState  // what n2 does
	copies  bool             // the volume is the copy on n2
	lacks   bool             // n1 says that it has not the volume, and the copy was left on n2
	fenced  bool             // n2 is lost for good, as a person says
	hook    *hooks.HookOrder // what the life is to run; of forget it is about member 1
	result  hooks.HookResult // what came of it
	unknown bool             // n2 has a volume that the store does not know, and n1 has its own not
	jobs    *hooks.Jobs      // what is recorded of jobs
	lost    bool             // the life is guarded, its node without a session, and its bound over; there is another node
}

func base(st stage) []store.Op {
	id := member(0)
	n := int32(1)
	if st.ordinal {
		n = 0
	}
	set := records.Set{Ref: db, UID: "u1", InitialReplicas: 1, Spec: spec.SetSpec{Replicas: &n, PodManagementPolicy: spec.OrderedReady}}
	volumes(&set)
	if st.hook != nil {
		st.change = withHooks
	}
	if st.change != nil {
		st.change(&set)
	}
	hash := hashOf(&set)
	token := spec.Token{Epoch: 1, Number: 1}
	mount := records.MemberVolume{Claim: "data", ID: "v", Number: 1, Class: "local", SizeBytes: 1 << 50}
	var bound time.Duration
	if st.lost {
		set.Spec.VolumeClaimTemplates, bound = nil, lostBound
		st.without = append(st.without, store.SessionKey("n1"), store.VolumeKey(id, "data"))
	}
	node := records.Node{Name: "n1", UID: "x"}
	if st.drained {
		node.Drain = &records.Drain{}
	}
	facts := records.NodeFacts{Name: "n1", UID: "x", Epoch: 1, Guards: st.lost}
	if st.shut {
		facts.Conditions = []records.NodeCondition{{Type: records.ShuttingDown, Status: "True"}}
	}
	ops := []store.Op{
		store.Put(store.LeaderKey, []byte("a")), store.Put(store.EpochKey, []byte("1")),
		store.Put(store.SetKey(db), store.Encode(set)),
		store.Put(store.RevisionKey(db, hash), store.Encode(records.Revision{Ref: db, SetUID: "u1", Hash: hash, Number: 1, Template: set.Spec.Template, Members: set.Spec.Members})),
		store.Put(store.NodeKey("n1"), store.Encode(node)),
		store.Put(store.FactsKey("n1"), store.Encode(facts)),
		store.Put(store.SessionKey("n1"), store.Encode(records.Session{Node: "n1", UID: "x"})),
		store.Put(store.MemberKey(id), store.Encode(records.Member{ID: id, SetUID: "u1", Token: token, Goal: records.GoalRun, Node: "n1", NodeUID: "x", Address: ip, Revision: hash, Bound: bound, Volumes: []records.MemberVolume{mount}})),
		store.Put(store.ReportKey(id), store.Encode(records.Report{ID: id, Token: token, Phase: st.report, Ready: st.report == records.PhaseRunning, Bound: bound})),
		store.Put(store.IdentityKey(id), store.Encode(records.IdentityRecord{ID: id, LastToken: token, Address: ip, Due: hash, VolumeNumbers: map[spec.ClaimName]int{"data": 1}})),
		store.Put(store.VolumeKey(id, "data"), store.Encode(records.Volume{ID: id, Claim: "data", UID: "v", Number: 1, Class: "local", Node: "n1", SizeBytes: 1 << 50, Fate: cmp.Or(st.fate, records.FateKeep)})),
		store.Put(store.AddressKey(ip), store.Encode(records.AddressRecord{Address: ip, ID: id})),
	}
	if st.lost {
		ops = append(ops, store.Put(store.NodeKey("n2"), store.Encode(records.Node{Name: "n2", UID: "y"})),
			store.Put(store.FactsKey("n2"), store.Encode(records.NodeFacts{Name: "n2", UID: "y", Epoch: 1, Guards: true})),
			store.Put(store.SessionKey("n2"), store.Encode(records.Session{Node: "n2", UID: "y"})))
	}
	if st.said || st.says != "" {
		ops = append(ops, store.Put(store.VolumeReportKey(id, "data", "v"), store.Encode(records.VolumeReport{
			ID: id, Claim: "data", Volume: "v", Node: "n1", State: cmp.Or(st.says, records.VolumeTrashed)})))
	}
	if q := st.asked; q.Verb != "" {
		q.ID, q.Claim, q.Volume = id, "data", cmp.Or(q.Volume, "v")
		q.Token = token
		ops = append(ops, store.Put(store.VolumeRequestKey(id, "data"), store.Encode(q)))
	}
	others := slices.Concat(st.moveOps(&facts, hash), st.hookOps(hash), st.unknownOps(facts), st.jobOps(), olderOps(&set), changeOps(&set, hash))
	ops = slices.DeleteFunc(ops, func(op store.Op) bool {
		return slices.ContainsFunc(others, func(o store.Op) bool { return o.Key == op.Key })
	})
	ops = append(ops, others...)
	return slices.DeleteFunc(ops, func(op store.Op) bool { return slices.Contains(st.without, op.Key) })
}

// SAFETY S7: of each decision every key that it relied on is changed in turn, and it must not be written.
func TestEachDecisionComparesAllItReliedOn(t *testing.T) {
	id := member(0)
	var set records.Set
	revision := store.RevisionKey(db, spec.HashTemplate(set.Spec.Template))
	differing(&set)
	differs := hashOf(&set)
	shared := []string{store.LeaderKey, store.EpochKey, store.HoldKey, store.CountKey, store.FormatKey, store.SetKey(db)}
	place := []string{store.NodeKey("n1"), store.FactsKey("n1"), store.SessionKey("n1")}
	own := []string{store.MemberKey(id), store.ReportKey(id), store.IdentityKey(id)}
	asked, said := store.VolumeRequestKey(id, "data"), store.VolumeReportKey(id, "data", "v")
	hellos := []string{store.HellosKey} // whoever relies on it that no node runs a life which the store does not know
	both := append(place[:3:3], store.NodeKey("n2"), store.FactsKey("n2"), store.SessionKey("n2"))
	move, moveAsk := store.MoveKey(id), store.MoveRequestKey(id)
	volume, address := store.VolumeKey(id, "data"), store.AddressKey(ip)
	for _, st := range []stage{
		{name: "a first life", without: append(own, volume, address), action: plan.Start{},
			relies: slices.Concat(hellos, place, own, []string{revision, volume, store.AddressKey(netip.MustParseAddr("10.88.0.1"))})},
		{name: "a first life with its revision", without: append(own, volume, address, revision), action: plan.AddRevision{},
			relies: slices.Concat(hellos, place, own, []string{revision, volume, store.AddressKey(netip.MustParseAddr("10.88.0.1"))})},
		{name: "a life in the place of one that is over", report: records.PhaseStopped, action: plan.Start{},
			relies: slices.Concat(hellos, place, own, []string{revision, volume, address})},
		{name: "a life in the place of one that is lost", report: records.PhaseRunning, lost: true, change: replace(lostBound), action: plan.Start{},
			relies: slices.Concat(hellos, place[1:], own, []string{store.NodeKey("n2"), store.FactsKey("n2"), store.SessionKey("n2"), revision, address})},
		{name: "a life in the place of one that is lost and was never reported", without: own[1:2:2], lost: true, change: replace(lostBound), action: plan.Start{},
			relies: slices.Concat(hellos, place[1:], own)},
		{name: "a lost life that is forgotten with its address", report: records.PhaseRunning, ordinal: true, lost: true, action: plan.Forget{},
			relies: slices.Concat(hellos, place[1:], own, []string{address})},
		{name: "a lost life that is forgotten and was never reported", without: own[1:2:2], ordinal: true, lost: true, action: plan.Forget{},
			relies: slices.Concat(place[1:], own)},
		{name: "a stop", report: records.PhaseRunning, ordinal: true, action: plan.Stop{}, relies: []string{store.MemberKey(id)}},
		{name: "a stop for a shutdown", report: records.PhaseRunning, shut: true, action: plan.Stop{}, relies: []string{store.MemberKey(id), store.FactsKey("n1")}},
		{name: "a stop for a drain", report: records.PhaseRunning, drained: true, action: plan.Stop{}, relies: []string{store.MemberKey(id), store.NodeKey("n1")}},
		{name: "a stop with the fate of a volume", report: records.PhaseRunning, ordinal: true, change: retention(spec.Delete, spec.Retain),
			action: plan.Stop{}, relies: []string{store.MemberKey(id), volume}},
		{name: "a volume that is reclaimed", without: own[:2], ordinal: true, fate: records.FateDelete, action: plan.SetVolumes{},
			relies: []string{store.HellosKey, store.MemberKey(id), volume, store.FactsKey("n1")}},
		{name: "a volume that is reclaimed, of which something was said before", without: own[:2], ordinal: true, fate: records.FateDelete, said: true, action: plan.SetVolumes{},
			relies: []string{store.HellosKey, store.MemberKey(id), volume, store.FactsKey("n1"), store.VolumeReportKey(id, "data", "v")}},
		{name: "a volume that is reclaimed after its set", without: append(own[:2:2], store.SetKey(db)), ordinal: true, fate: records.FateDelete, action: plan.SetVolumes{},
			relies: []string{store.HellosKey, store.MemberKey(id), volume, store.FactsKey("n1")}},
		{name: "a volume that is given up by hand", without: own[:2], ordinal: true, asked: records.VolumeRequest{Verb: records.VerbReclaim}, action: plan.SetVolumes{},
			relies: []string{store.HellosKey, store.MemberKey(id), volume, store.FactsKey("n1"), asked}},
		{name: "a volume that is given up by hand after its set", without: append(own[:2:2], store.SetKey(db)), asked: records.VolumeRequest{Verb: records.VerbReclaim}, action: plan.SetVolumes{},
			relies: []string{store.HellosKey, store.MemberKey(id), volume, store.FactsKey("n1"), asked}},
		{name: "a request that is void", without: own[:2], ordinal: true, asked: records.VolumeRequest{Verb: records.VerbReclaim, Volume: "another"}, action: plan.VoidRequest{},
			relies: []string{asked}},
		{name: "a volume that is kept after all", without: own[:2], fate: records.FateDelete, action: plan.SetVolumes{},
			relies: []string{store.MemberKey(id), volume}},
		{name: "a volume that is gone", without: own[:2], ordinal: true, fate: records.FateReclaiming, said: true, action: plan.DropVolume{},
			relies: []string{store.HellosKey, store.MemberKey(id), store.IdentityKey(id), volume, address, store.VolumeReportKey(id, "data", "v")}},
		{name: "a lost volume of a life that is over", report: records.PhaseStopped, asked: records.VolumeRequest{Verb: records.VerbLost}, action: plan.SetVolumes{},
			relies: []string{store.HellosKey, store.MemberKey(id), store.ReportKey(id), volume, store.FactsKey("n1"), asked}},
		{name: "a lost volume of a member without a life", without: own[:2], ordinal: true, asked: records.VolumeRequest{Verb: records.VerbLost}, action: plan.SetVolumes{},
			relies: []string{store.HellosKey, store.MemberKey(id), volume, store.FactsKey("n1"), asked}},
		{name: "a volume that is there after all", without: own[:2], fate: records.FateLost, says: records.VolumeFound, action: plan.SetVolumes{},
			relies: []string{store.MemberKey(id), volume, said}},
		{name: "a volume that is back", without: own[:2], ordinal: true, fate: records.FateRestoring, says: records.VolumeFound, action: plan.SetVolumes{},
			relies: []string{store.MemberKey(id), volume, said}},
		{name: "a volume that is lost", without: own[:2], fate: records.FateLost, says: records.VolumeAbsent, action: plan.DropVolume{},
			relies: []string{store.MemberKey(id), store.IdentityKey(id), volume, said}},
		{name: "a volume that does not come back", without: own[:2], ordinal: true, fate: records.FateRestoring, says: records.VolumeAbsent, action: plan.DropVolume{},
			relies: []string{store.MemberKey(id), store.IdentityKey(id), volume, said}},
		{name: "a volume in the trash that comes back", without: append(own[:2:2], volume), ordinal: true, said: true, asked: records.VolumeRequest{Verb: records.VerbRestore}, action: plan.RestoreVolume{},
			relies: []string{store.HellosKey, store.MemberKey(id), store.IdentityKey(id), volume, said, asked, store.FactsKey("n1")}},
		{name: "a volume that the store did not know", report: records.PhaseStopped, unknown: true, asked: records.VolumeRequest{Verb: records.VerbRestore, Volume: "w", Node: "n2"},
			action: plan.RestoreVolume{}, relies: slices.Concat(hellos, both, own, []string{volume, asked, move, said})},
		{name: "a volume that the store did not know, given up", report: records.PhaseRunning, unknown: true, asked: records.VolumeRequest{Verb: records.VerbReclaim, Volume: "w", Node: "n2"},
			action: plan.LeaveVolume{}, relies: []string{store.FactsKey("n2"), volume, asked, store.VolumeReportKey(id, "data", "w")}},
		{name: "a life that is forgotten", report: records.PhaseStopped, ordinal: true, action: plan.Forget{}, relies: own},
		{name: "a life that is forgotten with its address", without: []string{volume}, report: records.PhaseStopped, ordinal: true,
			action: plan.Forget{}, relies: slices.Concat(hellos, own, []string{address})},
		{name: "a revision that a member runs as it is", report: records.PhaseRunning, change: differing, action: plan.Promote{},
			relies: []string{store.MemberKey(id), store.IdentityKey(id), store.RevisionKey(db, differs)}},
		{name: "a change in place", report: records.PhaseRunning, change: changing, action: plan.ChangeInPlace{},
			relies: slices.Concat(own, []string{store.FactsKey("n1"), store.RequestKey(id), store.RevisionKey(db, spec.HashTemplate(imageOf("db:2")))})},
		{name: "a change in place that is done", report: records.PhaseRunning, change: changed, action: plan.Promote{},
			relies: slices.Concat(own, []string{store.RevisionKey(db, spec.HashTemplate(imageOf("db:2")))})},
		{name: "a mark", report: records.PhaseRunning, action: plan.MarkReady{}, relies: []string{store.MemberKey(id), store.IdentityKey(id)}},
		{name: "a move that begins", report: records.PhaseRunning, moveAsk: &moves.MoveRequest{Verb: moves.MoveBegin}, action: plan.BeginMove{},
			relies: slices.Concat(both, []string{volume, asked, move, moveAsk})},
		{name: "a seal of a move that the store does not know", report: records.PhaseStopped, moveAsk: &moves.MoveRequest{Verb: moves.MoveAbort}, source: moves.MoveSealed, action: plan.BeginMove{},
			relies: slices.Concat(both, own, []string{volume, asked, move, moveAsk})},
		{name: "a move that is not done", report: records.PhaseRunning, moveAsk: &moves.MoveRequest{Verb: moves.MoveAbort}, action: plan.VoidMoveRequest{}, relies: []string{moveAsk}},
		{name: "a stop for a move", report: records.PhaseRunning, move: &moves.Move{Phase: moves.MoveCopying}, target: moves.MoveWarm, action: plan.Stop{},
			relies: slices.Concat(both[3:], []string{store.SessionKey("n1"), store.MemberKey(id), store.IdentityKey(id), move})},
		{name: "a move of a member that does not run", report: records.PhaseStopped, move: &moves.Move{Phase: moves.MoveCopying}, target: moves.MoveWarm, action: plan.AdvanceMove{},
			relies: slices.Concat(own, []string{store.FactsKey("n2"), move})},
		{name: "a move whose member has stopped", report: records.PhaseStopped, move: &moves.Move{Phase: moves.MoveStopping}, action: plan.AdvanceMove{}, relies: append(own[:3:3], move)},
		{name: "the sums of a sealed source", report: records.PhaseStopped, move: &moves.Move{Phase: moves.MoveSealing}, source: moves.MoveSealed, action: plan.AdvanceMove{},
			relies: slices.Concat(own, []string{store.FactsKey("n1"), move})},
		{name: "a move that is aborted", report: records.PhaseRunning, move: &moves.Move{Phase: moves.MoveCopying}, moveAsk: &moves.MoveRequest{Verb: moves.MoveAbort}, action: plan.AdvanceMove{},
			relies: []string{move, moveAsk}},
		{name: "a move that is aborted, for its target is silent", report: records.PhaseStopped, without: []string{store.SessionKey("n2")}, move: &moves.Move{Phase: moves.MoveSealing}, action: plan.AdvanceMove{},
			relies: []string{move, store.SessionKey("n2")}},
		{name: "a flip", report: records.PhaseStopped, move: &moves.Move{Phase: moves.MoveSealing, Sums: []moves.MoveSum{{Claim: "data", Sum: "s"}}}, source: moves.MoveSealed, target: moves.MoveCopied,
			action: plan.FlipMove{}, relies: slices.Concat(hellos, both, own, []string{volume, move})},
		{name: "the first life after a flip", report: records.PhaseStopped, copies: true, move: &moves.Move{Phase: moves.MoveFlipped}, target: moves.MoveArrived, action: plan.Start{},
			relies: slices.Concat(hellos, both[3:], own, []string{volume, move})},
		{name: "a move that is over", report: records.PhaseRunning, copies: true, move: &moves.Move{Phase: moves.MoveFlipped}, target: moves.MoveArrived, action: plan.EndMove{},
			relies: slices.Concat(both, own, []string{volume, move, said})},
		{name: "an aborted move that is over", report: records.PhaseStopped, move: &moves.Move{Phase: moves.MoveAborting}, source: moves.MoveUnsealed, action: plan.EndMove{},
			relies: slices.Concat(both, []string{volume, move})},
		{name: "an aborted move whose copy is needed no more", report: records.PhaseStopped, move: &moves.Move{Phase: moves.MoveAborting, Sums: []moves.MoveSum{{Claim: "data", Sum: "s"}}}, source: moves.MoveUnsealed, target: moves.MoveCopied,
			action: plan.EndMove{}, relies: slices.Concat(both, own, []string{volume, move})},
		{name: "a member that goes on with the copy of a move that is aborted", report: records.PhaseStopped, move: &moves.Move{Phase: moves.MoveAborting, Sums: []moves.MoveSum{{Claim: "data", Sum: "s"}}},
			moveAsk: &moves.MoveRequest{Verb: moves.MoveBegin}, source: moves.MoveSealed, lacks: true, target: moves.MoveCopied, action: plan.FlipMove{},
			relies: slices.Concat(hellos, both, own, []string{volume, move, moveAsk, store.FenceKey("n1")})},
		{name: "a move that is aborted, for its source failed", report: records.PhaseStopped, move: &moves.Move{Phase: moves.MoveSealing}, source: moves.MoveFailed, target: moves.MoveWarm, action: plan.AdvanceMove{},
			relies: slices.Concat(own, []string{store.FactsKey("n1"), store.FactsKey("n2"), move})},
		{name: "a move that goes back", report: records.PhaseStopped, copies: true, fenced: true, move: &moves.Move{Phase: moves.MoveFlipped}, moveAsk: &moves.MoveRequest{Verb: moves.MoveGiveBack},
			source: moves.MoveSealed, action: plan.BackMove{}, relies: slices.Concat(hellos, both, own, []string{volume, move, moveAsk, store.FenceKey("n2"), store.VolumeReportKey(id, "data", "c")})},
		{name: "a move that went back before a restore", report: records.PhaseStopped, copies: true, move: &moves.Move{Phase: moves.MoveFlipped},
			source: moves.MoveIsBack, target: moves.MoveArrived, action: plan.BackMove{}, relies: slices.Concat(hellos, both, own, []string{volume, move, store.FenceKey("n2"), store.VolumeReportKey(id, "data", "c")})},
		{name: "one whose volumes stayed where they were", report: records.PhaseStopped, move: &moves.Move{Phase: moves.MoveSealing},
			source: moves.MoveIsBack, action: plan.BackMove{}, relies: slices.Concat(hellos, both, own, []string{volume, move, store.VolumeReportKey(id, "data", "c")})},
		{name: "a move that went back and is over", report: records.PhaseStopped, move: &moves.Move{Phase: moves.MoveBack}, source: moves.MoveIsBack, action: plan.EndMove{},
			relies: slices.Concat(both, own, []string{volume, move})},
		{name: "a member that goes on with the copy of a move that goes back", report: records.PhaseStopped, move: &moves.Move{Phase: moves.MoveBack}, moveAsk: &moves.MoveRequest{Verb: moves.MoveBegin},
			source: moves.MoveIsBack, lacks: true, target: moves.MoveArrived, action: plan.ForwardMove{},
			relies: slices.Concat(hellos, both, own, []string{volume, move, moveAsk, said, store.FenceKey("n1"), store.VolumeReportKey(id, "data", "c")})},
		{name: "a hook that one is to run of whom another has left", report: records.PhaseRunning, hook: &hooks.HookOrder{}, action: plan.OrderHook{},
			relies: []string{store.MemberKey(id), store.IdentityKey(member(1)), store.MemberKey(member(1))}},
		{name: "that a member has forgotten another", report: records.PhaseRunning, hook: &hooks.HookOrder{Kind: hooks.Forget}, result: hooks.HookResult{Done: true}, action: plan.Forgotten{},
			relies: []string{store.MemberKey(id), store.ReportKey(id), store.IdentityKey(member(1))}},
		{name: "a member that stays after all", report: records.PhaseRunning, hook: &hooks.HookOrder{Kind: hooks.Decommission}, action: plan.OrderHook{}, relies: []string{store.MemberKey(id)}},
		{name: "the stop of a member that has taken leave", report: records.PhaseRunning, hook: &hooks.HookOrder{Kind: hooks.Decommission}, result: hooks.HookResult{Done: true}, action: plan.Stop{},
			relies: []string{store.MemberKey(id), store.ReportKey(id)}},
		{name: "what came of a job", report: records.PhaseStopped, jobs: jobRan(), change: withJob, action: plan.PutJobs{}, relies: []string{store.MemberKey(id), store.ReportKey(id), store.JobsKey(db)}},
		{name: "a job that is to run", report: records.PhaseRunning, jobs: &hooks.Jobs{Ref: db, Epoch: 1}, change: withJob, action: plan.OrderJob{}, relies: []string{store.MemberKey(id), store.ReportKey(id), store.JobsKey(db)}},
		{name: "a set that goes", without: own, change: deleting, action: plan.RemoveSet{}},
	} {
		t.Run(st.name, func(t *testing.T) {
			if got := tryTurn(t, st, ""); !got {
				t.Fatal("nothing was written though nothing changed; the test shows nothing")
			}
			for _, key := range append(shared, st.relies...) {
				if tryTurn(t, st, key) {
					t.Errorf("%s changed meanwhile, and the decision was written all the same", key)
				}
			}
		})
	}
}

// tryTurn has a leader look, changes touched behind its back, and reports whether
// the decision was written.
func tryTurn(t *testing.T, st stage, touched string) (written bool) {
	synctest.Test(t, func(t *testing.T) {
		s := memstore.New()
		l, turn := planned(t, s, st)
		if reflect.TypeOf(turn.decisions[0].action) != reflect.TypeOf(st.action) {
			t.Fatalf("actions %+v; want %T", turn.decisions, st.action)
		}
		touch(t, s, touched)
		l.commit(t.Context(), &turn)
		_, after, err := s.Snapshot(t.Context(), "")
		if err != nil {
			t.Fatal(err)
		}
		written = wrote(turn.decisions[0], after)
		_ = s.Close()
	})
	return written
}

// planned is what a leader is about to write that looks at s, into which it first puts the records of st, if it has any. It
// sees nothing more afterwards.
func planned(t *testing.T, s *memstore.Store, st stage) (*leader, evaluation) {
	rev, _, err := s.Snapshot(t.Context(), "")
	if err == nil && st.name != "" {
		rev, err = s.Commit(t.Context(), store.Txn{Then: base(st)})
	}
	if err != nil {
		t.Fatal(err)
	}
	_, kvs, err := s.Get(t.Context(), store.LeaderKey)
	if err != nil {
		t.Fatal(err)
	}
	cached := cache.New(s, slog.New(slog.DiscardHandler))
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- cached.Run(ctx) }()
	if err := cached.Wait(ctx, rev); err != nil {
		t.Fatal(err)
	}
	e, err := New(Config{Store: s, Cache: cached, CIDR: netip.MustParsePrefix("10.88.0.0/24")})
	if err != nil {
		t.Fatal(err)
	}
	l := e.leader(store.Leadership{Value: "a", Created: kvs[store.LeaderKey].Create})
	var turn evaluation
	l.remembered(db).statusDue = time.Now() // marks are not held back
	if st.lost {
		cached.Look(func(v cache.View) { l.evaluate(v, db, l.remembered(db), time.Now()) })
		time.Sleep(proof.SilenceNeeded(lostBound))
	}
	cached.Look(func(v cache.View) { turn = l.evaluate(v, db, l.remembered(db), time.Now()) })
	turn.decisions = slices.DeleteFunc(turn.decisions, func(u decision) bool { return u.action == nil })
	if turn.err != nil || len(turn.decisions) == 0 {
		t.Fatalf("error %v, decisions %+v", turn.err, turn.decisions)
	}
	cancel()
	<-done
	return l, turn
}

// touch writes the key as it is, or makes it with nothing in it: a change that
// only its revision tells. The leader key is made anew, as another term does.
func touch(t *testing.T, s *memstore.Store, key string) {
	if key == "" {
		return
	}
	_, kvs, err := s.Get(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	if key == store.LeaderKey {
		if _, err := s.Commit(t.Context(), store.Txn{Then: []store.Op{store.Del(key)}}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.Commit(t.Context(), store.Txn{Then: []store.Op{store.Put(key, kvs[key].Value)}}); err != nil {
		t.Fatal(err)
	}
}

// wrote reports whether all writes of u stand in the store.
func wrote(u decision, kvs []store.KV) bool {
	have := map[string]string{}
	for _, kv := range kvs {
		have[kv.Key] = string(kv.Value)
	}
	for _, op := range u.Then {
		value, ok := have[op.Key]
		if ok == op.Delete || !op.Delete && value != string(op.Value) {
			return false
		}
	}
	return true
}
