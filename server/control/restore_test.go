package control

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/stead-project/stead/proto"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/server/cache"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/store"
)

// host puts a node that said hello in this epoch; on: it has a session.
func (r *rig) host(name spec.NodeName, epoch int64, on bool) {
	uid := spec.UID("uid-" + name)
	r.Record(store.NodeKey(name), records.Node{Name: name, UID: uid})
	r.Record(store.FactsKey(name), records.NodeFacts{Name: name, UID: uid, Epoch: epoch})
	if on {
		r.Record(store.SessionKey(name), records.Session{Node: name, UID: uid, Boot: "b", ID: 5})
	}
}

// remembers is what a server found on its disk.
func (r *rig) remembers(server string, epoch int64, nodes ...spec.NodeName) {
	k := records.Known{At: spec.Sequence{Epoch: epoch}, Nodes: map[spec.NodeName]spec.UID{}}
	for _, name := range nodes {
		k.Nodes[name] = spec.UID("uid-" + name)
	}
	r.Record(store.KnownKey(server), k)
}

func (r *rig) restore(off ...string) error {
	_, err := r.api.Restore(r.ctx, &proto.RestoreRequest{Off: off})
	return err
}

func (r *rig) mustRestore(off ...string) {
	r.t.Helper()
	if err := r.restore(off...); err != nil {
		r.t.Fatal(err)
	}
}

// state is what Info says of the restore, without times.
func (r *rig) state() (st records.RestoreState) {
	r.t.Helper()
	info, err := r.api.Info(r.ctx, &proto.InfoRequest{})
	if err == nil {
		err = json.Unmarshal(info.GetRestoreJson(), &st)
	}
	if err != nil {
		r.t.Fatal(err)
	}
	st.At = time.Time{}
	return st
}

// brief is a state in one line: its nodes as name, state, how they are known.
func brief(st records.RestoreState) string {
	words := []string{st.State}
	for _, n := range st.Nodes {
		words = append(words, fmt.Sprintf("%s=%s/%s", n.Name, n.State, n.From))
	}
	return strings.Join(words, " ")
}

var held = records.Hold{Cause: "it is at revision 7, and revision 9 is known", By: "server s1"}

func TestARestoreIsOneTransaction(t *testing.T) {
	r := newRig(t)
	r.host("a", 1, true)
	r.host("b", 1, false)
	r.remembers("s1", 4, "a", "late")
	r.remembers("s2", 6, "far")
	r.Record(store.HoldKey, held)
	r.Put(store.LeaderKey, []byte("s1"))
	if got, want := brief(r.state()), "Held a=Waited/store b=Waited/store far=Waited/server late=Waited/server"; got != want {
		t.Errorf("held: got %s, want %s", got, want)
	}
	r.mustRestore()
	_, kvs, err := r.Store.Snapshot(r.ctx, "")
	if err != nil {
		t.Fatal(err)
	}
	at := map[string]store.KV{}
	for _, kv := range kvs {
		at[kv.Key] = kv
	}
	for _, gone := range []string{store.LeaderKey, store.HoldKey, store.SessionKey("a"), store.KnownKey("s1"), store.KnownKey("s2")} {
		if _, there := at[gone]; there {
			t.Errorf("%s is there still", gone)
		}
	}
	epoch, _ := strconv.ParseInt(string(at[store.EpochKey].Value), 10, 64)
	if epoch <= 6 {
		t.Errorf("the epoch is %d, and a server knew 6", epoch)
	}
	count, err := store.Decode[records.Count](at[store.CountKey])
	node := func(name spec.NodeName, from string) records.CountNode {
		return records.CountNode{Name: name, UID: spec.UID("uid-" + name), From: from}
	}
	want := records.Count{Epoch: epoch, By: "somebody", At: count.At, Nodes: []records.CountNode{
		node("a", records.FromStore), node("b", records.FromStore), node("far", records.FromServer), node("late", records.FromServer)}}
	if err != nil || !reflect.DeepEqual(count, want) {
		t.Errorf("count: got %+v (%v)\nwant %+v", count, err, want)
	}
	if at[store.EpochKey].Mod != at[store.CountKey].Mod {
		t.Error("the epoch and the count were written apart")
	}
	r.host("a", epoch, true)
	if got, want := brief(r.state()), "Counting a=Heard/store b=Waited/store far=Waited/server late=Waited/server"; got != want {
		t.Errorf("counting: got %s, want %s", got, want)
	}
}

// L10: nobody knows of the one when the other is declared.
func TestTwoRestoresOfOneBackupGetDifferentEpochs(t *testing.T) {
	epochs := map[string]bool{}
	for range 3 {
		r := newRig(t)
		r.host("a", 1, false)
		r.mustRestore()
		_, kvs, err := r.Store.Get(r.ctx, store.EpochKey)
		if err != nil {
			t.Fatal(err)
		}
		epochs[string(kvs[store.EpochKey].Value)] = true
	}
	if len(epochs) != 3 {
		t.Errorf("three restores got the epochs %v", epochs)
	}
}

