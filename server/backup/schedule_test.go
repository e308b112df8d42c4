package backup

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/server/seal"
	"github.com/stead-project/stead/server/servertest"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/store"
)

// kit is a store in memory, whose snapshots are JSON, with what backs it up.
type kit struct {
	t        *testing.T
	world    *servertest.Mirrored
	maker    *Maker
	schedule *Schedule
	key      *seal.Key
	dir      string
	now      time.Time
	// snapshot replaces what is taken of the store; nil: it as it is.
	snapshot func(io.Writer) error
}

type saved struct {
	Rev store.Rev
	KVs []store.KV
}

func newKit(t *testing.T, rules Rules, to ...PublicKey) *kit {
	k := &kit{t: t, now: noon, dir: filepath.Join(t.TempDir(), "backups")}
	k.world = servertest.Mirror(t, slog.New(slog.DiscardHandler), store.Put(store.ClusterKey, []byte("c")), store.Put(store.EpochKey, []byte("1")))
	spool := t.TempDir()
	file := filepath.Join(spool, "secret.key")
	var err error
	if k.key, err = seal.Ensure(file); err != nil {
		t.Fatal(err)
	}
	now := func() time.Time { return k.now }
	k.maker = NewMaker(MakerConfig{Server: "a", Version: "v1", Store: k.world.Store, KeyFile: file, Recipients: to, Spool: spool, Spare: 1, Now: now,
		Snapshot: func(ctx context.Context, w io.Writer) error {
			if k.snapshot != nil {
				return k.snapshot(w)
			}
			return k.take(w)
		}, Read: readJSON})
	k.schedule = NewSchedule(ScheduleConfig{Maker: k.maker, Cache: k.world.Cache, Dir: k.dir, Server: "a", Rules: rules, Logger: slog.New(slog.DiscardHandler), Now: now})
	t.Cleanup(func() { // no name may be left of what is not encrypted
		left, err := os.ReadDir(spool)
		if err != nil || len(left) != 1 {
			t.Errorf("left in the server's directory: %v, %v", left, err)
		}
	})
	return k
}

func (k *kit) take(w io.Writer) error {
	rev, kvs, err := k.world.Store.Snapshot(k.t.Context(), "")
	return errors.Join(err, json.NewEncoder(w).Encode(saved{rev, kvs}))
}

func readJSON(file string, each func(store.KV) error) (int64, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return 0, err
	}
	var s saved
	if err := json.Unmarshal(text, &s); err != nil {
		return 0, ErrDamaged
	}
	for _, kv := range s.KVs {
		if err := each(kv); err != nil {
			return 0, err
		}
	}
	return int64(s.Rev), nil
}

var setRef = spec.SetRef{Namespace: "default", Name: "db"}

// turn is one turn after a time.
func (k *kit) turn(later time.Duration) (time.Duration, error) {
	k.now = k.now.Add(later)
	return k.schedule.Turn(k.t.Context())
}

