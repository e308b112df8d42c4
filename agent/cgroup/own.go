package cgroup

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
)

// Own is a cgroup of processes that are to be killed apart from the others in its path.
type Own struct {
	// Procs are the cgroup.procs files that each of them is to be written to.
	Procs []string
	tree  Tree
	path  string
	at    hierarchy // its directory is in this one
}

// Kill is Tree.Kill of this cgroup, and looks at the one hierarchy only that has it.
func (o *Own) Kill(ctx context.Context) error {
	return killAll(ctx, o.path, func() ([]hierarchy, error) {
		if _, err := os.Stat(o.at.path); err == nil {
			return []hierarchy{o.at}, nil
		}
		return o.tree.dirs(o.path) // it is gone, unless nothing is to be seen at all
	})
}

// Own makes a cgroup of its own below path. It is made in one hierarchy only, by which
// Kill can reach it, so that in all others the processes share the limits of path as its
// own do. Of path itself, Empty and Kill see them, too.
func (c Tree) Own(path, name string) (*Own, error) {
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
	made := &Own{tree: c, path: filepath.Join(path, name), at: dirs[at]}
	for _, h := range dirs {
		made.Procs = append(made.Procs, filepath.Join(h.path, "cgroup.procs"))
	}
	return made, nil
}

// Pids are the processes in path and below. 0 is one that has no number here.
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

// Put moves a process into path of every hierarchy that takes it, making path there. It
// fails when none does: the process is where it was.
func (c Tree) Put(path string, pid int) error {
	all, err := c.hierarchies()
	if err != nil {
		return err
	}
	var errs []error
	for _, h := range all {
		dir := filepath.Join(h.path, c.parent, path)
		err := os.MkdirAll(dir, 0o755)
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, "cgroup.procs"), []byte(strconv.Itoa(pid)), 0)
		}
		if err != nil {
			errs = append(errs, err) // v1's cpuset takes none before it is set up
		}
	}
	if len(errs) == len(all) {
		return fmt.Errorf("put process %d into cgroup %s: %w", pid, path, errors.Join(errs...))
	}
	return nil
}