func TestAnEpochIsHigherThanAllThatWereNamed(t *testing.T) {
	for name, prepare := range map[string]func(*rig){
		"by the store":           func(r *rig) { r.Put(store.EpochKey, []byte("9")) },
		"by a count":             func(r *rig) { r.Record(store.CountKey, records.Count{Epoch: 9}) },
		"by a server":            func(r *rig) { r.remembers("s2", 9) },
		"by the hello of a node": func(r *rig) { r.host("a", 9, false) },
		"by what a node heard": func(r *rig) {
			r.host("a", 1, false)
			r.Record(store.FactsKey("a"), records.NodeFacts{Name: "a", UID: "uid-a", Epoch: 1, Known: &records.Known{At: spec.Sequence{Epoch: 9}}})
		},
		"by a life that runs": func(r *rig) {
			r.host("a", 1, false)
			r.Record(store.FactsKey("a"), records.NodeFacts{Name: "a", UID: "uid-a", Epoch: 1, Strays: []spec.LifeID{{Token: spec.Token{Epoch: 9, Number: 1}}}})
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			prepare(r)
			r.Cache.Look(func(v cache.View) {
				d, err := declareDecision(v, "root", time.Time{}, 1)
				if err != nil || string(d.Then[0].Value) != "10" {
					t.Errorf("got epoch %s (%v), want 10", d.Then[0].Value, err)
				}
			})
		})
	}
}

func TestOneRestoreAtATime(t *testing.T) {
	r := newRig(t)
	r.host("a", 1, false)
	r.mustRestore()
	refused(t, r.restore(), codes.FailedPrecondition, "has declared a restore already")
	r.Record(store.HoldKey, held) // the store was restored once more, and that was noticed
	r.mustRestore()
	if got := r.state(); got.State != records.RestoreCounting {
		t.Errorf("got %s", brief(got))
	}
}

func TestANodeThatSaysHelloMeanwhileIsInTheCount(t *testing.T) {
	r := newRig(t)
	r.host("a", 1, false)
	var d decision
	r.Cache.Look(func(v cache.View) { d, _ = declareDecision(v, "root", time.Time{}, 1) })
	r.host("b", 1, false)
	r.Put(store.HellosKey, []byte("b"))
	if _, err := r.Store.Commit(r.ctx, d.Txn); err == nil {
		t.Fatal("a restore that was decided before node b joined was written, and does not wait for it")
	}
	r.mustRestore()
	if got, want := brief(r.state()), "Counting a=Waited/store b=Waited/store"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestARestoreOfMoreNodesThanOneTransactionHolds(t *testing.T) {
	r := newRig(t)
	const nodes = store.MaxOps + 30
	for i := range nodes {
		r.host(spec.NodeName(fmt.Sprintf("n%03d", i)), 1, true)
	}
	r.mustRestore()
	if _, kvs, err := r.Store.Snapshot(r.ctx, store.KindSession+"/"); err != nil || len(kvs) > 0 {
		t.Errorf("%d sessions of the epoch before are left (%v)", len(kvs), err)
	}
	if got := r.state(); len(got.Nodes) != nodes {
		t.Errorf("%d nodes are waited for, want %d", len(got.Nodes), nodes)
	}
}

func TestANodeIsExcusedByItsNameAndOnlyIfItIsSilent(t *testing.T) {
	r := newRig(t)
	r.host("a", 1, false)
	r.host("b", 1, false)
	r.remembers("s1", 1, "late")
	refused(t, r.restore("late"), codes.FailedPrecondition, "no restore is waiting for nodes")
	r.mustRestore()
	epoch := r.state().Epoch
	r.host("a", epoch, true)
	refused(t, r.restore("lat"), codes.NotFound, "the restore does not wait for a node lat; these are: b, late (remembered by a server)")
	refused(t, r.restore("a"), codes.NotFound, "the restore does not wait for a node a")
	refused(t, r.restore("late", "nobody"), codes.NotFound, "nobody")
	r.Record(store.SessionKey("b"), records.Session{Node: "b", UID: "uid-b", Boot: "b", ID: 6})
	refused(t, r.restore("b"), codes.FailedPrecondition, "node b has a session; a node that is on cannot be excused")
	if got, want := brief(r.state()), "Counting a=Heard/store b=Waited/store late=Waited/server"; got != want {
		t.Fatalf("a refusal changed something: got %s, want %s", got, want)
	}
	out, err := r.api.Restore(r.ctx, &proto.RestoreRequest{Off: []string{"late"}, DryRun: true})
	if err != nil || len(out.GetEffects()) != 1 || !strings.Contains(out.GetEffects()[0], "may be started a second time on another node") {
		t.Errorf("dry run: %v, %v", out.GetEffects(), err)
	}
	r.mustRestore("late")
	if got, want := brief(r.state()), "Counting a=Heard/store b=Waited/store late=Excused/server"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	r.host("late", epoch, true)
	if got, want := brief(r.state()), "Counting a=Heard/store b=Waited/store late=Heard/server"; got != want {
		t.Errorf("it is on after all: got %s, want %s", got, want)
	}
}
