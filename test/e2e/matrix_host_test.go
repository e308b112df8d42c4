package e2e

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// commandTime bounds a command that only looks or sets something.
const commandTime = time.Minute

// powerOff takes a host's link and then its power, so that it ends at once for everybody else.
func (m *matrix) powerOff(i int) {
	m.Helper()
	m.port(fmt.Sprint("h", i), "down")
	m.hosts[i].losePower()
}

// losePower ends all that a host runs, and takes away what does not outlive a boot: mounts, links, cgroups and
// what lies on tmpfs.
func (l *Lab) losePower() {
	l.t.Helper()
	l.eventually(time.Minute, "nothing runs on the host", func() error {
		left := l.everything()
		for _, pid := range left {
			_ = syscall.Kill(pid, syscall.SIGKILL) // it may have ended
		}
		if len(left) > 0 {
			return fmt.Errorf("processes %v", left)
		}
		return nil
	})
	l.unmountAll()
	for _, dir := range []string{l.path("run"), l.path("ctd-state")} {
		if err := removeAll(dir); err != nil {
			l.t.Fatal(err)
		}
	}
	l.eventually(time.Minute, "the cgroups go", func() error {
		for _, dir := range l.cgroups() {
			removeCgroup(dir)
		}
		if left := l.cgroups(); len(left) > 0 {
			return fmt.Errorf("left are %v", left)
		}
		return nil
	})
	l.forgetNetwork()
}

// everything is the processes of the host: Stead's, containerd's and those of members,
// but none of the test's own.
func (l *Lab) everything() (pids []int) {
	l.t.Helper()
	entries, err := os.ReadDir("/proc")
	if err != nil {
		l.t.Fatal(err)
	}
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil || pid == os.Getpid() || zombie(pid) {
			continue
		}
		cmdline, _ := os.ReadFile("/proc/" + e.Name() + "/cmdline") // it ended
		group, _ := os.ReadFile("/proc/" + e.Name() + "/cgroup")
		ours := bytes.HasPrefix(cmdline, []byte(toolBinary+"\x00"))
		if !ours && bytes.Contains(cmdline, []byte(l.Dir+"/")) || bytes.Contains(group, []byte("-"+l.nodeName()+"/default.")) {
			pids = append(pids, pid)
		}
	}
	return pids
}

// unmountAll unmounts all that is mounted below the host's directory, newest first.
func (l *Lab) unmountAll() {
	l.t.Helper()
	text, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		l.t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	slices.Reverse(lines)
	for _, line := range lines {
		if fields := strings.Fields(line); strings.HasPrefix(fields[1], l.Dir+"/") {
			l.run("umount", "-l", fields[1])
		}
	}
}

// cgroups are the directories below which the host's members are, one a hierarchy.
func (l *Lab) cgroups() []string {
	v1, _ := filepath.Glob("/sys/fs/cgroup/*/stead-*-" + l.nodeName()) // only a bad pattern fails
	v2, _ := filepath.Glob("/sys/fs/cgroup/stead-*-" + l.nodeName())
	return append(v1, v2...)
}

// removeCgroup removes a cgroup and all below it, as far as nothing is in them.
func removeCgroup(dir string) {
	entries, _ := os.ReadDir(dir) // it may be gone
	for _, e := range entries {
		if e.IsDir() {
			removeCgroup(filepath.Join(dir, e.Name()))
		}
	}
	_ = os.Remove(dir) // who waits looks again
}

// forgetNetwork leaves the host what it had before its first agent.
func (l *Lab) forgetNetwork() {
	l.t.Helper()
	for line := range strings.Lines(l.run("ip", "-n", l.Name, "-o", "link", "show")) {
		name, _, _ := strings.Cut(strings.Fields(line)[1], "@")
		name = strings.TrimSuffix(name, ":")
		if name != "lo" && name != "up0" {
			_, _ = l.try(commandTime, "ip", "-n", l.Name, "link", "del", name) // it goes with its other end, too
		}
	}
	_, _ = l.try(commandTime, "ip", "-n", l.Name, "address", "flush", "dev", "lo", "to", gateway)
	if out, err := l.inside(commandTime, "nft", "flush", "ruleset"); err != nil {
		l.t.Fatalf("nft: %v %s", err, out)
	}
	l.run("ip", "-n", l.Name, "link", "set", "up0", "down") // its routes go
	l.run("ip", "-n", l.Name, "route", "flush", "table", "main")
	l.run("ip", "-n", l.Name, "link", "set", "up0", "up")
}

// membersHere tells the processes of each member that the kernel counts on the host.
func (l *Lab) membersHere() map[string][]string {
	here := map[string][]string{}
	dirs, _ := filepath.Glob("/sys/fs/cgroup/pids/stead-*-" + l.nodeName() + "/default.*")
	if dirs == nil {
		dirs, _ = filepath.Glob("/sys/fs/cgroup/stead-*-" + l.nodeName() + "/default.*")
	}
	for _, dir := range dirs {
		files := []string{filepath.Join(dir, "cgroup.procs")}
		below, _ := filepath.Glob(filepath.Join(dir, "*", "cgroup.procs"))
		for _, file := range append(files, below...) {
			pids, _ := os.ReadFile(file) // it may be gone
			name := strings.TrimPrefix(filepath.Base(dir), "default.")
			here[name] = append(here[name], strings.Fields(string(pids))...)
		}
	}
	return here
}
