package etcdembed_test

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stead-project/stead/store"
	"github.com/stead-project/stead/store/etcdembed"
	"github.com/stead-project/stead/store/etcdstore"
)

// backup writes one of e into a file.
func backup(t *testing.T, e *etcdembed.Embedded) string {
	t.Helper()
	var b bytes.Buffer
	s, err := etcdstore.New(etcdstore.Config{Client: e.Client()})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Backup(t.Context(), &b); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "backup")
	if err := os.WriteFile(file, b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestABackupHasWhatTheStoreHeldAtItsMoment(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "etcd")
	e, s := begin(t, config(dir, 0))
	for i := range 300 {
		put(t, s, fmt.Sprint("k", i%100), strings.Repeat("v", i))
	}
	file := backup(t, e)
	later := put(t, s, "k0", "later")
	st, err := etcdembed.Check(file, nil)
	if err != nil || st.Keys != 100 || st.Rev != int64(later)-1 {
		t.Errorf("got %+v, %v; want 100 keys of revision %d", st, err, later-1)
	}
	origin := clusterOf(t, s)
	if err := errors.Join(s.Close(), e.Close()); err != nil {
		t.Fatal(err)
	}
	if err := etcdembed.Unpack(file, dir, "backup"); !errors.Is(err, os.ErrExist) {
		t.Errorf("unpacked over a store: %v", err)
	}
	again := filepath.Join(t.TempDir(), "etcd")
	if err := os.MkdirAll(filepath.Join(again, "data.part", "member"), 0o700); err != nil { // a crash left it
		t.Fatal(err)
	}
	if err := etcdembed.Unpack(file, again, "backup"); err != nil {
		t.Fatal(err)
	}
	e, s = begin(t, config(again, 0))
	if from := e.UnpackedFrom(); from != "backup" {
		t.Errorf("it says that it was unpacked from %q", from)
	}
	if got := get(t, s, "k0"); got != strings.Repeat("v", 200) {
		t.Errorf("k0 has %d bytes, want 200 of before", len(got))
	}
	if rev := put(t, s, "k0", "w"); rev > later {
		t.Errorf("it goes on at revision %d; before it was at %d", rev, later)
	}
	if err := errors.Join(e.Forget(), s.Close(), e.Close()); err != nil {
		t.Fatal(err)
	}
	e, s = begin(t, config(again, 0))
	if from := e.UnpackedFrom(); from != "" {
		t.Errorf("what was forgotten is said still: %q", from)
	}
	if now := clusterOf(t, s); now == origin {
		t.Error("it names itself as the store that was backed up, so that its going back may not be noticed")
	}
}

func clusterOf(t *testing.T, s store.Store) string {
	t.Helper()
	var at store.Origin
	judged := store.Judged(s, func() store.Judge { return func(o store.Origin) error { at = o; return nil } })
	if _, _, err := judged.Get(t.Context(), "k0"); err != nil || at.Cluster == "" {
		t.Fatalf("origin %+v, %v", at, err)
	}
	return at.Cluster
}

func TestADamagedBackupIsRefused(t *testing.T) {
	e, s := begin(t, config(t.TempDir(), 0))
	put(t, s, "k0", "v")
	whole, err := os.ReadFile(backup(t, e))
	if err != nil {
		t.Fatal(err)
	}
	flipped := bytes.Clone(whole)
	flipped[len(flipped)/2] ^= 1
	for name, content := range map[string][]byte{
		"cut short": whole[:len(whole)-512], "a byte differs": flipped, "empty": nil, "something else": []byte(strings.Repeat("text", 100)),
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "backup")
			if err := os.WriteFile(file, content, 0o600); err != nil {
				t.Fatal(err)
			}
			if st, err := etcdembed.Check(file, nil); err == nil {
				t.Errorf("taken as good: %+v", st)
			}
			dir := filepath.Join(t.TempDir(), "etcd")
			if err := etcdembed.Unpack(file, dir, "backup"); err == nil {
				t.Error("unpacked")
			}
			if _, err := os.Stat(filepath.Join(dir, "data")); err == nil {
				t.Error("a store was left")
			}
		})
	}
}

func TestABackupIsNotUnpackedUnderARunningStore(t *testing.T) {
	dir := t.TempDir()
	e, s := begin(t, config(dir, 0))
	put(t, s, "k0", "v")
	if err := etcdembed.Unpack(backup(t, e), dir, "backup"); !errors.Is(err, etcdembed.ErrLocked) {
		t.Errorf("got %v, want %v", err, etcdembed.ErrLocked)
	}
}

// Overwritten, deleted and made again: each key is read once, as it was last.
func TestABackupIsReadAsTheStoreWas(t *testing.T) {
	e, s := begin(t, config(t.TempDir(), 0))
	put(t, s, "kept", "old")
	put(t, s, "gone", "v")
	put(t, s, "again", "first")
	if _, err := s.Commit(t.Context(), store.Txn{Then: []store.Op{store.Del("gone"), store.Del("again")}}); err != nil {
		t.Fatal(err)
	}
	put(t, s, "again", "second")
	last := put(t, s, "kept", "new")
	if _, err := e.Client().Put(t.Context(), "/another/program", "its own"); err != nil {
		t.Fatal(err)
	}
	file, got := backup(t, e), map[string]string{}
	st, err := etcdembed.Read(file, func(kv store.KV) error {
		if _, twice := got[kv.Key]; twice {
			t.Errorf("%s is read twice", kv.Key)
		}
		if kv.Key == "kept" && (kv.Mod != last || kv.Create == last) {
			t.Errorf("kept has revisions %d and %d", kv.Create, kv.Mod)
		}
		got[kv.Key] = string(kv.Value)
		return nil
	})
	if want := map[string]string{"kept": "new", "again": "second"}; err != nil || !maps.Equal(got, want) || st.Keys != 3 || st.Rev != int64(last)+1 {
		t.Errorf("got %v, %+v, %v; want %v", got, st, err, want)
	}
	enough := errors.New("enough")
	if _, err := etcdembed.Read(file, func(store.KV) error { return enough }); !errors.Is(err, enough) {
		t.Errorf("it goes on after %v", err)
	}
}

// A checksum may be right of what was damaged before, and a disk may fail while a file is read: neither ends the process.
func TestAFileOfWhichPagesAreMissingIsAnError(t *testing.T) {
	e, s := begin(t, config(t.TempDir(), 0))
	for i := range 200 {
		put(t, s, fmt.Sprint("k", i), strings.Repeat("v", 4000))
	}
	whole, err := os.ReadFile(backup(t, e))
	if err != nil {
		t.Fatal(err)
	}
	zeroed := bytes.Clone(whole)
	clear(zeroed[len(zeroed)/4:])
	for name, content := range map[string][]byte{"cut": whole[:len(whole)/4], "zeroes": zeroed, "text": []byte(strings.Repeat("text", 20_000)), "empty": nil} {
		file := filepath.Join(t.TempDir(), "backup")
		if err := os.WriteFile(file, content, 0o600); err != nil {
			t.Fatal(err)
		}
		if st, err := etcdembed.Read(file, nil); err == nil {
			t.Errorf("%s: read as %+v", name, st)
		} else {
			t.Log(name, err)
		}
	}
	if _, err := etcdembed.Read(filepath.Join(t.TempDir(), "absent"), nil); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("absent: %v", err)
	}
}
