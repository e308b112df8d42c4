package keyring

import (
	"context"
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stead-project/stead/proto"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/records/sealing"
	"github.com/stead-project/stead/server/rotation"
	"github.com/stead-project/stead/server/seal"
	"github.com/stead-project/stead/store"
)

func TestAKeyIsRotatedWhileServersRun(t *testing.T) {
	all := []string{"s1", "s2", "s3"}
	w := newWorld(t, all...)
	old := w.servers["s1"].cfg.Key.Sealing()
	w.rotate("s2")
	if _, err := w.servers["s1"].Rotate(t.Context(), &proto.RotateKeyRequest{}); err != nil {
		t.Fatal(err) // no server has said yet that it has it: it may be lost, and another is made
	}
	next := w.ring().Next
	w.rounds(all...)
	ring := w.ring()
	if ring.Sealing != next || ring.Next != "" || ring.Resealing || !slices.Equal(ring.Opening, []sealing.KeyID{old}) {
		t.Fatalf("got %+v", ring)
	}
	for _, name := range all {
		w.opens(name, next)
		w.hidden(name)
		if key := w.servers[name].cfg.Key; key.Sealing() != next || !key.Has(old) {
			t.Errorf("%s has %v, and %s seals", name, key.IDs(), key.Sealing())
		}
		if again := w.start(name).cfg.Key; again.Sealing() != next {
			t.Errorf("%s seals with %s after a restart", name, again.Sealing())
		}
	}
	if err := w.remove("s1", next); err == nil {
		t.Error("the key that seals is removed")
	}
	if err := w.remove("s1", old); err != nil {
		t.Fatal(err)
	}
	w.rounds(all...)
	for _, name := range all {
		w.opens(name, next)
		if key := w.servers[name].cfg.Key; key.Has(old) {
			t.Errorf("%s still has the removed key", name)
		}
		if w.moved[name] != next {
			t.Errorf("%s forgot a key under which something of its own is", name)
		}
		if again := w.start(name).cfg.Key; again.Has(old) {
			t.Errorf("%s still has the removed key in its file", name)
		}
	}
}

func TestARotationWaitsForServersThatAreAway(t *testing.T) {
	w := newWorld(t, "s1", "s2", "s3")
	old := w.servers["s1"].cfg.Key.Sealing()
	w.rotate("s1")
	for range 3 {
		_ = w.round("s1", "s1", "s2")
	}
	if ring := w.ring(); ring.Sealing != old {
		t.Fatalf("%s seals, which s3 does not have", ring.Sealing)
	}
	list, err := w.servers["s1"].List(t.Context(), &proto.ListKeysRequest{})
	if err != nil || !strings.Contains(list.GetWait(), "waits for s3: start") {
		t.Errorf("it says %q, %v", list.GetWait(), err)
	}
	if _, err := w.servers["s1"].Rotate(t.Context(), &proto.RotateKeyRequest{Without: []string{"s1"}}); err == nil {
		t.Error("without itself")
	}
	if _, err := w.servers["s1"].Rotate(t.Context(), &proto.RotateKeyRequest{Without: []string{"s9"}}); err == nil {
		t.Error("without a server that nobody knows")
	}
	next := w.rotate("s1", "s3")
	w.rounds("s1", "s2")
	w.opens("s1", next)

	s3 := w.start("s3") // comes back with the old key alone
	done := make(chan error, 1)
	go func() { done <- s3.Ready(context.WithoutCancel(t.Context())) }()
	for s3.cfg.Key.Sealing() != next {
		w.catchUp()
		if err := w.servers["s1"].own(t.Context()); err != nil {
			t.Fatal(err)
		}
		select {
		case err := <-done:
			if err != nil { // it was too slow here; it says what to do, and is started again
				s3 = w.start("s3")
				go func() { done <- s3.Ready(context.WithoutCancel(t.Context())) }()
			}
		default:
		}
	}
	w.opens("s3", next)
}