func (k *kit) files() (names []string) {
	entries, err := os.ReadDir(k.dir)
	if err != nil {
		k.t.Fatal(err)
	}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

func (k *kit) mustTurn(later time.Duration) {
	k.t.Helper()
	if _, err := k.turn(later); err != nil {
		k.t.Fatal(err)
	}
}

func TestBackupsAreMadeOnTimeAndOldOnesRemoved(t *testing.T) {
	private, public := keyPair(t)
	k := newKit(t, Rules{Every: time.Hour, Keep: 2}, public)
	k.world.Record(store.SecretKey("default", "pass"), records.SecretRecord{Meta: records.Meta{Namespace: "default", Name: "pass"}, Sealed: must(k.key.Seal("default", "pass", nil))})
	k.mustTurn(0)
	first := k.files()
	if wait, err := k.turn(20 * time.Minute); err != nil || wait != 40*time.Minute || len(k.files()) != 1 {
		t.Errorf("before its time: %s, %v, %q", wait, err, k.files())
	}
	for range 3 {
		k.mustTurn(time.Hour)
	}
	if got := k.files(); len(got) != 2 || slices.Contains(got, first[0]) {
		t.Errorf("kept are %q", got)
	}
	f, err := Open(filepath.Join(k.dir, k.files()[1]))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var snapshot bytes.Buffer
	secrets, err := f.Unseal(&private, &snapshot)
	if err != nil {
		t.Fatal(err)
	}
	key, err := seal.NewKey(secrets.Key)
	if err != nil {
		t.Fatal(err)
	}
	content, err := Examine(readJSON, put(t, snapshot.Bytes()), key)
	if err != nil || content.Bad != 0 || content.Sealed != 1 || f.Kinds[store.KindSecret] != 1 {
		t.Errorf("%+v, %v, %v", content, f.Kinds, err)
	}
	if st := k.schedule.State(); st.Kept != 2 || !st.LastGood.Equal(k.now) || st.Trouble != "" || !st.Encrypted {
		t.Errorf("%+v", st)
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// A store that went back is no good backup, and must not push good ones out.
func TestWhileTheStoreIsHeldNoBackupIsMadeNorRemoved(t *testing.T) {
	k := newKit(t, Rules{Every: time.Hour, Keep: 1, MaxAge: 2 * time.Hour})
	k.mustTurn(0)
	good := k.files()
	hold := store.Encode(records.Hold{Cause: "it went back", By: "server a"})
	k.snapshot = func(w io.Writer) error { // it comes to be held meanwhile
		k.world.Put(store.HoldKey, hold)
		return k.take(w)
	}
	if _, err := k.turn(5 * time.Hour); !errors.Is(err, errHeld) || !slices.Equal(k.files(), good) {
		t.Errorf("held while it is made: %v, %q", err, k.files())
	}
	k.snapshot = nil
	if _, err := k.turn(5 * time.Hour); !errors.Is(err, errHeld) || !slices.Equal(k.files(), good) {
		t.Errorf("held: %v, %q", err, k.files())
	}
	var out bytes.Buffer
	if m, err := k.maker.Make(t.Context(), &out, false); err != nil || m.Held != "it went back" {
		t.Errorf("one that a person asks for: %+v, %v", m, err)
	}
}

func TestWhatIsNoGoodSnapshotMakesNoBackup(t *testing.T) {
	k := newKit(t, Rules{Every: time.Hour, Keep: 1})
	var older bytes.Buffer
	if err := k.take(&older); err != nil {
		t.Fatal(err)
	}
	k.mustTurn(0)
	good := k.files()
	k.world.Put(store.EventKey(setRef, "1"), []byte("{}"))
	for name, snapshot := range map[string]func(io.Writer) error{
		"older than the store was":   func(w io.Writer) error { _, err := w.Write(older.Bytes()); return err },
		"of a member that is broken": func(io.Writer) error { return errors.New("the disk is gone") },
		"no store":                   func(w io.Writer) error { _, err := w.Write([]byte("text")); return err },
		"of another cluster": func(w io.Writer) error {
			kvs := []store.KV{{Key: store.ClusterKey, Value: []byte("d")}, {Key: store.EpochKey, Value: []byte("1")}}
			return json.NewEncoder(w).Encode(saved{99, kvs})
		},
		"without our records": func(w io.Writer) error { return json.NewEncoder(w).Encode(saved{99, nil}) },
	} {
		k.snapshot = snapshot
		if _, err := k.turn(2 * time.Hour); err == nil || !slices.Equal(k.files(), good) {
			t.Errorf("%s: %v, %q", name, err, k.files())
		}
	}
	k.snapshot, k.maker.cfg.Spare = nil, 1<<60
	if _, err := k.turn(0); err == nil || !strings.Contains(err.Error(), "bytes free") {
		t.Errorf("without room: %v", err)
	}
	k.maker.cfg.Spare, k.maker.cfg.KeyFile = 1, k.maker.cfg.KeyFile+".none"
	if _, err := k.turn(0); !errors.Is(err, os.ErrNotExist) || !slices.Equal(k.files(), good) {
		t.Errorf("without the key of Secrets: %v, %q", err, k.files())
	}
}

func TestTheLastGoodBackupIsKeptWhateverComesAfter(t *testing.T) {
	k := newKit(t, Rules{Every: time.Hour, Keep: 1, MaxAge: 2 * time.Hour})
	k.mustTurn(0)
	good := k.files()[0]
	k.world.Put(store.EventKey(setRef, "1"), []byte("no JSON"))
	for range 4 {
		k.mustTurn(3 * time.Hour)
		if got := k.files(); len(got) != 2 || !slices.Contains(got, good) {
			t.Errorf("kept are %q", got)
		}
	}
	k.schedule.note(nil)
	if st := k.schedule.State(); !strings.Contains(st.Trouble, "1 records") {
		t.Errorf("%+v", st)
	}
	// The newest one is damaged: it is seen, and another one is made before its time.
	entries := k.files()
	newest := filepath.Join(k.dir, entries[len(entries)-1])
	content, err := os.ReadFile(newest)
	if err != nil {
		t.Fatal(err)
	}
	content[len(content)/2] ^= 1
	if err := os.WriteFile(newest, content, 0o600); err != nil {
		t.Fatal(err)
	}
	k.mustTurn(time.Minute)
	if got := k.files(); len(got) != 2 && len(got) != 3 || !slices.Contains(got, good) {
		t.Errorf("kept are %q", got)
	}
	if st := k.schedule.State(); !st.LastGood.Equal(k.now) {
		t.Errorf("%+v", st)
	}
}
