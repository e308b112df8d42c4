package access

import (
	"path/filepath"
	"testing"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/records/sealing"
	"github.com/stead-project/stead/server/seal"
	"github.com/stead-project/stead/store"
	"github.com/stead-project/stead/store/memstore"
)

// A store that was restored from before a rotation is sealed with the key of then, whichever comes first in the file:
// all servers seal with the same.
func TestARestoredStoreIsSealedWithItsOwnKey(t *testing.T) {
	file := filepath.Join(t.TempDir(), "secret.key")
	k, err := seal.Ensure(file)
	must(t, err)
	old := k.Sealing()
	secret, err := k.Seal("default", "db", map[string][]byte{"a": []byte("x")})
	must(t, err)
	s := memstore.New()
	put := func(key string, record any) {
		_, err := s.Commit(t.Context(), store.Txn{Then: []store.Op{store.Put(key, store.Encode(record))}})
		must(t, err)
	}
	put(store.SecretKey("default", "db"), records.SecretRecord{Meta: records.Meta{Namespace: "default", Name: "db"}, Sealed: secret})
	next, err := k.Make()
	must(t, err)
	must(t, k.Use(next))
	open := func(want sealing.KeyID) {
		t.Helper()
		opened, err := OpenKey(t.Context(), s, file, nil)
		must(t, err)
		if opened.Sealing() != want {
			t.Errorf("%s seals; want %s", opened.Sealing(), want)
		}
	}
	open(old)
	must(t, k.Use(next))
	put(store.AuthorityKey, sealing.Authority{Sealed: k.SealAt(store.AuthorityKey, []byte("x"))})
	open(next) // the authority's counts
	put(store.KeyringKey, sealing.Ring{Sealing: old})
	open(next) // the keyring says it; whoever follows it sets it
}
