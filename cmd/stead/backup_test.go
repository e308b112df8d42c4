package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// realServer is 'stead server' with its embedded store, in this process.
type realServer struct {
	t           *testing.T
	dir, socket string
}

// start returns when it answers; stop ends it and waits.
func (s *realServer) start() (stop func()) {
	s.t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(s.t.Context()))
	var out lines
	ended := make(chan int, 1)
	go func() {
		ended <- run(ctx, []string{"server", "--data-dir", s.dir, "--socket", s.socket, "--name", "a", "--cidr", "10.88.0.0/16"}, &out, &out)
	}()
	stop = sync.OnceFunc(func() {
		cancel()
		<-ended
	})
	s.t.Cleanup(stop)
	for deadline := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		if code, _ := s.stead("status"); code == exitDone {
			return stop
		}
		if time.Now().After(deadline) {
			s.t.Fatalf("the server does not answer:\n%s", out.String())
		}
	}
}

func (s *realServer) stead(args ...string) (int, string) {
	ctx, cancel := context.WithTimeout(s.t.Context(), patience)
	defer cancel()
	var out lines
	code := run(ctx, append([]string{"--server", "unix://" + s.socket}, args...), &out, &out)
	return code, out.String()
}

func (s *realServer) must(args ...string) string {
	s.t.Helper()
	code, out := s.stead(args...)
	if code != exitDone {
		s.t.Fatalf("stead %s: code %d:\n%s", strings.Join(args, " "), code, out)
	}
	return out
}

func (s *realServer) refused(want string, args ...string) {
	s.t.Helper()
	if code, out := s.stead(args...); code != exitRefused || !strings.Contains(out, want) {
		s.t.Errorf("stead %s: code %d, no %q in:\n%s", strings.Join(args, " "), code, want, out)
	}
}

func TestAStoreThatWasUnpackedIsHeldUntilItsRestoreIsDeclared(t *testing.T) {
	for name, forget := range map[string]string{"the server remembers": "", "the server is new": "seen.json"} {
		t.Run(name, func(t *testing.T) {
			short, err := os.MkdirTemp("", "stead-backup-") // socket paths have a limit
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { os.RemoveAll(short) })
			s := &realServer{t: t, dir: filepath.Join(short, "server"), socket: filepath.Join(short, "s")}
			file, store := filepath.Join(short, "b.db"), filepath.Join(s.dir, "etcd")
			stop := s.start()
			s.must("apply", "-f", "testdata/files.yaml")
			if out := s.must("backup", "save", file); !strings.Contains(out, "keys at revision") {
				t.Errorf("it says %q", out)
			}
			if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
				t.Errorf("the file: %v, %v", info, err)
			}
			s.refused("already exists", "backup", "save", file)
			s.must("apply", "-f", "testdata/db.yaml")
			s.refused("is locked", "backup", "unpack", file, "--data-dir", s.dir)
			stop()
			s.refused("has a store already", "backup", "unpack", file, "--data-dir", s.dir)
			if err := os.Rename(store, store+".old"); err != nil {
				t.Fatal(err)
			}
			if forget != "" {
				if err := os.Remove(filepath.Join(s.dir, forget)); err != nil {
					t.Fatal(err)
				}
			}
			s.must("backup", "unpack", file, "--data-dir", s.dir)
			stop = s.start()
			if out := s.must("restore", "--status"); !strings.Contains(out, "HELD") {
				t.Errorf("the store is not held:\n%s", out)
			}
			s.refused("went back", "apply", "-f", "testdata/db.yaml")
			s.must("restore", "--yes")
			if out := s.must("get", "sets"); strings.Contains(out, "db") {
				t.Errorf("a set that was made after the backup is there:\n%s", out)
			}
			s.must("apply", "-f", "testdata/db.yaml")
			stop()
			stop = s.start()
			if out := s.must("restore", "--status"); strings.Contains(out, "HELD") {
				t.Errorf("it is held again at its next start:\n%s", out)
			}
			stop()
		})
	}
}

func TestAnExternalStoreIsBackedUpThere(t *testing.T) {
	c := newCluster(t, nil)
	c.play("backup.txt")
	file := filepath.Join(t.TempDir(), "b.db")
	if code, out := c.stead("backup", "save", file); code != exitRefused || !strings.Contains(out, "etcdctl snapshot save") {
		t.Errorf("code %d:\n%s", code, out)
	}
	if left, err := filepath.Glob(file + "*"); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}
