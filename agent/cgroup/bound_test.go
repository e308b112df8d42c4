package cgroup

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const hybridPids = hybrid + "33 24 0:29 / $root/pids rw - cgroup cgroup rw,pids\n"

func TestAllMembersTogetherAreBounded(t *testing.T) {
	for _, c := range []struct {
		name   string
		mounts string
		files  map[string]string
		bounds Bounds
		fails  string
		want   map[string]string // content by file; "": it is not there
	}{
		{
			"v1", hybridPids, map[string]string{"pids/x": "", "memory/x": ""}, Bounds{100, 1 << 30}, "",
			map[string]string{"pids/stead/pids.max": "100", "memory/stead/memory.limit_in_bytes": "1073741824"},
		},
		{
			"v1, lifted again", hybridPids, map[string]string{"pids/stead/pids.max": "100\n", "memory/stead/memory.limit_in_bytes": "5\n"}, Bounds{}, "",
			map[string]string{"pids/stead/pids.max": "max", "memory/stead/memory.limit_in_bytes": "-1"},
		},
		{
			"v2", unified, map[string]string{"cgroup.controllers": "cpu memory pids\n"}, Bounds{100, 1 << 30}, "",
			map[string]string{"stead/pids.max": "100", "stead/memory.max": "1073741824", "cgroup.subtree_control": "+memory"},
		},
		{
			"what is right is not written", unified, map[string]string{"cgroup.controllers": "memory pids\n", "stead/pids.max": "100\n", "stead/memory.max": "7\n"},
			Bounds{100, 7}, "", map[string]string{"stead/pids.max": "100\n", "stead/memory.max": "7\n"},
		},
		{
			"more memory in use already", unified,
			map[string]string{"cgroup.controllers": "memory pids\n", "stead/memory.stat": "anon 900\nfile 5000\nshmem 200\n"}, Bounds{100, 1000},
			"more than 1000 bytes", map[string]string{"stead/pids.max": "100", "stead/memory.max": ""},
		},
		{
			"cache alone is taken back", unified,
			map[string]string{"cgroup.controllers": "memory pids\n", "stead/memory.stat": "anon 900\nfile 5000\n"}, Bounds{100, 1000}, "",
			map[string]string{"stead/memory.max": "1000"},
		},
		{
			"more memory in use, v1", hybridPids, map[string]string{"pids/x": "", "memory/stead/memory.stat": "rss 1\ntotal_rss 1001\n"}, Bounds{100, 1000},
			"more than 1000 bytes", map[string]string{"pids/stead/pids.max": "100", "memory/stead/memory.limit_in_bytes": ""},
		},
		{
			"without a controller the other holds", hybrid, map[string]string{"memory/x": ""}, Bounds{100, 1000}, "no cgroup controller pids",
			map[string]string{"memory/stead/memory.limit_in_bytes": "1000"},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			tr := tree(t, c.mounts, c.files)
			err := tr.Bound(c.bounds)
			if (err == nil) != (c.fails == "") || err != nil && !strings.Contains(err.Error(), c.fails) {
				t.Errorf("got %v, want %q", err, c.fails)
			}
			for file, want := range c.want {
				got, err := os.ReadFile(filepath.Join(tr.root, file))
				if string(got) != want || (err != nil) != (want == "") {
					t.Errorf("%s: %q, %v; want %q", file, got, err, want)
				}
			}
		})
	}
}

func TestRefusedProcessesAreCounted(t *testing.T) {
	for _, c := range []struct {
		name, mounts, file, text string
		want                     int64
	}{
		{"v1", hybridPids, "pids/stead/a/pids.events", "max 3\n", 3},
		{"v2", unified, "stead/a/pids.events", "max 5\n", 5},
		{"no counter", unified, "stead/a/cgroup.procs", "", 0},
	} {
		got, err := tree(t, c.mounts, map[string]string{c.file: c.text}).Refused("a")
		if got != c.want || err != nil {
			t.Errorf("%s: %d, %v; want %d", c.name, got, err, c.want)
		}
	}
}
