package dispatch

import (
	"reflect"
	"testing"

	"github.com/stead-project/stead/proto"
	"github.com/stead-project/stead/proto/wire"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/store"
)

// joined says hello, and returns the node with the revision of the key hellos afterwards.
func (r *rig) joined(h hello) (*node, store.Rev) {
	n := r.connect(h)
	n.welcome()
	kv, _ := r.Get(store.HellosKey)
	return n, kv.Mod
}

func TestAHelloIsToldToOthersOnlyWhenTheNodeOrItsStraysAreNew(t *testing.T) {
	r := newRig(t)
	stray := spec.LifeID{ID: ident(7), Token: token(9)}
	_, first := r.joined(n1)
	if first == 0 {
		t.Fatal("a node joined, and the key hellos was not written")
	}
	if _, again := r.joined(n1); again != first {
		t.Errorf("nothing changed, and the key hellos was written")
	}
	with := n1
	with.holds = []spec.LifeID{stray}
	n, strays := r.joined(with)
	if strays <= first {
		t.Fatal("a node came with a life that the store does not know, and the key hellos was not written")
	}
	n.send(&proto.FromNode{Kind: &proto.FromNode_Inventory{Inventory: &proto.Inventory{Holdings: []*proto.Holding{
		{Id: wire.Identity(ident(8)), Token: wire.Token(token(3))},
	}}}})
	r.until("another stray within the session moves it", func() bool {
		kv, _ := r.Get(store.HellosKey)
		return kv.Mod > strays
	})
	facts, _ := r.Get(store.FactsKey("n1"))
	if kv, _ := r.Get(store.HellosKey); kv.Mod != facts.Mod {
		t.Errorf("hellos was written at %d, the strays at %d; want one transaction", kv.Mod, facts.Mod)
	}
}

// Of a node that is half known it is told, too: one that was let in by a join token and never
// came, and one whose record is gone.
func TestTheFirstHelloOfANodeIsToldToOthersWhateverIsKnownOfIt(t *testing.T) {
	for name, prepare := range map[string]func(*rig){
		"nothing":    func(*rig) {},
		"its record": func(r *rig) { r.Record(store.NodeKey("n1"), records.Node{Name: "n1", UID: "uid1"}) },
		"its facts":  func(r *rig) { r.Record(store.FactsKey("n1"), records.NodeFacts{Name: "n1", UID: "uid1", Epoch: 1}) },
		"facts that cannot be read": func(r *rig) {
			r.Record(store.NodeKey("n1"), records.Node{Name: "n1", UID: "uid1"})
			r.Put(store.FactsKey("n1"), []byte("{"))
		},
	} {
		r := newStill(t)
		prepare(r)
		r.admit()
		if _, told := r.Get(store.HellosKey); !told {
			t.Errorf("%s: the key hellos was not written", name)
		}
	}
}

func TestANodeThatJoinsWhileTheCountIsOpenIsCounted(t *testing.T) {
	known := records.CountNode{Name: "n1", UID: "uid1", From: records.FromStore}
	far := records.CountNode{Name: "z", UID: "uidz", From: records.FromServer}
	joined := records.CountNode{Name: "n2", UID: "uid2", From: records.FromHello}
	n2 := hello{node: "n2", uid: "uid2", boot: "b1", cluster: "c1"}
	for name, c := range map[string]struct {
		count records.Count
		hello hello
		want  []records.CountNode
	}{
		"it is new":                              {records.Count{Epoch: 1, Nodes: []records.CountNode{known, far}}, n2, []records.CountNode{known, joined, far}},
		"it is counted already":                  {records.Count{Epoch: 1, Nodes: []records.CountNode{known, far}}, n1, []records.CountNode{known, far}},
		"the count is done":                      {records.Count{Epoch: 1, Nodes: []records.CountNode{known}, Done: true}, n2, []records.CountNode{known}},
		"the count is of another epoch":          {records.Count{Epoch: 9, Nodes: []records.CountNode{known}}, n2, []records.CountNode{known}},
		"another machine has a name of the list": {records.Count{Epoch: 1, Nodes: []records.CountNode{known}}, hello{node: "n1", uid: "uid9", boot: "b1", cluster: "c1"}, []records.CountNode{known, {Name: "n1", UID: "uid9", From: records.FromHello}}},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			counted := r.Record(store.CountKey, c.count)
			r.joined(c.hello)
			kv, _ := r.Get(store.CountKey)
			if same := len(c.want) == len(c.count.Nodes); same != (kv.Mod == counted) {
				t.Errorf("it names as many nodes: %v, and was written at %d, then at %d", same, counted, kv.Mod)
			}
			got, err := store.Decode[records.Count](kv)
			if want := (records.Count{Epoch: c.count.Epoch, Nodes: c.want, Done: c.count.Done}); err != nil || !reflect.DeepEqual(got, want) {
				t.Errorf("got  %+v (%v)\nwant %+v", got, err, want)
			}
		})
	}
}

