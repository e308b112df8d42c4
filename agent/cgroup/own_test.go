package cgroup

import (
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"testing"
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
				if got, err := tree.Own("a/main", "probe"); err != nil || !reflect.DeepEqual(got, want) {
					t.Errorf("got %v, %v; want %v", got, err, want)
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

func TestPidsAreThoseOfAllHierarchiesAndBelow(t *testing.T) {
	c := tree(t, hybrid, map[string]string{
		"unified/stead/a/main/cgroup.procs": "12\n", "memory/stead/a/main/probe/cgroup.procs": "13\n12\n", "memory/stead/b/cgroup.procs": "14\n",
	})
	if got, err := c.Pids("a/main"); err != nil || !slices.Equal(got, []int{12, 13}) {
		t.Errorf("got %v, %v; want 12 and 13", got, err)
	}
}
