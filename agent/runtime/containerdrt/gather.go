package containerdrt

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// gatherDescendants moves a command that the runtime started (leader; 0: an earlier agent's, not
// known), and all that has come of it, into the cgroup through which it is ended. It is the way of containers that cannot be entered.
// What left its session, its parents and its environment before it was seen here is not
// found; it goes with the container.
func (r *commands) gatherDescendants(path string, leader int, mark string) {
	own, err := r.cgroups.Own(path, ownCgroup)
	if err != nil {
		return // the container has ended
	}
	at := slices.IndexFunc(own.Procs, func(f string) bool { return strings.HasSuffix(f, "/"+ownCgroup+"/cgroup.procs") })
	for moved := map[int]bool{}; ; {
		pids, err := r.cgroups.Pids(path)
		if err != nil {
			return
		}
		more := false
		for _, pid := range descendants(pids, leader, parentAndSession, func(pid int) bool { return marked(pid, mark) }) {
			if !moved[pid] {
				moved[pid], more = true, true
				_ = os.WriteFile(own.Procs[at], []byte(strconv.Itoa(pid)), 0) // it may have ended
			}
		}
		if !more {
			return
		}
	}
}

// descendants are those of pids that are of the leader's session, carry its mark, or come down
// from one that does.
func descendants(pids []int, leader int, lineage func(int) (parent, session int), marked func(int) bool) []int {
	found := map[int]bool{}
	for more := true; more; {
		more = false
		for _, pid := range pids {
			if pid <= 0 || found[pid] {
				continue
			}
			parent, session := lineage(pid)
			if leader > 0 && (pid == leader || session == leader) || found[parent] || marked(pid) {
				found[pid], more = true, true
			}
		}
	}
	return slices.DeleteFunc(slices.Clone(pids), func(pid int) bool { return !found[pid] })
}

// markName is the variable that marks what the runtime started for us.
const markName = "STEAD_PROBE="

// marked reports whether a process was started with a mark in its environment that begins
// like this.
func marked(pid int, mark string) bool {
	text, err := os.ReadFile(filepath.Join(procDir(pid), "environ"))
	return err == nil && slices.ContainsFunc(strings.Split(string(text), "\x00"), func(e string) bool { return strings.HasPrefix(e, mark) })
}

// parentAndSession reads a process's parent and session: the fourth and the sixth field of stat.
func parentAndSession(pid int) (parent, session int) {
	text, err := os.ReadFile(filepath.Join(procDir(pid), "stat"))
	if err != nil {
		return 0, 0
	}
	f := bytes.Fields(text[bytes.LastIndexByte(text, ')')+1:])
	if len(f) < 4 {
		return 0, 0
	}
	parent, _ = strconv.Atoi(string(f[1]))
	session, _ = strconv.Atoi(string(f[3]))
	return parent, session
}