// The backup was made between the order to begin a life and its begin; who knows what took
// its place since.
func TestAfterARestoreNoLifeIsOrderedToBeginThatMayHaveBeenReplaced(t *testing.T) {
	held := n1
	held.holds = []spec.LifeID{{ID: ident(0), Token: token(10)}}
	open := records.Count{Epoch: 1, Nodes: []records.CountNode{{Name: "n2", UID: "uid2"}}}
	elsewhere := records.NodeFacts{Name: "n2", UID: "uid2", Epoch: 1, Strays: []spec.LifeID{{ID: ident(0), Token: token(11)}}}
	for name, c := range map[string]struct {
		key          string
		record, then any
		hello        hello
		now          int // lives that are told at once
	}{
		"while the count is open":                           {store.CountKey, open, records.Count{Epoch: 1, Done: true}, n1, 0},
		"but what the node has begun goes on being told":    {store.CountKey, open, nil, held, 1},
		"while another node runs a life of it":              {store.FactsKey("n2"), elsewhere, records.NodeFacts{Name: "n2", UID: "uid2", Epoch: 1}, n1, 0},
		"but not what the node has begun, whoever else did": {store.FactsKey("n2"), elsewhere, nil, held, 1},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			r.begin()
			r.Record(c.key, c.record)
			n := r.connect(c.hello)
			if got := n.lives(n.wanted()); len(got) != c.now {
				t.Errorf("got %v, want %d", got, c.now)
			}
			if c.then == nil {
				return
			}
			r.Record(c.key, c.then)
			if got := n.lives(n.wanted()); len(got) != 1 || got[0].Member.Token != token(10) {
				t.Errorf("afterwards: got %v, want the life", got)
			}
		})
	}
}

func TestALifeThatWasBegunBeforeTheBackupIsToldForAnAnswer(t *testing.T) {
	for _, c := range []struct {
		phase records.Phase
		token int64
		told  int
	}{{records.PhasePreparing, 10, 0}, {records.PhaseRunning, 10, 1}, {records.PhaseRunning, 9, 0}} { // the last: the life before
		r := newRig(t)
		r.begin()
		r.Record(store.ReportKey(ident(0)), records.Report{ID: ident(0), Token: token(c.token), Phase: c.phase})
		r.Record(store.CountKey, records.Count{Epoch: 1, Nodes: []records.CountNode{{Name: "n2", UID: "uid2"}}})
		n := r.connect(n1)
		if got := n.lives(n.wanted()); len(got) != c.told {
			t.Errorf("reported %s of token %d: got %v, want %d", c.phase, c.token, got, c.told)
		}
	}
}

func TestNoVolumeIsOrderedAwayWhileTheCountIsOpen(t *testing.T) {
	r := newRig(t)
	r.begin()
	r.Record(store.VolumeKey(ident(9), "data"), records.Volume{ID: ident(9), Claim: "data", UID: "v9", Node: "n1", Fate: records.FateReclaiming})
	r.Record(store.CountKey, records.Count{Epoch: 1, Nodes: []records.CountNode{{Name: "n2", UID: "uid2"}}})
	n := r.connect(n1)
	if w := n.wanted(); len(w.GetVolumesJson()) != 0 || len(w.GetOver()) != 0 {
		t.Errorf("it was told %v", w)
	}
	r.Record(store.CountKey, records.Count{Epoch: 1, Done: true})
	if w := n.wanted(); len(w.GetVolumesJson()) != 1 {
		t.Errorf("afterwards it was told %v", w)
	}
}
