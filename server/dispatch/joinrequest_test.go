package dispatch

import (
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/stead-project/stead/proto"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/store"
	"github.com/stead-project/stead/store/memstore"
)

func TestAFirstHelloJoinsTheNode(t *testing.T) {
	r := newRig(t)
	h := n1
	h.cluster = ""
	w := r.connect(h).welcome()
	if w.GetCluster() != "c1" || w.GetEpoch() != 1 || w.GetTtlMillis() != (10*patience).Milliseconds() || w.GetServer() != "s1" ||
		w.GetDomain() != "cluster.local" || w.GetCidr() != "10.88.0.0/16" || w.GetSession() == 0 {
		t.Fatalf("got %v", w)
	}
	kv, _ := r.Get(store.NodeKey("n1"))
	if n, err := store.Decode[records.Node](kv); err != nil || n.UID != "uid1" {
		t.Fatalf("node: got %+v, %v", n, err)
	}
	kv, _ = r.Get(store.SessionKey("n1"))
	se, err := store.Decode[records.Session](kv)
	if err != nil || se != (records.Session{Node: "n1", UID: "uid1", Boot: "b1", ID: spec.SessionID(w.GetSession()), Server: "s1"}) {
		t.Fatalf("session: got %+v, %v", se, err)
	}
	if kv.Lease != store.LeaseID(w.GetSession()) {
		t.Fatal("the session key has no lease")
	}
	kv, _ = r.Get(store.FactsKey("n1"))
	if f, err := store.Decode[records.NodeFacts](kv); err != nil || f.CPUMillis != 2000 || f.Boot != "b1" || f.UID != "uid1" {
		t.Fatalf("facts: got %+v, %v", f, err)
	}
}

// SAFETY S9: a node is a uid, not a name, and its old session must end before another boot gets one.
func TestAHelloIsRefusedAndChangesNothing(t *testing.T) {
	for name, c := range map[string]struct {
		hello hello
		code  codes.Code
		text  string
	}{
		"another uid under the name":           {hello{node: "n1", uid: "other", boot: "b9", cluster: "c1"}, codes.AlreadyExists, "another machine"},
		"another cluster":                      {hello{node: "n1", uid: "uid1", boot: "b1", cluster: "c2"}, codes.FailedPrecondition, "cluster c2"},
		"another boot while the session lives": {hello{node: "n1", uid: "uid1", boot: "b2", cluster: "c1"}, codes.FailedPrecondition, "try again"},
		"another name for the same machine":    {hello{node: "n2", uid: "uid1", boot: "b1", cluster: "c1"}, codes.FailedPrecondition, "joined as n1"},
		"another cluster, and it knows more of that": {hello{node: "n1", uid: "uid1", boot: "b1", cluster: "c2",
			known: records.Known{At: spec.Sequence{Epoch: 2, Rev: 1}}}, codes.FailedPrecondition, "cluster c2"},
		"no uid": {hello{node: "n1", boot: "b1"}, codes.InvalidArgument, "must name node, uid and boot"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			first := r.connect(n1)
			first.welcome()
			before, kvs, err := r.Store.Snapshot(t.Context(), "")
			if err != nil {
				t.Fatal(err)
			}
			_, _, err = r.server.join(t.Context(), c.hello.message())
			if status.Code(err) != c.code || !strings.Contains(err.Error(), c.text) {
				t.Fatalf("got %v, want %v %q", err, c.code, c.text)
			}
			if after, _, _ := r.Store.Snapshot(t.Context(), ""); after != before {
				t.Fatalf("the store moved from %d to %d (%d keys)", before, after, len(kvs))
			}
			first.ping(1)
			if first.pong() != 1 {
				t.Fatal("the living session was hurt")
			}
		})
	}
}

func TestTheSameBootTakesItsSessionOver(t *testing.T) {
	r := newRig(t)
	first := r.connect(n1)
	old := first.welcome().GetSession()
	second := r.connect(n1)
	if now := second.welcome().GetSession(); now == old {
		t.Fatal("the session was not replaced")
	}
	if err := first.ended(); status.Code(err) != codes.Aborted {
		t.Fatalf("got %v, want ABORTED", err)
	}
	second.ping(1)
	if second.pong() != 1 {
		t.Fatal("no pong")
	}
}

