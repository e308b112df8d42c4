package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stead-project/stead/test/judge"
)

// programs are the processes of the machine whose command line holds all the parts.
func programs(parts ...string) (pids []int) {
	dirs, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		panic(err) // only of a bad pattern
	}
next:
	for _, dir := range dirs {
		cmdline, err := os.ReadFile(dir + "/cmdline")
		if err != nil {
			continue // it ended
		}
		for _, part := range parts {
			if !strings.Contains(string(cmdline), part) {
				continue next
			}
		}
		if pid, err := strconv.Atoi(filepath.Base(dir)); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}

// shimOf is the shim of a member of the set life; there is one.
func (l *Lab) shimOf(name string) int {
	l.t.Helper()
	pids := programs("containerd-shim-runc-", "-"+l.nodeName()+"\x00", "\x00default."+name+".life\x00")
	if len(pids) != 1 {
		l.t.Fatalf("shims of %s: %v, want one", name, pids)
	}
	return pids[0]
}

func (l *Lab) kill(pids ...int) {
	l.t.Helper()
	for _, pid := range pids {
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			l.t.Fatalf("kill %d: %v", pid, err)
		}
	}
}

// restartedInPlace waits until a member has restarted once: the same life, here.
func (l *Lab) restartedInPlace(was member) {
	l.t.Helper()
	now := l.waitReady(was.Status.Name, &was)
	if now.Status.Token != was.Status.Token || now.Status.Address != was.Status.Address || now.Status.Restarts != was.Status.Restarts+1 {
		l.t.Errorf("%+v, was %+v; want one restart of the same life", now.Status, was.Status)
	}
}

func TestAKilledShimRestartsItsMemberInPlace(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.startAll(l.toolArchive())
	heard := l.startWitness()
	l.apply("life", lifeSet, "--wait", "--timeout", patience)
	l.mark(0, 1, 2)
	kept := l.stayOf("life-0", "life-2")

	t.Log("the shim alone is killed: containerd ends what it ran")
	was := l.mustMember("life-1")
	old := l.pidsOf("life-1")
	l.kill(l.shimOf("life-1"))
	l.restartedInPlace(was)
	for _, pid := range l.pidsOf("life-1") {
		if slices.Contains(old, pid) {
			judge.Broken(t, "process %d outlived its shim and the restart", pid)
		}
	}

	t.Log("containerd is away when the shim is killed: nothing starts beside the orphan")
	was = l.mustMember("life-1")
	if err := l.containerd.signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	orphan := fmt.Sprint(l.pidsOf("life-1"))
	l.kill(l.shimOf("life-1"))
	l.waitCause("life-1", "RuntimeUnavailable")
	if now := fmt.Sprint(l.pidsOf("life-1")); now != orphan {
		judge.Broken(t, "the orphan %s became %s", orphan, now)
	}
	l.startContainerd()
	l.restartedInPlace(was)

	l.eventually(time.Minute, "why it was restarted is told", func() error {
		out, err := l.trySteadFor(time.Minute, "describe", "member", "life-1")
		if err != nil || !strings.Contains(out, "137") && !strings.Contains(out, "its exit code is not known") {
			return fmt.Errorf("describe says %s, %v", out, err)
		}
		return nil
	})
	l.assertStay(kept)
	l.assertMark(0, 1, 2)
	l.stead("delete", "set", "life", "--wait", "--timeout", patience)
	l.assertOneLife(heard, "life-0", "life-1", "life-2")
}
