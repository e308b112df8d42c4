package cgroup

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Used is the processor time that path and all below have used since it was made, and the memory
// that they use now without pages of files that were not used lately. What no hierarchy counts is 0.
func (c Tree) Used(path string) (cpu time.Duration, memoryBytes int64, err error) {
	dirs, err := c.dirs(path)
	if err != nil {
		return 0, 0, err
	}
	for _, h := range dirs {
		if h.v2 || slices.Contains(h.controllers, "cpuacct") {
			used, err := h.cpu()
			if err != nil {
				return 0, 0, err
			}
			cpu = max(cpu, used)
		}
		if h.countsMemory() {
			used, err := h.memory("inactive_file")
			if err != nil {
				return 0, 0, err
			}
			memoryBytes = max(memoryBytes, used)
		}
	}
	return cpu, memoryBytes, nil
}

func (h hierarchy) cpu() (time.Duration, error) {
	if h.v2 {
		stat, err := values(filepath.Join(h.path, "cpu.stat"))
		return time.Duration(stat["usage_usec"]) * time.Microsecond, err
	}
	ns, err := number(filepath.Join(h.path, "cpuacct.usage"))
	return time.Duration(ns), err
}

// countsMemory: it has the controller of memory.
func (h hierarchy) countsMemory() bool { return h.v2 || slices.Contains(h.controllers, "memory") }

// memory is what path and all below use, without what memory.stat has under these names.
func (h hierarchy) memory(without ...string) (int64, error) {
	now, below := "memory.current", ""
	if !h.v2 {
		now, below = "memory.usage_in_bytes", "total_"
	}
	used, err := number(filepath.Join(h.path, now))
	if err != nil {
		return 0, err
	}
	stat, err := values(filepath.Join(h.path, "memory.stat"))
	for _, name := range without {
		used -= stat[below+name]
	}
	return max(used, 0), err
}

// Held is the memory that path and all below use and that the kernel cannot take back: without pages of files, and caches of the
// kernel. What no hierarchy counts is 0.
func (c Tree) Held(path string) (bytes int64, err error) {
	dirs, err := c.dirs(path)
	if err != nil {
		return 0, err
	}
	for _, h := range dirs {
		if !h.countsMemory() {
			continue
		}
		held, err := h.memory("active_file", "inactive_file", "slab_reclaimable")
		if err != nil {
			return 0, err
		}
		bytes = max(bytes, held)
	}
	return bytes, nil
}

// Unified reports whether v2 has all controllers, and v1 none.
func (c Tree) Unified() bool {
	all, err := c.hierarchies()
	return err == nil && !slices.ContainsFunc(all, func(h hierarchy) bool { return !h.v2 })
}

// number is the only number of a file; 0 when there is none.
func number(path string) (int64, error) {
	text, err := readCgroup(path)
	if err != nil || len(text) == 0 {
		return 0, err
	}
	n, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", path, err)
	}
	return n, nil
}

// Children are the names of the cgroups right below path, sorted, in whichever hierarchy.
func (c Tree) Children(path string) (names []string, err error) {
	dirs, err := c.dirs(path)
	if err != nil {
		return nil, err
	}
	for _, h := range dirs {
		entries, err := os.ReadDir(h.path)
		if err != nil && !gone(err) {
			return nil, fmt.Errorf("look at cgroup: %w", err)
		}
		for _, e := range entries {
			if e.IsDir() {
				names = append(names, e.Name())
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}
