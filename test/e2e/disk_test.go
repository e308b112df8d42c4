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
)

// TestAMemberWaitsForItsDiskAndGoesOnWithItsData: it wrote and was never ready, its host
// boots, and its disk is not mounted. No second volume is made in the mount point.
func TestAMemberWaitsForItsDiskAndGoesOnWithItsData(t *testing.T) {
	t.Parallel()
	disk := smallDisk(t, 16)
	l := newLab(t)
	l.boot = l.path("boot-id")
	boot := func(id string) {
		if err := os.WriteFile(l.boot, []byte(id), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	boot("11111111-1111-4111-8111-111111111111")
	l.startServer()
	class := []string{"--storage-class", "ssd=" + disk}
	l.startAgent(class...)
	l.stead("image", "load", l.toolArchive())
	set := strings.NewReplacer("NAME", "slow", "CLASS", "ssd",
		"volumeMounts:", "readinessProbe: {tcpSocket: {port: 9}, periodSeconds: 1}\n        volumeMounts:").Replace(classSet)
	l.apply("slow", set)
	data := filepath.Join(disk, "default/slow/data-0/data")
	l.eventually(time.Minute, "it writes", func() error {
		_, err := os.Stat(filepath.Join(data, "mine"))
		return err
	})
	if err := os.WriteFile(filepath.Join(data, "vote"), []byte("kept"), 0o600); err != nil {
		t.Fatal(err)
	}
	was := l.mustMember("slow-0")
	if was.Status.Ready {
		t.Fatal("it is ready: this tests one that never was")
	}

	t.Log("the host boots, and the disk is away")
	if err := l.agent.signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	purge := append(append([]string{"agent", "purge"}, l.agentFlags()...), class...)
	if out, err := l.inside(hanging, steadBinary, purge...); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	l.run("umount", disk)
	boot("22222222-2222-4222-8222-222222222222")
	l.startAgent(class...)
	l.stead("image", "load", l.toolArchive())
	m := l.waitCause("slow-0", "DiskMissing")
	for _, want := range []string{disk, "mounted at", "stead agent accept-disk ssd"} {
		if !strings.Contains(m.Status.Message, want) {
			t.Errorf("the message does not say %q: %s", want, m.Status.Message)
		}
	}
	if found, err := os.ReadDir(disk); err != nil || len(found) > 0 {
		t.Fatalf("something was made in the mount point: %v, %v", found, err)
	}

	t.Log("the disk is mounted")
	l.run("mount", "-o", "loop", filepath.Join(filepath.Dir(disk), "image"), disk)
	l.eventually(time.Minute, "it runs again", func() error {
		m, err := l.member("slow-0")
		if err == nil && (m.Status.Phase != "Running" || len(l.pidsOf("slow-0")) == 0 || m.Status.Token == was.Status.Token) {
			err = fmt.Errorf("%+v", m.Status)
		}
		return err
	})
	if kept, err := os.ReadFile(filepath.Join(data, "vote")); err != nil || string(kept) != "kept" {
		t.Errorf("its data: %q, %v", kept, err)
	}

	t.Log("its volume alone is gone")
	was = l.mustMember("slow-0")
	if err := os.Rename(filepath.Dir(data), filepath.Join(disk, "away")); err != nil {
		t.Fatal(err)
	}
	l.stead("restart", "slow-0")
	l.waitCause("slow-0", "VolumeMissing")
	if _, err := os.Lstat(filepath.Dir(data)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a second volume was made: %v", err)
	}
	if err := os.Rename(filepath.Join(disk, "away"), filepath.Dir(data)); err != nil {
		t.Fatal(err)
	}
	l.eventually(time.Minute, "it runs once more", func() error {
		m, err := l.member("slow-0")
		if err == nil && (m.Status.Phase != "Running" || m.Status.Token == was.Status.Token) {
			err = fmt.Errorf("%+v", m.Status)
		}
		return err
	})
}
