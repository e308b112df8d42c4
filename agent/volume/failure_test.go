package volume

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/stead-project/stead/records"
)

var errBadDisk = errors.New("the disk is bad")

// cut is what a power cut leaves: the names in each directory, by inode, when it was last put
// on disk.
type cut map[uint64][]string

// onDisk is a disk on which all is that the lab has below its root.
func (l *lab) onDisk() cut {
	c := cut{}
	l.dirs(func(dir *os.File) { c.flush(l.t, dir) })
	return c
}

// dirs calls see with each directory below the root but those of members.
func (l *lab) dirs(see func(*os.File)) {
	l.t.Helper()
	for _, path := range below(l.t, filepath.Join(l.dir, "root")) {
		if found, err := os.Lstat(path); err != nil || !found.IsDir() || filepath.Base(path) == "scratch" {
			continue
		}
		dir, err := os.Open(path)
		if err != nil {
			l.t.Fatal(err)
		}
		see(dir)
		dir.Close()
	}
}

func (c cut) flush(t *testing.T, f *os.File) {
	t.Helper()
	if inode, names := listed(t, f); names != nil {
		c[inode] = names
	}
}

// missing are the directories whose names are others on disk.
func (c cut) missing(l *lab) (paths []string) {
	l.dirs(func(dir *os.File) {
		if inode, names := listed(l.t, dir); !slices.Equal(c[inode], names) {
			paths = append(paths, dir.Name())
		}
	})
	return paths
}

// listed are the names in a directory, nil: it is none.
func listed(t *testing.T, f *os.File) (uint64, []string) {
	t.Helper()
	found, err := f.Stat()
	if err != nil {
		t.Fatal(err)
	}
	if !found.IsDir() {
		return 0, nil
	}
	entries, err := os.ReadDir(f.Name())
	if err != nil {
		t.Fatal(err)
	}
	names := []string{}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return found.Sys().(*syscall.Stat_t).Ino, names
}

// TestADiskThatFailsIsToldAndLosesNothing fails each putting on disk in turn: it is told, the
// volume is in one place with what was in it, and the next try goes through.
func TestADiskThatFailsIsToldAndLosesNothing(t *testing.T) {
	notFilled := func(l *lab) {
		if _, err := l.agent().Trash(t.Context()); err != nil { // marks the disk
			t.Fatal(err)
		}
	}
	dataGone := func(l *lab) {
		l.filled()
		if err := os.RemoveAll(filepath.Join(l.place(), dataDir)); err != nil {
			t.Fatal(err)
		}
	}
	for what, c := range map[string]struct {
		begin   func(*lab)
		do      func(*Volumes) error
		least   int  // how often it puts something on disk
		kept    bool // its data are not to go
		inTrash bool // afterwards
	}{
		"marked":       {begin: func(l *lab) { l.agent() }, do: func(v *Volumes) error { _, err := v.Trash(t.Context()); return err }, least: 4},
		"made":         {begin: notFilled, do: func(v *Volumes) error { _, err := v.Ensure(t.Context(), db0, data, true, nil); return err }, least: 8},
		"given up":     {begin: func(l *lab) { l.filled() }, do: func(v *Volumes) error { return v.Reclaim(t.Context(), giveUp) }, least: 5, kept: true, inTrash: true},
		"brought back": {begin: (*lab).trashed, do: func(v *Volumes) error { return v.Restore(t.Context(), bringBack) }, least: 3, kept: true},
		"counted":      {begin: func(l *lab) { l.trashed(); l.now += noteEvery }, do: func(v *Volumes) error { _, err := v.Trash(t.Context()); return err }, least: 2, kept: true, inTrash: true},
		"erased":       {begin: func(l *lab) { l.trashed(); l.now += time.Hour }, do: func(v *Volumes) error { return v.Erase(t.Context(), "local", data.ID) }, least: 4},
		"lost": {begin: dataGone, do: func(v *Volumes) error {
			state, err := v.Lost(t.Context(), giveUp)
			if err == nil && state != records.VolumeTrashed {
				t.Errorf("it is %s", state)
			}
			return err
		}, least: 5, inTrash: true},
	} {
		t.Run(what, func(t *testing.T) {
			n := 1
			for ; ; n++ {
				l := newLab(t)
				c.begin(l)
				onDisk, count := l.onDisk(), 0
				flush := func(f *os.File) error {
					count++
					if count == n {
						return errBadDisk
					}
					onDisk.flush(t, f)
					return nil
				}
				next := func() *Volumes {
					v := l.agent()
					v.writer.Sync, v.records.writer.Sync = flush, flush
					return v
				}
				v := next()
				err := c.do(v)
				if count < n {
					if err != nil {
						t.Errorf("no disk failed: %v", err)
					}
					break
				}
				if !errors.Is(err, errBadDisk) {
					t.Fatalf("disk fails the %dth time: told is %v", n, err)
				}
				if _, inPlace := os.Stat(filepath.Join(l.place(), "data/file")); c.kept {
					if _, inBin := os.Stat(filepath.Join(l.bin(), "data/file")); (inPlace == nil) == (inBin == nil) {
						t.Errorf("disk fails the %dth time: in its place: %v, in the trash: %v", n, inPlace, inBin)
					}
				}
				if err := c.do(next()); err != nil {
					t.Errorf("disk failed the %dth time, and again: %v", n, err)
				}
				if diff := onDisk.missing(l); len(diff) > 0 {
					t.Errorf("disk failed the %dth time; after the next try this was never put on disk: %q", n, diff)
				}
				if found, err := l.agent().Trash(t.Context()); err != nil || (len(found) == 1) != c.inTrash {
					t.Errorf("disk failed the %dth time, then the trash holds %v, error %v", n, found, err)
				}
				if c.kept && !c.inTrash {
					l.whole(what)
				}
			}
			if n-1 < c.least {
				t.Errorf("%d times something was put on disk, want %d", n-1, c.least)
			}
		})
	}
}
