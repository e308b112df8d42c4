package backup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/stead-project/stead/internal/backoff"
	"github.com/stead-project/stead/internal/trouble"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/server/cache"
)

// ScheduleConfig is what a Schedule needs.
type ScheduleConfig struct {
	Maker *Maker
	Cache cache.Reader
	// Dir is the directory of the backups, made with mode 0700 if missing. Other files in it are left alone.
	Dir    string
	Server string
	Rules  Rules
	Logger *slog.Logger
	Now    func() time.Time // zero: time.Now
}

// Schedule has backups made on time, and keeps some of them. What it knows is in the directory: a server that starts
// again makes none before its time.
type Schedule struct {
	cfg ScheduleConfig

	mu    sync.Mutex
	shown records.BackupState
	bad   int // records that the newest one has and a server cannot read
}

const (
	// The waits between two attempts, doubling.
	retryFirst = 10 * time.Second
	retryMost  = 10 * time.Minute
	// heldEvery is how often it is looked whether the store is held still.
	heldEvery = 10 * time.Second
	// checkEvery is how often the newest one is read again: what is on a disk may go bad.
	checkEvery = 24 * time.Hour
)

// errHeld: the store went back or may have; a backup of it is no good one (SAFETY S8).
var errHeld = errors.New("the store is held: no backup is made, and none removed, before 'stead restore'")

// NewSchedule starts nothing.
func NewSchedule(cfg ScheduleConfig) *Schedule {
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	k := &Schedule{cfg: cfg}
	k.shown = records.BackupState{Server: cfg.Server, Dir: cfg.Dir, Every: cfg.Rules.Every, Encrypted: cfg.Maker.Encrypts()}
	return k
}

// State is how it stands with the backups of this server.
func (k *Schedule) State() records.BackupState {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.shown
}

// Run makes backups until ctx ends; it returns nil then. What hinders it is logged once, shown by State, and tried
// again. The cache must show the store.
func (k *Schedule) Run(ctx context.Context) error {
	failures, last := 0, trouble.Last{}
	for ctx.Err() == nil {
		wait, err := k.Turn(ctx)
		switch {
		case ctx.Err() != nil:
			return nil
		case errors.Is(err, errHeld):
			wait = heldEvery
		case err != nil:
			failures++
			wait = backoff.After(retryFirst, retryMost, failures)
		default:
			failures = 0
		}
		k.note(err)
		if last.IsErr(err) {
			k.cfg.Logger.Error("store not backed up", "err", err)
		}
		backoff.Sleep(ctx, min(wait, checkEvery))
	}
	return nil
}

func (k *Schedule) note(err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.shown.Trouble = ""
	switch {
	case err != nil:
		k.shown.Trouble = err.Error()
	case k.bad > 0:
		k.shown.Trouble = fmt.Sprintf("%d records of the store cannot be read; 'stead backup verify' names them; the newest backup without such ones is kept", k.bad)
	}
}

// Turn makes a backup if it is time for one, and then removes those that are not kept. It returns when to look again.
func (k *Schedule) Turn(ctx context.Context) (wait time.Duration, err error) {
	var cluster string
	held := false
	k.cfg.Cache.Look(func(v cache.View) { cluster, held = v.ClusterID(), v.Hold() != nil })
	if err := os.MkdirAll(k.cfg.Dir, 0o700); err != nil {
		return 0, err
	}
	all, err := List(k.cfg.Dir)
	if err != nil {
		return 0, err
	}
	last := k.newestWhole(all, cluster)
	k.show(all, last)
	if held {
		return 0, errHeld
	}
	if wait := k.cfg.Rules.Due(last, k.cfg.Now()); wait > 0 {
		return wait, nil
	}
	made, err := k.save(ctx)
	if err != nil {
		return 0, err
	}
	if all, err = List(k.cfg.Dir); err != nil {
		return 0, err
	}
	for _, name := range k.cfg.Rules.Old(all, made, cluster, k.cfg.Now()) {
		err = errors.Join(err, ignoreAbsent(os.Remove(filepath.Join(k.cfg.Dir, name))))
	}
	if all, err2 := List(k.cfg.Dir); err2 == nil {
		k.show(all, k.newestWhole(all, cluster))
	}
	if err != nil {
		return 0, fmt.Errorf("remove old backups: %w", err)
	}
	return k.cfg.Rules.Every, nil
}

// save makes one in the directory, and returns its name.
func (k *Schedule) save(ctx context.Context) (name string, err error) {
	f, err := Save(k.cfg.Dir, ".stead-"+k.cfg.Server+".part", func(w io.Writer) error {
		m, err := k.cfg.Maker.Make(ctx, w, false)
		if err == nil && m.Held != "" {
			err = errHeld // it came to be held meanwhile
		}
		return err
	})
	if err != nil {
		return "", err
	}
	k.cfg.Logger.Info("store backed up", "reason", fmt.Sprintf("%s: %d records, %d bytes", f.Path, f.Keys(), f.Size))
	return filepath.Base(f.Path), nil
}

// newestWhole is the newest that the store can be restored from; its content was compared with its checksum just now, and so were those of newer ones,
// of which Err then says what is wrong.
func (k *Schedule) newestWhole(all []Kept, cluster string) *Kept {
	for {
		best := newest(all, cluster, (*Kept).whole)
		if best == nil {
			return nil
		}
		best.Err = check(filepath.Join(k.cfg.Dir, best.Name))
		if best.Err == nil {
			return best
		}
	}
}

func check(path string) error {
	f, err := Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	return f.Check()
}

func (k *Schedule) show(all []Kept, last *Kept) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.shown.Kept, k.shown.Damaged = len(all), 0
	k.shown.LastGood, k.shown.Name, k.shown.Bytes, k.bad = time.Time{}, "", 0, 0
	for _, one := range all {
		if one.Err != nil {
			k.shown.Damaged++
		}
	}
	if last != nil {
		k.shown.LastGood, k.shown.Name, k.shown.Bytes = last.Made, last.Name, last.Size
		k.bad = last.Unreadable
	}
}

// List are the backups in a directory, by their names. Of each it reads how it begins, and compares its size.
func List(dir string) (all []Kept, err error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), suffix) || strings.HasPrefix(e.Name(), ".") || e.IsDir() {
			continue
		}
		one := Kept{Name: e.Name()}
		if info, err := e.Info(); err == nil {
			one.Size = info.Size()
		}
		f, err := Open(filepath.Join(dir, e.Name()))
		if errors.Is(err, os.ErrNotExist) {
			continue // another server has removed it meanwhile
		}
		one.Err = err
		if err == nil {
			one.Manifest = f.Manifest
			_ = f.Close()
		}
		all = append(all, one)
	}
	return all, nil
}
