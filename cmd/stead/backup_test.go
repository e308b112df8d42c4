package main

import (
	"bytes"
	"context"
	"encoding/base64"
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
	flags       []string
}

// start returns when it answers; stop ends it and waits.
func (s *realServer) start() (stop func()) {
	s.t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(s.t.Context()))
	var out lines
	ended := make(chan int, 1)
	go func() {
		ended <- run(ctx, append([]string{"server", "--data-dir", s.dir, "--socket", s.socket, "--name", "a", "--cidr", "10.88.0.0/16"}, s.flags...), &out, &out)
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

// The first server and its disk are gone; the second has a backup and the private key, and nothing else.
func TestAnEncryptedBackupIsAllThatNewServersNeed(t *testing.T) {
	short, err := os.MkdirTemp("", "stead-backup-") // socket paths have a limit
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(short) })
	at := func(name string) string { return filepath.Join(short, name) }
	s := &realServer{t: t, dir: at("server"), socket: at("s")}
	public, other := s.must("backup", "keygen", at("key")), s.must("backup", "keygen", at("other"))
	if err := os.WriteFile(at("public"), []byte(public), 0o600); err != nil {
		t.Fatal(err)
	}
	s.refused("file exists", "backup", "keygen", at("key"))
	s.flags = []string{"--backup-recipient", at("public"), "--backup-dir", at("backups"), "--backup-keep", "2"}
	stop := s.start()
	s.must("apply", "-f", "testdata/files.yaml")
	for deadline := time.Now().Add(patience); !strings.Contains(s.must("status"), "the last good one is"); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("no backup is made:\n%s", s.must("status"))
		}
	}
	if out := s.must("backup", "ls", at("backups")); strings.Count(out, "whole") != 1 || !strings.Contains(out, "yes") {
		t.Errorf("it lists\n%s", out)
	}
	file, plain := at("monday.backup"), at("plain.backup")
	if out := s.must("backup", "create", "--to", file); strings.Contains(out, "not encrypted") {
		t.Errorf("it says %q", out)
	}
	if out := s.must("backup", "create", "--to", plain, "--plain"); !strings.Contains(out, "not encrypted, and does not have the key") {
		t.Errorf("it says %q", out)
	}
	s.refused("file already exists", "backup", "create", "--to", file)
	secret, err := os.ReadFile(filepath.Join(s.dir, "secret.key"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{file, plain} {
		content, err := os.ReadFile(path)
		if err != nil || bytes.Contains(content, secret) || bytes.Contains(content, []byte(base64.StdEncoding.EncodeToString(secret))) || bytes.Contains(content, []byte("hunter2-in-clear")) {
			t.Errorf("%s shows a secret (%v)", path, err)
		}
	}
	if out := s.must("backup", "verify", file); !strings.Contains(out, "its content was not read") {
		t.Errorf("without the key:\n%s", out)
	}
	if out := s.must("backup", "verify", file, "--key", at("key")); !strings.Contains(out, "its key opens all 1 that are sealed") {
		t.Errorf("with the key:\n%s", out)
	}
	if out := s.must("backup", "verify", plain); !strings.Contains(out, "you also need secret.key") {
		t.Errorf("not encrypted:\n%s", out)
	}
	s.refused("does not open it", "backup", "verify", file, "--key", at("other"))
	if other == public {
		t.Error("two keys are the same")
	}
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for name, bad := range map[string][]byte{"short": content[:len(content)/2], "flipped": append(bytes.Clone(content[:len(content)-1]), ^content[len(content)-1])} {
		path := filepath.Join(at("backups"), name+".backup")
		if err := os.WriteFile(path, bad, 0o600); err != nil {
			t.Fatal(err)
		}
		s.refused("damaged", "backup", "verify", path)
		s.refused("cannot be used", "backup", "ls", at("backups"))
		s.refused("damaged", "backup", "unpack", path, "--key", at("key"), "--data-dir", at("none"))
	}
	stop()

	s.dir, s.flags = at("new"), nil
	s.refused("--key", "backup", "unpack", file, "--data-dir", s.dir)
	if out := s.must("backup", "unpack", plain, "--data-dir", at("third")); !strings.Contains(out, "copy secret.key") {
		t.Errorf("it says %q", out)
	}
	// A crash came after the key and before the store.
	if err := os.WriteFile(filepath.Join(s.dir, "secret.key"), secret, 0o600); err != nil {
		t.Fatal(err)
	}
	s.must("backup", "unpack", file, "--key", at("key"), "--data-dir", s.dir)
	if got, err := os.ReadFile(filepath.Join(s.dir, "secret.key")); err != nil || !bytes.Equal(got, secret) {
		t.Errorf("the key of Secrets differs: %v", err)
	}
	stop = s.start()
	if out := s.must("restore", "--status"); !strings.Contains(out, "HELD") {
		t.Errorf("the store is not held:\n%s", out)
	}
	s.must("restore", "--yes")
	if out := s.must("get", "secret", "pass", "-o", "yaml"); !strings.Contains(out, "password") {
		t.Errorf("the Secret: %s", out)
	}
	stop()
}
