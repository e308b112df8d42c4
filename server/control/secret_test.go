package control

import (
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/stead-project/stead/records/sealing"
	"github.com/stead-project/stead/store"
	"github.com/stead-project/stead/store/memstore"
)

func TestASecretIsNotSealedWithAKeyThatWasReplacedMeanwhile(t *testing.T) {
	r := newRig(t)
	r.mustApply(setYAML)
	ring := sealing.Ring{Sealing: r.key.Sealing(), At: time.Unix(1, 0)}
	raced := false
	r.Store.Fail(func(c memstore.Call) memstore.Fault {
		if c.Method == "Commit" && !raced {
			raced = true
			if _, err := r.Store.Commit(r.ctx, store.Txn{Then: []store.Op{store.Put(store.KeyringKey, store.Encode(ring))}}); err != nil {
				t.Error(err)
			}
		}
		return memstore.Fault{}
	})
	_, err := r.apply(filesYAML)
	refused(t, err, codes.Aborted, "changed meanwhile")
	r.mustApply(filesYAML)
	ring.Sealing = "another"
	r.Record(store.KeyringKey, ring)
	_, err = r.apply(strings.Replace(filesYAML, "hunter2", "hunter3", 1))
	refused(t, err, codes.Unavailable, "lacks the key another")
}
