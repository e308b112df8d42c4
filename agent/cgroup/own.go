package cgroup

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
)

// Own makes a cgroup of its own below path for processes that are to be killed apart
// from the others in path, and returns the cgroup.procs files that each of them is to be
// written to. It is made in one hierarchy only, by which Kill can reach it, so that in
// all others the processes share the limits of path as its own do. Of path itself, Empty
// and Kill see them, too.
func (c Tree) Own(path, name string) ([]string, error) {
	dirs, err := c.dirs(path)
	if err != nil {
		return nil, err
	}
	if len(dirs) == 0 {
		return nil, fmt.Errorf("cgroup %s is not there", path)
	}
	at := slices.IndexFunc(dirs, func(h hierarchy) bool { return h.v2 })
	if at < 0 {
		at = max(slices.IndexFunc(dirs, func(h hierarchy) bool { return slices.Contains(h.controllers, "freezer") }), 0)
	}
	own := filepath.Join(dirs[at].path, name)
	if err := os.Mkdir(own, 0o755); err != nil && !os.IsExist(err) {
		return nil, fmt.Errorf("make cgroup: %w", err)
	}
	dirs[at].path = own
	var procs []string
	for _, h := range dirs {
		procs = append(procs, filepath.Join(h.path, "cgroup.procs"))
	}
	return procs, nil
}

// Pids are the processes in path and below. 0 stands for one without a name here.
func (c Tree) Pids(path string) ([]int, error) {
	dirs, err := c.dirs(path)
	if err != nil {
		return nil, err
	}
	var pids []int
	for _, h := range dirs {
		here, err := procs(h.path)
		if err != nil {
			return nil, err
		}
		pids = append(pids, here...)
	}
	slices.Sort(pids)
	return slices.Compact(pids), nil
}
