package host

import (
	"cmp"
	"fmt"
	"os/exec"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// The programs of Options.OCIRuntime.
const (
	// RunC is runc, as containerd's shim finds it.
	RunC = "runc"
	// CRun is crun, which starts a container in less time. It needs a host with cgroup v2 alone.
	CRun = "crun"
	// AutoRuntime is crun where it is installed and the host has cgroup v2 alone, and runc elsewhere.
	AutoRuntime = "auto"
)

// ociRuntime is the path of the program that makes containers; "": runc, as containerd's shim finds it. unified: the host has
// cgroup v2 alone; find finds a program.
func (o *Options) ociRuntime(unified bool, find func(string) (string, error)) (path string, err error) {
	name := cmp.Or(o.OCIRuntime, RunC)
	switch name {
	case RunC:
		return "", nil
	case CRun, AutoRuntime:
	default:
		return "", OptionError{fmt.Errorf("--oci-runtime %q: write %s, %s or %s", o.OCIRuntime, RunC, CRun, AutoRuntime)}
	}
	path, err = find(CRun)
	if err == nil {
		path, err = filepath.Abs(path)
	}
	switch {
	case err == nil && unified:
		return path, nil
	case name == AutoRuntime:
		return "", nil
	case err != nil:
		return "", OptionError{fmt.Errorf("--oci-runtime %s: %w; install crun, or write %s", CRun, err, AutoRuntime)}
	}
	return "", OptionError{fmt.Errorf("--oci-runtime %s: this host has cgroup v1, which crun does not support beside v2; boot with systemd.unified_cgroup_hierarchy=1, or write %s",
		CRun, AutoRuntime)}
}

// unifiedCgroups reports whether the host has cgroup v2 alone.
func unifiedCgroups(root string) bool {
	var st unix.Statfs_t
	return unix.Statfs(root, &st) == nil && st.Type == unix.CGROUP2_SUPER_MAGIC
}

// findRuntime is Options.ociRuntime on this host.
func (o *Options) findRuntime() (string, error) {
	return o.ociRuntime(unifiedCgroups("/sys/fs/cgroup"), exec.LookPath)
}
