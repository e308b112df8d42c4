package dispatch

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/stead-project/stead/proto"
	"github.com/stead-project/stead/proto/wire"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/server/cache"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/store"
)

// sentNow is what a session sends and stores at one moment.
type sentNow struct {
	Lives     []records.Life
	Over      []spec.LifeID
	Unknown   []spec.LifeID
	Orders    []records.VolumeOrder
	Histories []historyPart
	Files     []FileRef
}

// next is what s sends after ch and moved.
func (s *sentState) next(v cache.View, ch *cache.NodeChanges, moved map[spec.LifeID]bool, sub *cache.NodeSubscription) (now sentNow) {
	s.hold(moved)
	ids := s.touched(v, ch, moved)
	now.Unknown = s.nextUnknown(v, ids, sub)
	now.Lives, now.Over, now.Orders = s.nextLives(v, ids), s.nextOver(v, ids), s.nextOrders(v, s.machine)
	now.Histories = s.nextHistories(v, ch)
	if ch.All || ch.Files || s.livesMoved {
		now.Files = s.nextFiles(v)
	}
	s.livesMoved = false
	return now
}

// What a session sends after looking at what changed for its node is what it would send after
// looking at everything, whatever was written in whatever order (SAFETY S2).
func TestDifferencesAreThoseOfAWholeLook(t *testing.T) {
	for seed := range uint64(8) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			r, random := newStill(t), rand.New(rand.NewPCG(seed, 1))
			at, everything := machine{"n1", "uid1"}, cache.NodeChanges{}
			everything.Add(&cache.NodeChanges{All: true})
			byChange, byLook := newSentState(at, "d"), newSentState(at, "d")
			sub := r.Cache.SubscribeNode("n1")
			defer sub.Close()
			other := r.Cache.SubscribeNode("n9")
			defer other.Close()
			sent := 0
			for step := range 400 {
				var last string
				for range 1 + random.IntN(3) {
					op := anyOp(random)
					last = op.Key
					r.Commit(op)
				}
				moved := map[spec.LifeID]bool{}
				if random.IntN(4) == 0 {
					moved[spec.LifeID{ID: anyMember(random), Token: token(random.Int64N(3))}] = random.IntN(3) > 0
				}
				var got, want sentNow
				r.Cache.Look(func(v cache.View) {
					ch := sub.Take()
					got, want = byChange.next(v, &ch, moved, sub), byLook.next(v, &everything, moved, other)
				})
				if !reflect.DeepEqual(got, want) {
					t.Fatalf("seed %d, step %d, after %s:\n%s", seed, step, last, cmp.Diff(want, got, cmpopts.EquateComparable(netip.Addr{})))
				}
				sent += len(got.Lives) + len(got.Over) + len(got.Histories)
			}
			if sent < 50 {
				t.Errorf("only %d things were sent", sent)
			}
		})
	}
}

func anyMember(r *rand.Rand) spec.Identity {
	return spec.Identity{Namespace: "default", Set: []spec.SetName{"db", "kv"}[r.IntN(2)], Ordinal: r.IntN(3)}
}

