package cgroup

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
)

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
