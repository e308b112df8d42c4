package store_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/spec/changes"
	"github.com/stead-project/stead/store"
	"github.com/stead-project/stead/store/memstore"
)

var aMember = spec.Identity{Namespace: "default", Set: "db", Ordinal: 0}

// formatOf is what the store says of its format, and the revision at which it was written.
func formatOf(t *testing.T, s store.Store) (*records.Format, store.Rev) {
	t.Helper()
	_, kvs, err := s.Get(t.Context(), store.FormatKey)
	if err != nil {
		t.Fatal(err)
	}
	f, err := store.DecodeIn[records.Format](kvs, store.FormatKey)
	if err != nil {
		t.Fatal(err)
	}
	return f, kvs[store.FormatKey].Mod
}

func putAll(ctx context.Context, s store.Store, ops ...store.Op) (store.Rev, error) {
	return s.Commit(ctx, store.Txn{Then: ops})
}

func TestTheFormatRisesWithTheFirstOfAKindThatIsNew(t *testing.T) {
	for name, key := range map[string]string{
		"a move": store.MoveKey(aMember), "a request for one": store.MoveRequestKey(aMember), "a server": store.ServerKey("s1"),
		"a ResourceQuota": store.QuotaKey("default", "team"), "the key of Secrets": store.KeyringKey,
	} {
		t.Run(name, func(t *testing.T) {
			below := memstore.New()
			s := store.NewFormatted(below)
			if _, err := putAll(t.Context(), s, store.Put(store.MemberKey(aMember), []byte("{}")), store.Del(key)); err != nil {
				t.Fatal(err)
			}
			if f, _ := formatOf(t, below); f != nil {
				t.Errorf("what every server knows raised the format to %+v", f)
			}
			rev, err := putAll(t.Context(), s, store.Put(key, []byte("{}")))
			if err != nil {
				t.Fatal(err)
			}
			f, at := formatOf(t, below)
			if f == nil || f.Lowest != 2 || f.Why == "" || at != rev {
				t.Errorf("the format is %+v of revision %d; want 2, of the same transaction, %d", f, at, rev)
			}
			for _, again := range []store.Store{s, store.NewFormatted(below)} { // of this server, and of the next one
				if _, err := putAll(t.Context(), again, store.Put(key, []byte("{}"))); err != nil {
					t.Fatal(err)
				}
			}
			if _, later := formatOf(t, below); later != at {
				t.Error("it is written again and again")
			}
		})
	}
}

func TestTheFormatRisesWithTheFirstSetOfAKindThatIsNew(t *testing.T) {
	for name, change := range map[string]func(*records.Set){
		"whose members differ":          func(set *records.Set) { set.Spec.Members = spec.Differences{{Args: []string{"x"}}} },
		"whose members change in place": func(set *records.Set) { set.Spec.UpdateStrategy.InPlace = []changes.Kind{changes.Image} },
	} {
		t.Run(name, func(t *testing.T) {
			below := memstore.New()
			s := store.NewFormatted(below)
			set := records.Set{Annotations: map[string]string{"note": `"members":["inPlace":[`}, Edits: []records.Edit{{Changes: []string{`spec."members":[ "inPlace":[`}}}}
			if _, err := putAll(t.Context(), s, store.Put(store.SetKey(aMember.Ref()), store.Encode(set))); err != nil {
				t.Fatal(err)
			}
			if f, _ := formatOf(t, below); f != nil {
				t.Errorf("a set that every server knows raised the format to %+v", f)
			}
			change(&set)
			rev, err := putAll(t.Context(), s, store.Put(store.SetKey(aMember.Ref()), store.Encode(set)))
			if err != nil {
				t.Fatal(err)
			}
			if f, at := formatOf(t, below); f == nil || f.Lowest != 2 || at != rev {
				t.Errorf("the format is %+v of revision %d; want 2, of the same transaction, %d", f, at, rev)
			}
		})
	}
}

func TestTheFormatNeverFalls(t *testing.T) {
	below := memstore.New()
	later := records.Format{Lowest: store.Format + 1, Why: "something else"}
	if _, err := putAll(t.Context(), below, store.Put(store.FormatKey, store.Encode(later))); err != nil {
		t.Fatal(err)
	}
	if _, err := putAll(t.Context(), store.NewFormatted(below), store.Put(store.ServerKey("s1"), []byte("{}"))); err != nil {
		t.Fatal(err)
	}
	if f, _ := formatOf(t, below); f == nil || *f != later {
		t.Errorf("it is %+v", f)
	}
}

// Another server raises it between the look and the write: nothing is written over it.
func TestTwoServersRaiseTheFormatOnce(t *testing.T) {
	below := memstore.New()
	raced := false
	below.Fail(func(c memstore.Call) memstore.Fault {
		if c.Method == "Commit" && !raced {
			raced = true
			if _, err := putAll(t.Context(), below, store.Put(store.FormatKey, store.Encode(records.Format{Lowest: 9}))); err != nil {
				t.Error(err)
			}
		}
		return memstore.Fault{}
	})
	if _, err := putAll(t.Context(), store.NewFormatted(below), store.Put(store.ServerKey("s1"), []byte("{}"))); !errors.Is(err, store.ErrConflict) {
		t.Errorf("it is written: %v", err)
	}
}

func TestAStoreOfALaterReleaseIsRefused(t *testing.T) {
	for _, tt := range []struct {
		name, value string
		known       int
		want        string // part of the error; "": none
	}{
		{"none says so", "", 1, ""},
		{"of this release", `{"lowest":2,"why":"x"}`, 2, ""},
		{"of an earlier one", `{"lowest":2,"why":"x"}`, 3, ""},
		{"of a later one", `{"lowest":3,"why":"a volume flies"}`, 2, "format 3 (a volume flies), and this server knows formats up to 2"},
		{"damaged", `{`, 2, "format"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			kvs := map[string]store.KV{}
			if tt.value != "" {
				kvs[store.FormatKey] = store.KV{Key: store.FormatKey, Value: []byte(tt.value), Mod: 1}
			}
			err := store.CheckFormat(kvs, tt.known)
			if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want %q", err, tt.want)
			}
		})
	}
}
