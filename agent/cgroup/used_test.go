package cgroup

import (
	"slices"
	"testing"
	"time"
)

func TestUsedIsWhatTheHierarchiesCount(t *testing.T) {
	for _, c := range []struct {
		name   string
		mounts string
		files  map[string]string
		cpu    time.Duration
		memory int64
	}{
		{"an absent cgroup has used nothing", unified, nil, 0, 0},
		{"v2", unified, map[string]string{
			"stead/a/cpu.stat": "usage_usec 2500000\nuser_usec 1\n", "stead/a/memory.current": "1000\n",
			"stead/a/memory.stat": "anon 1\ninactive_file 300\nactive_file 5\n",
		}, 2500 * time.Millisecond, 700},
		{"v2 without a memory controller", unified, map[string]string{"stead/a/cpu.stat": "usage_usec 7\n"}, 7 * time.Microsecond, 0},
		{"more file pages than memory, as between two reads", unified, map[string]string{
			"stead/a/memory.current": "100\n", "stead/a/memory.stat": "inactive_file 300\n",
		}, 0, 0},
		{"v1 beside v2", hybrid + "33 24 0:29 / $root/cpu rw - cgroup cgroup rw,cpu,cpuacct\n", map[string]string{
			"unified/stead/a/cpu.stat": "usage_usec 0\n", "cpu/stead/a/cpuacct.usage": "9000\n",
			"memory/stead/a/memory.usage_in_bytes": "1000\n", "memory/stead/a/memory.stat": "inactive_file 1\ntotal_inactive_file 400\n",
		}, 9 * time.Microsecond, 600},
	} {
		cpu, memory, err := tree(t, c.mounts, c.files).Used("a")
		if err != nil || cpu != c.cpu || memory != c.memory {
			t.Errorf("%s: got %v, %d, %v, want %v, %d", c.name, cpu, memory, err, c.cpu, c.memory)
		}
	}
	if _, _, err := tree(t, unified, map[string]string{"stead/a/memory.current": "much\n"}).Used("a"); err == nil {
		t.Error("a number that is none is accepted")
	}
}

func TestHeldIsWhatCannotBeTakenBack(t *testing.T) {
	for _, c := range []struct {
		name    string
		mounts  string
		files   map[string]string
		held    int64
		unified bool
	}{
		{"an absent cgroup holds nothing", unified, nil, 0, true},
		{"v2", unified, map[string]string{
			"stead/a/memory.current": "1000\n", "stead/a/memory.stat": "anon 400\ninactive_file 300\nactive_file 50\nslab_reclaimable 10\n",
		}, 640, true},
		{"more file pages than memory, as between two reads", unified, map[string]string{
			"stead/a/memory.current": "100\n", "stead/a/memory.stat": "inactive_file 300\n",
		}, 0, true},
		{"v1 beside v2", hybrid, map[string]string{
			"unified/stead/a/cgroup.procs": "", "memory/stead/a/memory.usage_in_bytes": "1000\n",
			"memory/stead/a/memory.stat": "inactive_file 1\ntotal_inactive_file 400\ntotal_active_file 100\n",
		}, 500, false},
	} {
		tr := tree(t, c.mounts, c.files)
		if held, err := tr.Held("a"); err != nil || held != c.held {
			t.Errorf("%s: got %d, %v, want %d", c.name, held, err, c.held)
		}
		if got := tr.Unified(); got != c.unified {
			t.Errorf("%s: Unified is %v", c.name, got)
		}
	}
	if _, err := tree(t, unified, map[string]string{"stead/a/memory.stat": "active_file much\n"}).Held("a"); err == nil {
		t.Error("a number that is none is accepted")
	}
}

func TestChildrenAreThoseOfAllHierarchies(t *testing.T) {
	got, err := tree(t, hybrid, map[string]string{
		"memory/stead/a/b/x": "", "memory/stead/a/c/x": "", "freezer/stead/a/c/x": "", "freezer/stead/a/d/x": "", "freezer/stead/a/file": "",
	}).Children("a")
	if want := []string{"b", "c", "d"}; err != nil || !slices.Equal(got, want) {
		t.Errorf("got %v, %v, want %v", got, err, want)
	}
}
