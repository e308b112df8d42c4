package dispatch

import (
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/stead-project/stead/proto"
	"github.com/stead-project/stead/proto/wire"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/store"
	"github.com/stead-project/stead/store/memstore"
)

// failCommits makes every commit from now on fail; applied: all the same done.
func (r *rig) failCommits(err error, applied bool) {
	r.Store.Fail(func(c memstore.Call) memstore.Fault {
		if c.Method == "Commit" {
			return memstore.Fault{Err: err, Applied: applied}
		}
		return memstore.Fault{}
	})
}

func TestTheFirstListIsWholeAndOfARevisionAfterTheSession(t *testing.T) {
	r := newRig(t)
	r.begin()
	n := r.connect(n1)
	n.welcome()
	session, _ := r.Get(store.SessionKey("n1"))
	w := n.wanted()
	if !w.GetFull() || w.GetSequence().GetEpoch() != 1 || w.GetSequence().GetRev() < int64(session.Mod) {
		t.Fatalf("got full=%v sequence %v, session at %d", w.GetFull(), w.GetSequence(), session.Mod)
	}
	lives := n.lives(w)
	if len(lives) != 1 || lives[0].Member.Token != token(10) || lives[0].Service != "dbs" ||
		lives[0].Domain != "cluster.local" || len(lives[0].Template.Spec.Containers) != 1 {
		t.Fatalf("got %+v", lives)
	}
}

func TestChangesAreToldInOrderAndOnlyWhatDiffers(t *testing.T) {
	r := newRig(t)
	r.begin()
	n := r.connect(n1)
	first := n.wanted()
	r.live(1, 20, "n1", "uid1")
	second := n.wanted()
	if second.GetFull() || len(n.lives(second)) != 1 || n.lives(second)[0].Member.ID != ident(1) {
		t.Fatalf("got %v", second)
	}
	m := testMember(0, 10, "n1", "uid1")
	m.Goal, m.StopReason = records.GoalStop, records.ReasonScaleDown
	r.Record(store.MemberKey(ident(0)), m)
	third := n.wanted()
	if len(n.lives(third)) != 1 || n.lives(third)[0].Member.Goal != records.GoalStop {
		t.Fatalf("got %v", third)
	}
	for _, pair := range [][2]*proto.Wanted{{first, second}, {second, third}} {
		if wire.ToSequence(pair[0].GetSequence()).Compare(wire.ToSequence(pair[1].GetSequence())) >= 0 {
			t.Fatalf("the sequence went from %v to %v", pair[0].GetSequence(), pair[1].GetSequence())
		}
	}
}

func TestAReconnectedNodeHearsEverythingAgain(t *testing.T) {
	r := newRig(t)
	r.begin()
	n := r.connect(n1)
	n.wanted()
	n.cancel()
	r.live(1, 20, "n1", "uid1")
	w := r.connect(n1).wanted()
	if !w.GetFull() || len(n.lives(w)) != 2 {
		t.Fatalf("got %v", w)
	}
}

func TestLivesOfTheMachineThatHadTheNameBeforeAreNotTold(t *testing.T) {
	r := newRig(t)
	r.begin()
	r.live(1, 20, "n1", "the-machine-before")
	w := r.connect(n1).wanted()
	if len(w.GetLivesJson()) != 1 {
		t.Fatalf("got %s", w.GetLivesJson())
	}
}

