package keyring

import (
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stead-project/stead/proto"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/records/sealing"
	"github.com/stead-project/stead/server/seal"
	"github.com/stead-project/stead/server/servertest"
	"github.com/stead-project/stead/store"
)

const manySecrets = 2*batchRecords + 3

// world is a store with sealed records, and servers, which are made anew from their files at will.
type world struct {
	*servertest.Mirrored
	t       *testing.T
	dir     string
	term    store.Leadership
	moved   map[string]sealing.KeyID // under what each server last had what it keeps beside the store
	servers map[string]*Service
}

func newWorld(t *testing.T, names ...string) *world {
	w := &world{Mirrored: servertest.Mirror(t, slog.New(slog.DiscardHandler)), t: t, dir: t.TempDir(), moved: map[string]sealing.KeyID{}, servers: map[string]*Service{}}
	first, err := seal.Ensure(w.path(names[0]))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		w.Record(store.ServerKey(name), records.Server{Name: name})
		w.copyKey(names[0], name)
		w.start(name)
	}
	w.term = store.Leadership{Value: names[0], Created: w.Put(store.LeaderKey, []byte(names[0]))}
	w.Record(store.AuthorityKey, sealing.Authority{Certificate: []byte("x"), Sealed: first.SealAt(store.AuthorityKey, []byte("authority"))})
	for i := range manySecrets {
		w.secret(first, fmt.Sprint("s", i))
	}
	return w
}

func (w *world) path(name string) string { return filepath.Join(w.dir, name, "secret.key") }

func (w *world) copyKey(from, to string) {
	w.t.Helper()
	b, err := os.ReadFile(w.path(from))
	if err == nil {
		err = os.MkdirAll(filepath.Dir(w.path(to)), 0o700)
	}
	if err == nil {
		err = os.WriteFile(w.path(to), b, 0o600)
	}
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) secret(key *seal.Key, name string) {
	w.t.Helper()
	sealed, err := key.Seal("default", name, map[string][]byte{"password": []byte("of " + name)})
	if err != nil {
		w.t.Fatal(err)
	}
	w.Record(store.SecretKey("default", name), records.SecretRecord{Meta: records.Meta{Namespace: "default", Name: name, Generation: 3}, Keys: []string{"password"}, Sealed: sealed})
}

// start has a server begin anew with its file.
func (w *world) start(name string) *Service {
	w.t.Helper()
	key, err := seal.Load(w.path(name))
	if err != nil {
		w.t.Fatal(err)
	}
	s, err := New(Config{Store: w.Store, Cache: w.Cache, Key: key, Server: name, Settle: time.Nanosecond, Ready: 50 * time.Millisecond, Logger: slog.New(slog.DiscardHandler),
		Moved: func(context.Context) error { w.moved[name] = key.Sealing(); return nil }})
	if err != nil {
		w.t.Fatal(err)
	}
	w.servers[name] = s
	return s
}

// settled has the mirror show all that is stored.
func (w *world) settled() {
	w.t.Helper()
	w.Store.Fail(nil)
	rev, _, err := w.Store.Get(w.t.Context(), store.LeaderKey)
	if err == nil {
		err = w.Cache.Wait(w.t.Context(), rev)
	}
	if err != nil {
		w.t.Fatal(err)
	}
}

// round has each of the servers look after its own keys, and the leader take a step.
func (w *world) round(lead string, names ...string) error {
	for _, name := range names {
		w.catchUp()
		if err := w.servers[name].own(w.t.Context()); err != nil {
			return err
		}
	}
	w.catchUp()
	s := w.servers[lead]
	_, err := s.step(w.t.Context(), w.term, s.look(), true)
	return err
}

// catchUp is settled without a call that counts as one that may fail.
func (w *world) catchUp() {
	w.t.Helper()
	st, err := w.Store.Status(w.t.Context())
	if err != nil {
		w.t.Fatal(err)
	}
	rev := st.Rev
	if err := w.Cache.Wait(w.t.Context(), rev); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) ring() sealing.Ring {
	w.t.Helper()
	kv, ok := w.Get(store.KeyringKey)
	if !ok {
		return sealing.Ring{}
	}
	ring, err := store.Decode[sealing.Ring](kv)
	if err != nil {
		w.t.Fatal(err)
	}
	return ring
}

// opens fails unless the server opens everything, and finds it under one of under.
func (w *world) opens(name string, under ...sealing.KeyID) {
	w.t.Helper()
	key := w.servers[name].cfg.Key
	_, list, err := w.Store.Snapshot(w.t.Context(), store.KindSecret+"/")
	if err != nil || len(list) < manySecrets {
		w.t.Fatalf("%d Secrets, %v", len(list), err)
	}
	for _, kv := range list {
		r, err := store.Decode[records.SecretRecord](kv)
		if err != nil {
			w.t.Fatal(err)
		}
		files, err := key.Open(&r)
		if err != nil || string(files["password"]) != "of "+r.Name || r.Generation != 3 {
			w.t.Fatalf("%s of %s: %q, %v", r.Name, name, files, err)
		}
		if id := key.Under(kv.Key, r.Sealed); len(under) > 0 && !slices.Contains(under, id) {
			w.t.Fatalf("%s is under %s; want %v", r.Name, id, under)
		}
	}
	kv, _ := w.Get(store.AuthorityKey)
	a, err := store.Decode[sealing.Authority](kv)
	if err != nil {
		w.t.Fatal(err)
	}
	if plain, err := key.OpenAt(store.AuthorityKey, a.Sealed); err != nil || string(plain) != "authority" || string(a.Certificate) != "x" {
		w.t.Fatalf("the authority of %s: %v", name, err)
	}
}

// hidden fails if the store holds a key of the server as it is.
func (w *world) hidden(name string) {
	w.t.Helper()
	file, err := os.ReadFile(w.path(name))
	if err != nil {
		w.t.Fatal(err)
	}
	_, all, err := w.Store.Snapshot(w.t.Context(), "")
	if err != nil {
		w.t.Fatal(err)
	}
	for secret := range slices.Chunk(file, seal.KeyBytes) {
		for _, kv := range all {
			if bytes.Contains(kv.Value, secret) || bytes.Contains(kv.Value, []byte(base64.StdEncoding.EncodeToString(secret))) {
				w.t.Errorf("%s holds a key", kv.Key)
			}
		}
	}
}

func (w *world) rotate(name string, without ...string) sealing.KeyID {
	w.t.Helper()
	w.settled()
	made, err := w.servers[name].Rotate(w.t.Context(), &proto.RotateKeyRequest{Without: without})
	if err != nil {
		w.t.Fatal(err)
	}
	return sealing.KeyID(made.GetId())
}

func (w *world) remove(name string, id sealing.KeyID) error {
	w.settled()
	_, err := w.servers[name].Remove(w.t.Context(), &proto.RemoveKeyRequest{Id: string(id)})
	return err
}

func (w *world) rounds(names ...string) {
	w.t.Helper()
	for range 12 {
		if err := w.round(names[0], names...); err != nil {
			w.t.Fatal(err)
		}
	}
}