// DNS keeps its last answer while one session takes over from another, and when those of most
// nodes were gone at once; a node that was away alone reports first (SAFETY S15).
func TestASessionSaysWhetherTheLastAnswerStays(t *testing.T) {
	r := newRig(t)
	hellos := []hello{n1, {node: "n2", uid: "uid2", boot: "b1", cluster: "c1"}, {node: "n3", uid: "uid3", boot: "b1", cluster: "c1"}}
	resumed := func(i int) bool {
		r.connect(hellos[i]).welcome()
		kv, _ := r.Get(store.SessionKey(spec.NodeName(hellos[i].node)))
		se, err := store.Decode[records.Session](kv)
		if err != nil {
			t.Fatal(err)
		}
		return se.Resumed
	}
	for i := range hellos {
		if resumed(i) {
			t.Fatalf("node %d: its first session resumes none", i+1)
		}
	}
	if !resumed(0) {
		t.Fatal("the second session took over from the first")
	}
	r.Commit(store.Del(store.SessionKey("n1")))
	if resumed(0) {
		t.Fatal("the node was away, alone")
	}
	r.Commit(store.Del(store.SessionKey("n1")), store.Del(store.SessionKey("n2")))
	if !resumed(0) {
		t.Fatal("most nodes were away at once")
	}
}

func TestASessionOutlivesItsStreamUntilItsLeaseEnds(t *testing.T) {
	r := newRig(t)
	n := r.connect(n1)
	n.welcome()
	n.cancel()
	r.until("the server lets go of the stream", func() bool { return r.server.Sessions() == 0 })
	if _, ok := r.Get(store.SessionKey("n1")); !ok {
		t.Fatal("the session went with its stream")
	}
	again := r.connect(n1)
	again.welcome()
	r.stop()
	if err := again.ended(); status.Code(err) != codes.Unavailable {
		t.Fatalf("got %v, want UNAVAILABLE", err)
	}
	<-r.done
	if _, ok := r.Get(store.SessionKey("n1")); !ok {
		t.Fatal("the session went with its server")
	}
}

func TestASessionWhoseKeyWentIsAborted(t *testing.T) {
	r := newRig(t)
	n := r.connect(n1)
	n.welcome()
	r.Commit(store.Del(store.SessionKey("n1")))
	if err := n.ended(); status.Code(err) != codes.Aborted {
		t.Fatalf("got %v, want ABORTED", err)
	}
}

func TestAJoinThatCannotBeWrittenLeavesNoSession(t *testing.T) {
	r := newRig(t)
	r.failCommits(store.ErrUnknown, true)
	err := r.connect(n1).ended()
	if status.Code(err) != codes.Unavailable {
		t.Fatalf("got %v, want UNAVAILABLE", err)
	}
	r.Store.Fail(nil)
	if _, ok := r.Get(store.SessionKey("n1")); ok {
		t.Fatal("a session that nobody knows of was left")
	}
}

// Two hellos that both saw no session: the one that commits later must look again.
func TestASessionThatBeganMeanwhileIsNotOverwritten(t *testing.T) {
	r := newRig(t)
	r.connect(n1).welcome()
	r.Commit(store.Del(store.SessionKey("n1")))
	other := records.Session{Node: "n1", UID: "uid1", Boot: "b2", ID: 999, Server: "s2"}
	raced := false
	r.Store.Fail(func(c memstore.Call) memstore.Fault {
		if c.Method == "Commit" && !raced {
			raced = true
			if _, err := r.Store.Commit(t.Context(), store.Txn{Then: []store.Op{store.Put(store.SessionKey("n1"), store.Encode(other))}}); err != nil {
				t.Error(err)
			}
		}
		return memstore.Fault{}
	})
	if err := r.connect(n1).ended(); status.Code(err) != codes.Aborted || !raced {
		t.Fatalf("got %v (raced %v), want ABORTED", err, raced)
	}
	kv, _ := r.Get(store.SessionKey("n1"))
	if got, err := store.Decode[records.Session](kv); err != nil || got != other {
		t.Fatalf("got %+v, %v", got, err)
	}
}

func TestJoinTellsTheClusterAndWritesNothing(t *testing.T) {
	r := newRig(t)
	before, _, err := r.Store.Get(t.Context(), store.ClusterKey)
	if err != nil {
		t.Fatal(err)
	}
	h := &proto.Hello{Node: "n1", Uid: "uid1", Boot: "b1", FactsJson: []byte("{}")}
	w, err := r.server.Join(t.Context(), h)
	if err != nil || w.GetCluster() != "c1" || w.GetSession() != 0 {
		t.Fatalf("got %v, %v", w, err)
	}
	if after, _, _ := r.Store.Get(t.Context(), store.ClusterKey); after != before {
		t.Fatal("join wrote")
	}
	h.Cluster = "c2"
	if _, err := r.server.Join(t.Context(), h); status.Code(err) != codes.FailedPrecondition {
		t.Fatalf("got %v, want FAILED_PRECONDITION", err)
	}
}
