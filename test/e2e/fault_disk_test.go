package e2e

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stead-project/stead/test/judge"
)

// smallDisk makes an ext4 of so many MiB in a file and returns its directory. It is
// made before the lab, so that it is taken away after it.
func smallDisk(t *testing.T, mib int) string {
	t.Helper()
	needRoot(t)
	sweepDisks(t)
	l := &Lab{t: t}
	dir, err := os.MkdirTemp("", "stead-disk-")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "owner"), fmt.Appendf(nil, "%d", os.Getpid()), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { removeDisk(t, dir) })
	image, mount := filepath.Join(dir, "image"), filepath.Join(dir, "disk")
	if err := os.Mkdir(mount, 0o755); err != nil {
		t.Fatal(err)
	}
	l.run("fallocate", "-l", fmt.Sprintf("%dM", mib), image)
	l.run("mkfs.ext4", "-q", "-m", "0", image)
	l.run("mount", "-o", "loop", image, mount)
	return mount
}

func removeDisk(t testing.TB, dir string) {
	// Not mounted: there was no time to, or it is gone already.
	if err := syscall.Unmount(filepath.Join(dir, "disk"), 0); err != nil && err != syscall.EINVAL && err != syscall.ENOENT {
		t.Errorf("unmount: %v", err)
		return // never empty what is mounted
	}
	if err := os.RemoveAll(dir); err != nil {
		t.Error(err)
	}
}

// sweepDisks takes away the disks of test programs that were killed.
func sweepDisks(t testing.TB) {
	dirs, err := filepath.Glob(filepath.Join(os.TempDir(), "stead-disk-*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range dirs {
		if owner, err := os.ReadFile(filepath.Join(dir, "owner")); err == nil && !running(string(owner)) {
			removeDisk(t, dir)
		}
	}
}

// waitLog waits until the member's output holds the word.
func (l *Lab) waitLog(name, word string) {
	l.t.Helper()
	l.eventually(time.Minute, name+" says "+word, func() error {
		out, err := l.trySteadFor(time.Minute, "logs", name)
		if err != nil || !strings.Contains(out, word) {
			return fmt.Errorf("%v: %s", err, out)
		}
		return nil
	})
}

func TestAFullDiskUnderAStorageClassIsNamedAndHealsWhenItHasRoom(t *testing.T) {
	t.Parallel()
	disk := smallDisk(t, 4)
	l := newLab(t)
	l.startServer()
	l.startAgent("--storage-class", "small="+disk)
	l.stead("image", "load", l.toolArchive())
	l.apply("harm", harmWith("disk, /data/mine", "small"), "--wait", "--timeout", patience)
	was := l.mustMember("harm-0")
	l.waitLog("harm-0", "no space left on device")

	t.Log("a new volume does not find room: told by name, with the directory")
	l.stead("scale", "harm", "--replicas", "2")
	m := l.waitCause("harm-1", "VolumeRefused")
	for _, want := range []string{"no space left on device", disk, "free space there"} {
		if !strings.Contains(m.Status.Message, want) {
			t.Errorf("the message does not say %q: %s", want, m.Status.Message)
		}
	}
	for _, args := range [][]string{{"describe", "set", "harm"}, {"get", "members"}} {
		l.eventually(time.Minute, "the set tells it, too", func() error { // its status follows the member's
			return l.steadSays("VolumeRefused", args...)
		})
	}
	if now := l.waitReady("harm-0", nil); now.Status.Token != was.Status.Token || now.Status.Restarts != 0 {
		judge.Broken(t, "harm-0 was touched: %+v", now.Status)
	}
	if kept, err := os.Stat(filepath.Join(disk, "default", "harm", "data-0", "data", "mine")); err != nil || kept.Size() == 0 {
		judge.Broken(t, "harm-0's data: %v, %v", kept, err)
	}
	t.Log("the step that the message names: room")
	if err := os.Truncate(filepath.Join(disk, "default", "harm", "data-0", "data", "mine"), 0); err != nil {
		t.Fatal(err)
	}
	l.waitReady("harm-1", nil)
}

func TestAnAgentOnAFullDiskKeepsItsLedgerAndItsMembers(t *testing.T) {
	t.Parallel()
	disk := smallDisk(t, 24)
	l := newLab(t)
	if err := os.Symlink(disk, l.path("agent")); err != nil {
		t.Fatal(err)
	}
	l.startAll(l.toolArchive())
	heard := l.startWitness()
	l.apply("life", lifeSet, "--wait", "--timeout", patience)
	l.apply("harm", harmWith("disk, /data/mine", "local"), "--wait", "--timeout", patience)
	mine := filepath.Join(disk, "volumes", "default", "harm", "data-0", "data", "mine")
	l.eventually(time.Minute, "the disk is full", func() error { // its log may find no room either
		err := os.WriteFile(filepath.Join(disk, "probe"), []byte("room"), 0o600)
		if errors.Is(err, syscall.ENOSPC) {
			return nil
		}
		return errors.Join(errors.New("there is room"), err, os.Remove(filepath.Join(disk, "probe")))
	})
	before := fmt.Sprint(l.pidsOf("life-0"), l.pidsOf("life-1"), l.pidsOf("harm-0"))

	t.Log("the agent is killed and comes back: members run on, one can be stopped for good")
	if err := l.agent.signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	l.startAgent()
	l.waitReady("life-0", nil)
	l.stead("scale", "life", "--replicas", "2", "--wait", "--timeout", patience)

	t.Log("a new life finds no room and says so; nothing of it runs")
	l.stead("scale", "life", "--replicas", "4")
	var m member
	l.eventually(time.Minute, "life-3 says that there is no room", func() (err error) {
		if m, err = l.member("life-3"); err != nil {
			return err
		}
		if !strings.Contains(m.Status.Message, "no space left on device") || m.Status.Ready {
			return fmt.Errorf("%+v", m.Status)
		}
		return nil
	})
	if pids := l.pidsOf("life-3"); len(pids) > 0 {
		judge.Broken(t, "life-3 runs: %v", pids)
	}
	if !strings.Contains(m.Status.Message, "free space there") {
		t.Errorf("the message names no step: %s", m.Status.Message)
	}
	if now := fmt.Sprint(l.pidsOf("life-0"), l.pidsOf("life-1"), l.pidsOf("harm-0")); now != before {
		judge.Broken(t, "processes changed from %s to %s", before, now)
	}
	if err := os.Truncate(mine, 0); err != nil {
		t.Fatal(err)
	}
	l.waitReady("life-3", nil)
	l.assertOneLife(heard, "life-0", "life-1", "life-2", "life-3")
}
