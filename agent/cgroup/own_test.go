package cgroup

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

const legacy = "31 24 0:27 / $root/memory rw - cgroup cgroup rw,memory\n" +
	"32 24 0:28 / $root/freezer rw - cgroup cgroup rw,freezer\n"

// TestACgroupOfItsOwnIsMadeWhereItCanBeKilled: in all other hierarchies the processes
// stay below the limits of the container itself.
func TestACgroupOfItsOwnIsMadeWhereItCanBeKilled(t *testing.T) {
	files := map[string]string{}
	for _, h := range []string{"", "unified/", "memory/", "freezer/"} {
		files[h+"stead/a/main/cgroup.procs"] = ""
	}
	for _, c := range []struct {
		name, mounts string
		want         []string
	}{
		{"v2", unified, []string{"stead/a/main/probe"}},
		{"both", hybrid, []string{"unified/stead/a/main/probe", "memory/stead/a/main", "freezer/stead/a/main"}},
		{"v1", legacy, []string{"memory/stead/a/main", "freezer/stead/a/main/probe"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			tree := tree(t, c.mounts, files)
			var want []string
			for _, dir := range c.want {
				want = append(want, filepath.Join(tree.root, dir, "cgroup.procs"))
			}
			for range 2 { // it may be there
				got, err := tree.Own("a/main", "probe")
				if err != nil {
					t.Fatal(err)
				}
				if !slices.Equal(got.Procs, want) {
					t.Errorf("got %v, want %v", got.Procs, want)
				}
			}
			if _, err := tree.Own("b/main", "probe"); err == nil {
				t.Error("a container that is not there got a cgroup")
			}
			if _, err := os.Stat(filepath.Join(tree.root, "stead/b")); err == nil {
				t.Error("it was made")
			}
		})
	}
}

// TestACgroupOfItsOwnIsKilledWhereItIs: and one that cannot be seen is not empty.
func TestACgroupOfItsOwnIsKilledWhereItIs(t *testing.T) {
	c := tree(t, hybrid, map[string]string{"unified/stead/a/main/cgroup.procs": "0\n", "memory/stead/a/main/cgroup.procs": "0\n"})
	own, err := c.Own("a/main", "probe")
	if err != nil {
		t.Fatal(err)
	}
	short, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if err := own.Kill(short); err != nil {
		t.Errorf("nothing is in it: %v", err)
	}
	procs := own.Procs[0]
	if err := os.WriteFile(procs, []byte("0\n"), 0o600); err != nil { // pid 0 cannot be signalled
		t.Fatal(err)
	}
	if err := own.Kill(short); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a process is in it: %v, want the context's end", err)
	}
	if err := os.RemoveAll(filepath.Dir(procs)); err != nil {
		t.Fatal(err)
	}
	if err := own.Kill(t.Context()); err != nil {
		t.Errorf("it is gone: %v", err)
	}
	if err := os.WriteFile(c.mounts, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := own.Kill(t.Context()); err == nil {
		t.Error("no hierarchy is to be seen, and it was called empty")
	}
}

func TestPidsAreThoseOfAllHierarchiesAndBelow(t *testing.T) {
	c := tree(t, hybrid, map[string]string{
		"unified/stead/a/main/cgroup.procs": "12\n", "memory/stead/a/main/probe/cgroup.procs": "13\n12\n", "memory/stead/b/cgroup.procs": "14\n",
	})
	if got, err := c.Pids("a/main"); err != nil || !slices.Equal(got, []int{12, 13}) {
		t.Errorf("got %v, %v; want 12 and 13", got, err)
	}
}
