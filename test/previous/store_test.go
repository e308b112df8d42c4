package previous

import (
	"encoding/json"
	"log/slog"
	"os"
	"testing"
	"time"

	"github.com/stead-project/stead/server/backup"
	"github.com/stead-project/stead/server/cache"
	"github.com/stead-project/stead/server/plan"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/store"
	"github.com/stead-project/stead/store/memstore"
)

// kept is the store that the previous release left.
func kept(t *testing.T) (store.Rev, []store.KV) {
	t.Helper()
	doc, err := os.ReadFile("testdata/store.json")
	if err != nil {
		t.Fatal(err)
	}
	var list struct {
		Rev  store.Rev
		Keys []struct {
			Key, Value  string
			Create, Mod store.Rev
			Lease       store.LeaseID
		}
	}
	if err := json.Unmarshal(doc, &list); err != nil {
		t.Fatal(err)
	}
	var kvs []store.KV
	for _, k := range list.Keys {
		kvs = append(kvs, store.KV{Key: k.Key, Value: []byte(k.Value), Create: k.Create, Mod: k.Mod, Lease: k.Lease})
	}
	return list.Rev, kvs
}

// look has the present cache hold the store.
func look(t *testing.T, f func(cache.View)) {
	t.Helper()
	c := cache.New(memstore.New(), slog.New(slog.DiscardHandler))
	rev, kvs := kept(t)
	if err := c.Load(rev, kvs); err != nil {
		t.Fatalf("a record of the previous release is not read: %v", err)
	}
	c.Look(f)
}

func TestEveryRecordOfThePreviousReleaseIsRead(t *testing.T) {
	rev, kvs := kept(t)
	content, err := backup.Examine(func(_ string, each func(store.KV) error) (int64, error) {
		for _, kv := range kvs {
			if err := each(kv); err != nil {
				return 0, err
			}
		}
		return int64(rev), nil
	}, "", nil)
	if err != nil || content.Bad > 0 || content.Held != "" {
		t.Errorf("%d records of %d are not read: %v, %v", content.Bad, len(kvs), content.Unreadable, err)
	}
	for _, kind := range []string{
		store.KindSet, store.KindRevision, store.KindMember, store.KindReport, store.KindVolume, store.KindEvent, store.KindHistory, store.KindAddress,
		store.KindIdentity, store.KindStatus, store.KindNode, store.KindFacts, store.KindSession, store.KindService, store.KindServiceAddress,
		store.KindNodePort, store.KindBudget, store.KindNetworkPolicy, store.KindClaim, store.KindConfig, store.KindSecret, store.KindBootstrapped,
		store.KindLeader, store.KindContinuity, store.KindHellos,
	} {
		if content.Kinds[kind] == 0 {
			t.Errorf("testdata has no record of kind %s, so nothing is known of those", kind)
		}
	}
}

// A leader of this release finds nothing to do in a healthy cluster, and the templates are the revisions that run.
func TestAHealthyClusterOfThePreviousReleaseIsLeftAlone(t *testing.T) {
	look(t, func(v cache.View) {
		if len(v.Sets()) != 2 {
			t.Fatalf("the sets are %v", v.Sets())
		}
		for _, ref := range append(v.Sets(), spec.SetRef{Namespace: "default", Name: "pvc:shared"}) {
			w := v.World(ref)
			w.Now = time.Now()
			w.VolumeID = nil // nothing is to have a volume made
			if p := plan.Next(w); len(p.Actions) > 0 || len(p.Blocked) > 0 {
				t.Errorf("%s: the plan is %+v, blocked %+v; want nothing", ref, p.Actions, p.Blocked)
			}
			for _, slot := range w.Slots {
				if w.Set == nil {
					continue
				}
				hash := spec.HashTemplate(w.Set.Template())
				if slot.Member == nil || slot.Member.Revision != v.TemplateHash(ref) || slot.Member.Revision != hash {
					t.Errorf("%s-%d runs %+v; the template of the set is revision %s, and its hash is now %s", ref.Name, slot.ID.Ordinal, slot.Member, v.TemplateHash(ref), hash)
				}
			}
		}
	})
}
