package dispatch

import (
	"testing"

	"github.com/stead-project/stead/proto"
	"github.com/stead-project/stead/proto/wire"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/store"
)

// tells writes a page of the history of db with the numbers from..to.
func (r *rig) tells(page, from, to int64) store.Rev {
	p := records.HistoryPage{Ref: refDB, SetUID: "u1", Page: page}
	for n := from; n <= to; n++ {
		p.Changes = append(p.Changes, records.Change{Epoch: 1, Number: n, Kind: records.ChangeReady, Member: "db-0"})
	}
	return r.Record(store.HistoryPageKey(refDB, page), p)
}

// numbers are those of the next history that the node is told.
func (n *node) numbers() (list []int64) {
	n.r.t.Helper()
	m := n.next("a history", func(m *proto.ToNode) bool { return len(m.GetPictures().GetHistoriesJson()) > 0 })
	told, err := wire.ToDocuments[records.History](m.GetPictures().GetHistoriesJson())
	if err != nil || len(told) != 1 || told[0].Ref != refDB {
		n.r.t.Fatalf("got %+v, %v", told, err)
	}
	for _, c := range told[0].Changes {
		list = append(list, c.Number)
	}
	return list
}

func (n *node) wantNumbers(from, to int64) {
	n.r.t.Helper()
	got := n.numbers()
	if got[0] != from || got[len(got)-1] != to || int64(len(got)) != to-from+1 {
		n.r.t.Fatalf("got the changes %v, want %d to %d", got, from, to)
	}
}

func TestANodeHearsOnceOfEachChangeOfTheSetsItHasMembersOf(t *testing.T) {
	r := newRig(t)
	r.begin()
	r.tells(0, 1, 2)
	n := r.connect(n1)
	n.wantNumbers(1, 2)
	r.tells(0, 1, 4)
	n.wantNumbers(3, 4)
	r.tells(1, 5, 5)
	n.wantNumbers(5, 5)
	n.cancel()
	r.tells(2, 6, 300)
	again := r.connect(n1)
	again.wantNumbers(300-records.HistoryWindow+1, 300)

	other := r.connect(hello{node: "n2", uid: "uid2", boot: "b1", cluster: "c1"})
	other.next("all pictures", func(m *proto.ToNode) bool {
		if len(m.GetPictures().GetHistoriesJson()) > 0 {
			t.Error("a node without a member of the set hears of its history")
		}
		return m.GetPictures().GetFull()
	})
	r.live(1, 20, "n2", "uid2")
	other.wantNumbers(300-records.HistoryWindow+1, 300)
}

func TestAPictureNamesTheLastChangeThatItIncludes(t *testing.T) {
	r := newRig(t)
	r.begin()
	n := r.connect(n1)
	r.tells(0, 1, 7)
	n.next("a picture that includes change 7", func(m *proto.ToNode) bool {
		p, err := wire.ToDocuments[records.Snapshot](m.GetPictures().GetPicturesJson())
		return err == nil && len(p) == 1 && p[0].Told == records.ChangeID{Epoch: 1, Number: 7}
	})
}

// pongs pings until an answer says what is wanted, and returns the messages before it.
func (n *node) pongs(current bool) (before []*proto.ToNode) {
	n.r.t.Helper()
	for id := int64(1); ; id++ {
		n.ping(id)
		m := n.next("pong", func(m *proto.ToNode) bool {
			if m.GetPong() == nil {
				before = append(before, m)
			}
			return m.GetPong().GetId() == id
		})
		if m.GetPong().GetCurrent() == current {
			return before
		}
	}
}

func TestACurrentPongComesAfterAllThatWasCommittedBeforeThePing(t *testing.T) {
	r := newRig(t)
	r.begin()
	n := r.connect(n1)
	for replicas := int32(2); replicas < 12; replicas++ {
		// The world may or may not have seen it when the ping comes.
		if _, err := r.Store.Commit(t.Context(), store.Txn{Then: []store.Op{store.Put(store.SetKey(refDB), store.Encode(testSet(replicas)))}}); err != nil {
			t.Fatal(err)
		}
		seen := 0
		for _, m := range n.pongs(true) {
			told, err := wire.ToDocuments[records.Snapshot](m.GetPictures().GetPicturesJson())
			if err != nil {
				t.Fatal(err)
			}
			for _, p := range told {
				seen = p.Replicas
			}
		}
		if seen != int(replicas) {
			t.Fatalf("a current pong came after a picture of %d replicas; %d were committed before the ping", seen, replicas)
		}
	}
}

func TestAServerWhoseWatchLagsSaysSo(t *testing.T) {
	r := newRig(t)
	r.begin()
	n := r.connect(n1)
	n.pongs(true)
	r.blindWatch()
	if _, err := r.Store.Commit(t.Context(), store.Txn{Then: []store.Op{store.Put(store.SetKey(refDB), store.Encode(testSet(2)))}}); err != nil {
		t.Fatal(err)
	}
	n.pongs(false)
	n.ping(1000)
	if m := n.next("pong", func(m *proto.ToNode) bool { return m.GetPong() != nil }); m.GetPong().GetCurrent() {
		t.Error("a server that does not see what was committed says that its node is up to date")
	}
	r.Store.Fail(nil)
	n.pongs(true)
}
