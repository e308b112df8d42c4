package engine

import (
	"errors"
	"strings"
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

func TestInitTakesTheIdentityThatAnotherServerGave(t *testing.T) {
	s := memstore.New()
	var other string
	s.Fail(func(c memstore.Call) memstore.Fault {
		if c.Method == "Commit" && other == "" {
			other = "on its way"
			id, _, err := Init(t.Context(), s)
			other = id
			if err != nil {
				t.Error(err)
			}
		}
		return memstore.Fault{}
	})
	if id, _, err := Init(t.Context(), s); err != nil || id != other {
		t.Errorf("got %q, %v; want %q", id, err, other)
	}
}

func TestInitRefusesADamagedStore(t *testing.T) {
	cluster := store.Put(store.ClusterKey, []byte("c"))
	epoch := func(text string) store.Op { return store.Put(store.EpochKey, []byte(text)) }
	for name, c := range map[string]struct {
		ops  []store.Op
		want string
	}{
		"no epoch":           {[]store.Op{cluster}, "restore it from a backup"},
		"no cluster":         {[]store.Op{epoch("1")}, "restore it from a backup"},
		"no number":          {[]store.Op{cluster, epoch("x")}, `invalid epoch "x"`},
		"none has it yet":    {[]store.Op{cluster, epoch("0")}, `invalid epoch "0"`},
		"more than a number": {[]store.Op{cluster, epoch("99999999999999999999")}, `invalid epoch "99999999999999999999"`},
	} {
		s := memstore.New()
		if _, err := s.Commit(t.Context(), store.Txn{Then: c.ops}); err != nil {
			t.Fatal(err)
		}
		if id, _, err := Init(t.Context(), s); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got cluster %q, %v; want %s", name, id, err, c.want)
		}
	}
}

func TestInitTellsThatTheStoreIsAway(t *testing.T) {
	for _, method := range []string{"Get", "Commit"} {
		s := memstore.New()
		s.Fail(func(c memstore.Call) (f memstore.Fault) {
			if c.Method == method {
				f.Err = store.ErrUnavailable
			}
			return f
		})
		if id, _, err := Init(t.Context(), s); !errors.Is(err, store.ErrUnavailable) {
			t.Errorf("%s: got cluster %q, %v", method, id, err)
		}
	}
}
