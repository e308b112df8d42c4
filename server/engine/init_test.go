package engine

import (
	"sync"
	"testing"

	"github.com/stead-project/stead/store"
	"github.com/stead-project/stead/store/memstore"
)

func TestAllServersGiveAFreshStoreOneIdentity(t *testing.T) {
	s := memstore.New()
	ids := make([]string, 8)
	var group sync.WaitGroup
	for i := range ids {
		group.Go(func() {
			id, epoch, err := Init(t.Context(), s)
			if err != nil || epoch != 1 || len(id) != 32 {
				t.Errorf("got %q, %d, %v", id, epoch, err)
			}
			ids[i] = id
		})
	}
	group.Wait()
	for _, id := range ids {
		if id != ids[0] {
			t.Errorf("ids %q; want one", ids)
		}
	}
}

func TestInitSurvivesAnAnswerThatIsLost(t *testing.T) {
	for _, applied := range []bool{false, true} {
		s := memstore.New()
		first := true
		s.Fail(func(c memstore.Call) memstore.Fault {
			if c.Method != "Commit" || !first {
				return memstore.Fault{}
			}
			first = false
			return memstore.Fault{Err: store.ErrUnknown, Applied: applied}
		})
		if id, _, err := Init(t.Context(), s); err != nil || id == "" {
			t.Errorf("applied %v: got %q, %v", applied, id, err)
		}
	}
}

func TestInitRefusesADamagedStore(t *testing.T) {
	for name, op := range map[string]store.Op{
		"no epoch":   store.Put(store.ClusterKey, []byte("c")),
		"no cluster": store.Put(store.EpochKey, []byte("1")),
	} {
		s := memstore.New()
		if _, err := s.Commit(t.Context(), store.Txn{Then: []store.Op{op}}); err != nil {
			t.Fatal(err)
		}
		if id, _, err := Init(t.Context(), s); err == nil {
			t.Errorf("%s: got cluster %q; want it refused", name, id)
		}
	}
	s := memstore.New()
	if _, err := s.Commit(t.Context(), store.Txn{Then: []store.Op{store.Put(store.ClusterKey, []byte("c")), store.Put(store.EpochKey, []byte("x"))}}); err != nil {
		t.Fatal(err)
	}
	if _, _, err := Init(t.Context(), s); err == nil {
		t.Error("an epoch that is none is taken")
	}
}
