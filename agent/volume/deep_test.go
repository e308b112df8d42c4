package volume

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/stead-project/stead/agent/runtime"
	"github.com/stead-project/stead/internal/deeptree"
	"github.com/stead-project/stead/spec"
)

// deepTree makes directories in one another below path, whose names together are longer
// than any path may be, with a file in the last one.
func deepTree(t *testing.T, path string) {
	t.Helper()
	at, err := unix.Open(path, unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	name := strings.Repeat("d", 200)
	for range deep {
		if err := unix.Mkdirat(at, name, 0o700); err != nil {
			t.Fatal(err)
		}
		next, err := unix.Openat(at, name, unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		if err != nil {
			t.Fatal(err)
		}
		unix.Close(at)
		at = next
	}
	file, err := unix.Openat(at, "last", unix.O_CREAT|unix.O_WRONLY|unix.O_CLOEXEC, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	unix.Close(file)
	unix.Close(at)
}

// deep is how many directories deepTree makes.
const deep = 1000

// bound is the CPU time that nothing may take which is done to the tree once: that of
// descending it three hundred times. A walk that opens each directory a few times takes a
// fifth of it at most, one that opens each anew from the top twice as much at least.
func bound(t *testing.T, path string) time.Duration {
	t.Helper()
	name := strings.Repeat("d", 200)
	return 15 * work(t, func() {
		for range 20 {
			at, err := unix.Open(path, unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
			for range deep {
				if err != nil {
					t.Fatal(err)
				}
				up := at
				at, err = unix.Openat(up, name, unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
				unix.Close(up)
			}
			unix.Close(at)
		}
	})
}

// fewOpen bounds the files that this process may hold open, until the test ends.
func fewOpen(t *testing.T) {
	t.Helper()
	var before unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &before); err != nil {
		t.Fatal(err)
	}
	set := func(l unix.Rlimit) {
		if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &l); err != nil {
			t.Error(err)
		}
	}
	set(unix.Rlimit{Cur: deep / 10, Max: before.Max})
	t.Cleanup(func() { set(before) })
}

// work is how much CPU time do takes, however busy the machine is.
func work(t *testing.T, do func()) time.Duration {
	t.Helper()
	spent := func() time.Duration {
		var u unix.Rusage
		if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
			t.Fatal(err)
		}
		return time.Duration(u.Utime.Nano() + u.Stime.Nano())
	}
	begin := spent()
	do()
	return spent() - begin
}

func TestATreeOfAnyDepthIsGivenToItsGroupAndErased(t *testing.T) {
	v, g := begin(t), group(t)
	path := ensure(t, v, true)
	fewOpen(t)
	deepTree(t, path)
	bound := bound(t, path)
	if err := unix.Mkfifo(filepath.Join(path, "pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	given := work(t, func() {
		if _, err := v.Ensure(t.Context(), db0, data, false, &runtime.Group{ID: g}); err != nil {
			t.Fatal(err)
		}
	})
	top, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer top.Close()
	seen := 0
	check := func(dir int, name string) error {
		seen++
		var st unix.Stat_t
		err := unix.Fstatat(dir, name, &st, unix.AT_SYMLINK_NOFOLLOW)
		if err == nil && int64(st.Gid) != g {
			err = errors.New(name + " was left out")
		}
		return err
	}
	if err := (deeptree.Visits{File: check, Dir: check}).Walk(t.Context(), top); err != nil || seen != deep+2 {
		t.Errorf("%d were seen, want %d; error %v", seen, deep+2, err)
	}
	if err := v.Reclaim(t.Context(), toTrash); err != nil {
		t.Fatal(err)
	}
	erased := work(t, func() {
		if err := v.Erase(t.Context(), data.Class, data.ID); err != nil {
			t.Fatal(err)
		}
	})
	if given > bound || erased > bound {
		t.Errorf("given in %s, erased in %s, want at most %s of CPU time", given, erased, bound)
	}
	if left := below(t, v.classes["local"]); slices.ContainsFunc(left, func(p string) bool { return strings.Contains(p, string(data.ID)) }) {
		t.Errorf("left: %v", left)
	}
}

func TestScratchOfAnyDepthGoes(t *testing.T) {
	v := begin(t)
	path, err := v.Scratch(t.Context(), runtime.Scratch{ID: db0, Token: spec.Token{Epoch: 1, Number: 7}, Name: "tmp"})
	if err != nil {
		t.Fatal(err)
	}
	fewOpen(t)
	deepTree(t, path)
	bound := bound(t, path)
	removed := work(t, func() {
		if err := v.RemoveScratch(t.Context(), db0); err != nil {
			t.Fatal(err)
		}
	})
	if removed > bound {
		t.Errorf("removed in %s, want at most %s of CPU time", removed, bound)
	}
	if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("it is left: %v", err)
	}
}