// anyOp writes one of the records that a session looks at, or deletes it.
func anyOp(r *rand.Rand) store.Op {
	id := anyMember(r)
	ref, node := id.Ref(), []spec.NodeName{"n1", "n1", "n2"}[r.IntN(3)]
	uid := []spec.UID{"uid1", "uid1", "uid1", "uid2"}[r.IntN(4)]
	volume := records.VolumeID(fmt.Sprint("v", r.IntN(2)))
	put := func(key string, record any) store.Op { return store.Put(key, store.Encode(record)) }
	ops := []store.Op{
		put(store.SetKey(ref), records.Set{Ref: ref, UID: "u1", Generation: r.Int64N(9), Spec: spec.SetSpec{
			ServiceName: []string{"a", "b"}[r.IntN(2)], MinReadySeconds: r.Int32N(2), Template: testTemplate()}}),
		put(store.StatusKey(ref), records.SetStatus{ServiceName: []string{"", "a", "b"}[r.IntN(3)], Replicas: r.IntN(9)}),
		put(store.RevisionKey(ref, "r1"), records.Revision{Ref: ref, Hash: "r1", Number: 1, Template: testTemplate()}),
		put(store.HistoryPageKey(ref, 1), records.HistoryPage{Ref: ref, Page: 1, Changes: []records.Change{{Epoch: 1, Number: 1 + r.Int64N(9)}}}),
		put(store.IdentityKey(id), records.IdentityRecord{ID: id, LastToken: token(r.Int64N(3)), VolumeReady: map[spec.ClaimName]int{"data": r.IntN(2)}}),
		put(store.ReportKey(id), records.Report{ID: id, Token: token(r.Int64N(3)), Phase: []records.Phase{records.PhaseAssigned, records.PhaseRunning}[r.IntN(2)]}),
		put(store.VolumeKey(id, "data"), records.Volume{ID: id, Claim: "data", UID: volume, Number: 1, Node: node,
			Fate: []records.VolumeFate{records.FateKeep, records.FateReclaiming}[r.IntN(2)]}),
		put(store.VolumeReportKey(id, "data", volume), records.VolumeReport{ID: id, Claim: "data", Volume: volume, Node: node}),
		put(store.FactsKey(node), records.NodeFacts{Name: node, UID: uid, Strays: []spec.LifeID{{ID: id, Token: token(r.Int64N(3))}}[:r.IntN(2)]}),
		put(store.ConfigKey("default", "pass"), records.ConfigRecord{Meta: records.Meta{Namespace: "default", Name: "pass"}}),
		store.Put(store.SecretKey("default", "pass"), []byte(fmt.Sprintf(`{"namespace":"default","name":"pass","x":%d}`, r.IntN(9)))),
		store.Put(store.BootstrappedKey("u1"), []byte("{}")),
	}
	for range 4 { // most of what happens
		ops = append(ops, put(store.MemberKey(id), records.Member{ID: id, Token: token(r.Int64N(3)), Node: node, NodeUID: uid, Revision: "r1",
			Goal: records.GoalRun, Volumes: []records.MemberVolume{{Claim: "data", Number: 1}}}))
	}
	op := ops[r.IntN(len(ops))]
	if r.IntN(5) == 0 {
		return store.Del(op.Key)
	}
	return op
}

// A history that moves while a session is sent its lives goes with the snapshot that shows it:
// what members read of the past is never behind what they see.
func TestAHistoryIsNeverBehindTheSnapshotItIsSentWith(t *testing.T) {
	for name, differences := range map[string]bool{"documents": false, "differences": true} {
		t.Run(name, func(t *testing.T) { historyIsNotBehind(t, differences) })
	}
}

func historyIsNotBehind(t *testing.T, differences bool) {
	r := newStill(t)
	r.begin()
	r.server.snapshots.round(cache.Changes{All: true})
	who := n1
	who.differences = differences
	h := r.hand(who)
	h.tells()
	h.fail = func(m *proto.ToNode) error {
		if m.GetWanted() != nil { // after what changed was gathered
			h.fail = nil
			r.tells(0, 1, 2)
			r.server.snapshots.round(cache.Changes{All: true})
		}
		return nil
	}
	set := testSet(1)
	set.Spec.MinReadySeconds = 7 // which lives are sent again for
	r.Record(store.SetKey(refDB), set)
	now := h.tells().pictures
	shown, err := wire.ToDocuments[records.Snapshot](now.GetPicturesJson())
	past, err2 := wire.ToDocuments[records.History](now.GetHistoriesJson())
	if differences {
		var sets []*proto.SetDifference
		sets, err = wire.ToSets(now.GetSets())
		if len(sets) == 1 {
			shown = []records.Snapshot{wire.ApplySet(records.Snapshot{}, sets[0], "")}
		}
		past, err2 = wire.ToHistories(now.GetHistories())
	}
	if err != nil || len(shown) != 1 || shown[0].Told.Number != 2 {
		t.Fatalf("shown %+v, %v", shown, err)
	}
	if err2 != nil || len(past) != 1 || len(past[0].Changes) != 2 {
		t.Errorf("the snapshot shows change 2, and the history sent with it is %+v, %v", past, err2)
	}
}