func TestAHoldingWithANewerTokenIsOverAndOneThatIsUnknownIsStray(t *testing.T) {
	r := newRig(t)
	r.begin()
	r.live(1, 20, "n2", "uid2") // db-1 lives elsewhere now
	unknown := spec.LifeID{ID: spec.Identity{Namespace: "default", Set: "ghost"}, Token: token(3)}
	ahead := spec.LifeID{ID: ident(1), Token: token(30)} // the store was restored, it knows an older one
	h := n1
	h.holds = []spec.LifeID{{ID: ident(0), Token: token(10)}, {ID: ident(1), Token: token(12)}, ahead, unknown}
	n := r.connect(h)
	w := n.wanted()
	if len(w.GetOver()) != 1 || wire.ToIdentity(w.GetOver()[0].GetId()) != ident(1) || wire.ToToken(w.GetOver()[0].GetToken()) != token(12) {
		t.Fatalf("over: got %v", w.GetOver())
	}
	facts := func() records.NodeFacts {
		kv, _ := r.Get(store.FactsKey("n1"))
		f, err := store.Decode[records.NodeFacts](kv)
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	if got := facts().Strays; len(got) != 2 || got[0] != ahead || got[1] != unknown {
		t.Fatalf("strays: got %v", got)
	}
	n.report(records.Report{ID: unknown.ID, Token: unknown.Token, Seq: 1, Phase: records.PhaseStopped})
	r.until("the stray that ended is no stray", func() bool { return len(facts().Strays) == 1 })
	n.send(&proto.FromNode{Kind: &proto.FromNode_Inventory{Inventory: &proto.Inventory{}}})
	r.until("a new inventory counts", func() bool { return len(facts().Strays) == 0 })
}

func TestAnEmptyStoreOrdersNothing(t *testing.T) {
	r := newRig(t)
	h := n1
	h.holds = []spec.LifeID{{ID: ident(0), Token: token(10)}}
	w := r.connect(h).wanted()
	if len(w.GetLivesJson()) != 0 || len(w.GetOver()) != 0 {
		t.Fatalf("got %v", w)
	}
}

func TestSecretsReachOnlyNodesThatRunALifeNamingThem(t *testing.T) {
	r := newRig(t)
	r.begin()
	sealed, err := r.key.Seal("default", "pass", map[string][]byte{"password": []byte("hunter2")})
	if err != nil {
		t.Fatal(err)
	}
	other, err := r.key.Seal("default", "unnamed", map[string][]byte{"password": []byte("swordfish")})
	if err != nil {
		t.Fatal(err)
	}
	r.Record(store.SecretKey("default", "unnamed"), records.SecretRecord{Meta: records.Meta{Namespace: "default", Name: "unnamed"}, Sealed: other})
	files := func(n *node) []records.Files {
		m := n.next("files", func(m *proto.ToNode) bool { return m.GetFiles() != nil })
		f, err := wire.ToDocuments[records.Files](m.GetFiles().GetFilesJson())
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	a := r.connect(n1)
	if got := files(a); len(got) != 1 || got[0].Name != "pass" || !got[0].Absent {
		t.Fatalf("got %+v, want pass absent", got)
	}
	r.Record(store.SecretKey("default", "pass"), records.SecretRecord{Meta: records.Meta{Namespace: "default", Name: "pass"}, Type: spec.SecretDockercfg, Keys: []string{"password"}, Sealed: sealed})
	if got := files(a); len(got) != 1 || string(got[0].Content["password"]) != "hunter2" || got[0].Absent || got[0].Type != spec.SecretDockercfg {
		t.Fatalf("got %+v, want pass opened, with its type", got)
	}
	b := r.connect(hello{node: "n2", uid: "uid2", boot: "b2"})
	if got := files(b); len(got) != 0 {
		t.Fatalf("a node without lives got %+v", got)
	}
	r.Commit(store.Del(store.SecretKey("default", "pass")))
	if got := files(a); len(got) != 1 || !got[0].Absent {
		t.Fatalf("got %+v, want pass absent again", got)
	}
	if logs := r.logs.String(); strings.Contains(logs, "hunter2") || strings.Contains(logs, "swordfish") {
		t.Fatal("the log tells a secret")
	}
}

func TestASecretThatDoesNotOpenIsLeftOutAndNamed(t *testing.T) {
	r := newRig(t)
	r.begin()
	r.Record(store.SecretKey("default", "pass"), records.SecretRecord{Meta: records.Meta{Namespace: "default", Name: "pass"}, Sealed: []byte("damaged, and long enough to try")})
	n := r.connect(n1)
	m := n.next("files", func(m *proto.ToNode) bool { return m.GetFiles() != nil })
	if len(m.GetFiles().GetFilesJson()) != 0 {
		t.Fatalf("got %v", m)
	}
	r.until("the log names it", func() bool { return strings.Contains(r.logs.String(), "secret default/pass") })
}

func TestPicturesFollowReadiness(t *testing.T) {
	r := newRig(t)
	r.begin()
	n := r.connect(n1)
	picture := func() records.Snapshot {
		m := n.next("pictures", func(m *proto.ToNode) bool { return len(m.GetPictures().GetPicturesJson()) > 0 })
		p, err := wire.ToDocuments[records.Snapshot](m.GetPictures().GetPicturesJson())
		if err != nil || len(p) != 1 {
			t.Fatalf("got %v, %v", p, err)
		}
		return p[0]
	}
	before := picture()
	if len(before.Peers) != 1 || before.Peers[0].Ready || before.Peers[0].FQDN != "db-0.dbs.default.svc.cluster.local" {
		t.Fatalf("got %+v", before)
	}
	n.report(records.Report{ID: ident(0), Token: token(10), Seq: 1, Phase: records.PhaseRunning, Ready: true})
	after := picture()
	if !after.Peers[0].Ready || after.Sequence.Compare(before.Sequence) <= 0 {
		t.Fatalf("got %+v after %+v", after, before)
	}
	r.Commit(store.Del(store.SetKey(refDB)))
	if gone := picture(); !gone.Gone || len(gone.Peers) != 0 {
		t.Fatalf("got %+v, want gone", gone)
	}
}

func TestASilentHelloIsAnError(t *testing.T) {
	r := newRig(t)
	stream, err := r.client.Session(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := stream.Send(&proto.FromNode{Kind: &proto.FromNode_Ping{Ping: &proto.Ping{Id: 1}}}); err != nil {
		t.Fatal(err)
	}
	if _, err := stream.Recv(); status.Code(err) != codes.InvalidArgument {
		t.Fatalf("got %v, want INVALID_ARGUMENT", err)
	}
}

func TestAfterTheWorldWasLoadedAnewEverythingIsToldAgain(t *testing.T) {
	r := newRig(t)
	r.begin()
	n := r.connect(n1)
	first := n.wanted()
	r.Store.Break()
	again := n.wanted()
	if !again.GetFull() || len(n.lives(again)) != 1 ||
		wire.ToSequence(again.GetSequence()).Compare(wire.ToSequence(first.GetSequence())) < 0 {
		t.Fatalf("got full=%v at %v after %v", again.GetFull(), again.GetSequence(), first.GetSequence())
	}
	n.next("all pictures", func(m *proto.ToNode) bool { return m.GetPictures().GetFull() })
	n.next("all pictures again", func(m *proto.ToNode) bool { return m.GetPictures().GetFull() })
}

func TestANodeThatCannotReadLosesNoPictureOfASetThatCameAndWent(t *testing.T) {
	r := newRig(t)
	n := r.connect(n1)
	n.wanted()
	r.begin()
	r.Commit(store.Del(store.SetKey(refDB)))
	r.Record(store.SetKey(refDB), testSet(2))
	n.next("the newest picture", func(m *proto.ToNode) bool {
		p, err := wire.ToDocuments[records.Snapshot](m.GetPictures().GetPicturesJson())
		return err == nil && len(p) == 1 && p[0].Replicas == 2 && !p[0].Gone
	})
}

// The store says that this very life is over, the node says that it runs: nobody
// has a newer one, so it runs on and blocks its identity.
func TestAHoldingThatWasForgottenWithoutASuccessorIsStray(t *testing.T) {
	r := newRig(t)
	r.begin()
	r.Commit(store.Del(store.MemberKey(ident(0))))
	h := n1
	h.holds = []spec.LifeID{{ID: ident(0), Token: token(10)}}
	w := r.connect(h).wanted()
	kv, _ := r.Get(store.FactsKey("n1"))
	facts, err := store.Decode[records.NodeFacts](kv)
	if err != nil || len(w.GetOver()) != 0 || len(facts.Strays) != 1 || facts.Strays[0] != h.holds[0] {
		t.Fatalf("over %v, strays %v, %v", w.GetOver(), facts.Strays, err)
	}
}