// A server whose keys are all removed is told what to do, and is given nothing; so is one that nobody knows.
func TestAServerWithoutAKeyOfTheClusterGetsNone(t *testing.T) {
	w := newWorld(t, "s1", "s2")
	old := w.servers["s1"].cfg.Key.Sealing()
	w.rotate("s1", "s2")
	w.rounds("s1")
	if err := w.remove("s1", old); err != nil {
		t.Fatal(err)
	}
	w.rounds("s1")
	s2 := w.start("s2")
	err := s2.Ready(t.Context())
	if err == nil || !strings.Contains(err.Error(), "start one that has it (s1)") || !strings.Contains(err.Error(), "cat THEIRS >> OURS") {
		t.Errorf("got %v", err)
	}
	w.catchUp()
	if err := w.servers["s1"].own(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, given := w.Get(store.GivenKeysKey("s2")); given {
		t.Error("a key was given to a server that has none of the cluster")
	}
	theirs, _ := os.ReadFile(w.path("s1"))
	ours, _ := os.ReadFile(w.path("s2"))
	if err := os.WriteFile(w.path("s2"), append(ours, theirs...), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := w.start("s2").Ready(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.opens("s2")
	if w.servers["s2"].cfg.Key.Has(old) {
		t.Error("it keeps a removed key")
	}
}

// Every call of the store fails once, and all servers begin anew from their files: nothing is lost at any step, and the rotation
// comes to its end.
func TestARotationOutlivesACrashAtEachStep(t *testing.T) {
	all := []string{"s1", "s2"}
	for n := 1; ; n++ {
		w := newWorld(t, all...)
		old := w.servers["s1"].cfg.Key.Sealing()
		w.rotate("s1")
		w.FailAt(n)
		failed := false
		for range 12 {
			if err := w.round(all[n%2], all...); err != nil {
				failed = true
				for _, name := range all {
					w.start(name)
					w.opens(name)
				}
			}
		}
		w.settled()
		ring := w.ring()
		if ring.Resealing || ring.Next != "" || ring.Sealing == old {
			t.Fatalf("after a failure at call %d it stopped at %+v", n, ring)
		}
		for _, name := range all {
			w.opens(name, ring.Sealing)
		}
		if err := w.remove("s2", old); err != nil {
			t.Fatal(err)
		}
		if !failed {
			if n < 5 {
				t.Fatalf("it took %d calls only", n)
			}
			return
		}
	}
}

// A leader that was replaced, and one that looked before somebody else wrote, seal nothing anew over that.
func TestWhatIsSealedAnewIsComparedWithWhatWasRead(t *testing.T) {
	w := newWorld(t, "s1")
	s := w.servers["s1"]
	next := w.rotate("s1")
	for s.look().Ring.Sealing != next {
		if err := w.round("s1", "s1"); err != nil {
			t.Fatal(err)
		}
		w.catchUp()
	}
	before, err := s.sealed(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	sealed, _ := json.Marshal(map[string][]byte{"password": []byte("newer")})
	w.Record(store.SecretKey("default", "s0"), records.SecretRecord{Meta: records.Meta{Namespace: "default", Name: "s0", Generation: 4},
		Sealed: s.cfg.Key.SealAt(store.SecretKey("default", "s0"), sealed)})
	if err := s.reseal(t.Context(), w.term, s.look(), before); err != nil {
		t.Fatal(err)
	}
	kv, _ := w.Get(store.SecretKey("default", "s0"))
	if r, err := store.Decode[records.SecretRecord](kv); err != nil || r.Generation != 4 {
		t.Errorf("a Secret that was written meanwhile is %+v, %v", r, err)
	}
	before, err = s.sealed(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	w.Put(store.LeaderKey, []byte("s1"))
	deposed := store.Leadership{Value: "s1", Created: w.term.Created + 1}
	if err := s.reseal(t.Context(), deposed, s.look(), before); err == nil {
		t.Error("another leader's term seals anew")
	}
	w.Record(store.HoldKey, records.Hold{Cause: "test"})
	if err := s.reseal(t.Context(), w.term, s.look(), before); err == nil {
		t.Error("records of a held store are sealed anew")
	}
}

// What is under a key is counted after the keyring was read: a key goes only when nothing is under it.
func TestAKeyUnderWhichSomethingIsStays(t *testing.T) {
	w := newWorld(t, "s1")
	s := w.servers["s1"]
	old, err := seal.Load(w.path("s1"))
	if err != nil {
		t.Fatal(err)
	}
	w.rotate("s1")
	w.rounds("s1")
	w.secret(old, "late") // as by a server that does not compare the keyring
	if err := w.remove("s1", old.Sealing()); err == nil || !strings.Contains(err.Error(), "1 records are sealed with") {
		t.Errorf("got %v", err)
	}
	if !s.cfg.Key.Has(old.Sealing()) {
		t.Error("it is gone")
	}
	own := rotation.OwnKeys{Ring: s.look().Ring, Has: s.cfg.Key.IDs()}
	if len(own.Drop()) > 0 {
		t.Error("it is dropped")
	}

}

// While the authority is replaced there are two, with two keys: neither is lost with the key that seals them (SAFETY S24).
func TestBothAuthoritiesAreSealedAgain(t *testing.T) {
	w := newWorld(t, "s1")
	key := w.servers["s1"].cfg.Key
	old := key.Sealing()
	kv, _ := w.Get(store.AuthorityKey)
	record, err := store.Decode[sealing.Authority](kv)
	if err != nil {
		t.Fatal(err)
	}
	record.Next = &sealing.NextAuthority{Certificate: []byte("y"), Sealed: key.SealAt(store.AuthorityKey, []byte("the next")), Issuing: true}
	w.Record(store.AuthorityKey, record)
	next := w.rotate("s1")
	for range 12 {
		_ = w.round("s1", "s1") // it waits where one of the two cannot be sealed again
	}
	w.settled()
	kv, _ = w.Get(store.AuthorityKey)
	if record, err = store.Decode[sealing.Authority](kv); err != nil {
		t.Fatal(err)
	}
	plain, err := key.OpenAt(store.AuthorityKey, record.Next.Sealed)
	if err != nil || string(plain) != "the next" || !record.Next.Issuing || string(record.Next.Certificate) != "y" {
		t.Fatalf("got %q, %v", plain, err)
	}
	if key.Under(store.AuthorityKey, record.Next.Sealed) != next || key.Under(store.AuthorityKey, record.Sealed) != next {
		t.Error("one of the two is under the old key")
	}
	if err := w.remove("s1", old); err != nil {
		t.Error(err)
	}
}
