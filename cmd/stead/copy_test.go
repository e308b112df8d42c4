package main

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stead-project/stead/agent/runtime"
)

// copying is a cluster with the set db whose containers run commands on this machine, below its
// directory "in".
func copying(t *testing.T) (c *cluster, in string) {
	c = newCluster(t, nil)
	in = t.TempDir()
	c.host.OnExec(func(ctx context.Context, _ runtime.ContainerID, e runtime.Exec) (int, error) {
		run := exec.CommandContext(ctx, e.Command[0], e.Command[1:]...)
		run.Dir, run.Stdin, run.Stdout, run.Stderr, run.WaitDelay = in, e.Stdin, e.Stdout, e.Stderr, time.Second
		err := run.Run()
		if exit, ok := errors.AsType[*exec.ExitError](err); ok {
			return exit.ExitCode(), nil
		}
		return 0, err
	})
	if code, out := c.stead("apply", "-f", "testdata/db.yaml", "--wait", "--timeout", "2m"); code != exitDone {
		t.Fatal(out)
	}
	return c, in
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o640)); err != nil {
		t.Fatal(err)
	}
}

func wantFile(t *testing.T, path, want string) {
	t.Helper()
	if got, err := os.ReadFile(path); err != nil || string(got) != want {
		t.Errorf("%s: got %q, %v, want %q", path, got, err, want)
	}
}

func TestFilesAreCopiedBothWays(t *testing.T) {
	c, in := copying(t)
	here := t.TempDir()
	ok := func(args ...string) {
		t.Helper()
		if code, out := c.stead(append([]string{"cp"}, args...)...); code != exitDone {
			t.Errorf("cp %v: %d, %s", args, code, out)
		}
	}
	large := strings.Repeat("0123456789abcdef", 20_000) // several messages
	write(t, in+"/data/snap.db", large)
	write(t, in+"/data/conf/a.conf", "x=1")
	ok("db-0:"+in+"/data/snap.db", here+"/mine.db")
	wantFile(t, here+"/mine.db", large)
	ok("db-0:"+in+"/data/snap.db", here)
	wantFile(t, here+"/snap.db", large)
	ok("default/db-0:data", here+"/all") // below the container's directory
	wantFile(t, here+"/all/conf/a.conf", "x=1")
	ok("pod/db-0:"+in+"/data/.", here+"/all")
	wantFile(t, here+"/all/data/snap.db", large)

	ok(here+"/mine.db", "db-1:"+in+"/back.db")
	wantFile(t, in+"/back.db", large)
	ok(here+"/all", "db-1:"+in+"/data")
	wantFile(t, in+"/data/all/conf/a.conf", "x=1")
	ok(here+"/all/conf", "db-1:"+in+"/renamed")
	wantFile(t, in+"/renamed/a.conf", "x=1")
	if info, err := os.Stat(in + "/renamed/a.conf"); err != nil || info.Mode().Perm() != 0o640 {
		t.Errorf("the mode is %v, %v", info.Mode(), err)
	}
	for want, args := range map[string][]string{
		"one of source and destination must be MEMBER:PATH": {"a", "b"},
		"and the other one local":                           {"db-0:/a", "db-1:/b"},
		"takes a source and a destination":                  {"a"},
	} {
		if code, out := c.stead(append([]string{"cp"}, args...)...); code != exitUsage || !strings.Contains(out, want) {
			t.Errorf("cp %v: %d, %s", args, code, out)
		}
	}
	for want, args := range map[string][]string{
		"tar in db-0: exit code": {"db-0:" + in + "/nothere", here},
		"no such file":           {here + "/nothere", "db-0:/tmp/x"},
		"does not exist in db-0": {here + "/mine.db", "db-0:" + in + "/no/dir/"},
		"the directory":          {"db-0:" + in + "/data", here + "/none/"},
		"there is no member":     {"db-9:/etc", here},
	} {
		if code, out := c.stead(append([]string{"cp"}, args...)...); code != exitRefused || !strings.Contains(out, want) {
			t.Errorf("cp %v: %d, %s", args, code, out)
		}
	}
}

// TestAnArchiveOfAMemberWritesNothingElsewhere: names that lead out, links and setuid bits do nothing.
func TestAnArchiveOfAMemberWritesNothingElsewhere(t *testing.T) {
	outside := t.TempDir()
	for name, c := range map[string]struct {
		entries []tar.Header
		err     string
	}{
		"up":                    {[]tar.Header{{Name: "data/../../evil", Typeflag: tar.TypeReg}}, "not asked for"},
		"absolute":              {[]tar.Header{{Name: outside + "/evil", Typeflag: tar.TypeReg}}, "not asked for"},
		"a neighbor":            {[]tar.Header{{Name: "data2/x", Typeflag: tar.TypeReg}}, "not asked for"},
		"links":                 {[]tar.Header{{Name: "data/l", Typeflag: tar.TypeSymlink, Linkname: outside}, {Name: "data/l/evil", Typeflag: tar.TypeReg}}, ""},
		"a link that was there": {[]tar.Header{{Name: "data/out/evil", Typeflag: tar.TypeReg}}, "escapes"},
		"a link to a file":      {[]tar.Header{{Name: "data/file", Typeflag: tar.TypeReg}}, "escapes"},
		"setuid":                {[]tar.Header{{Name: "data/s", Typeflag: tar.TypeReg, Mode: 0o6755}}, ""},
		"nothing":               {nil, "sent nothing"},
	} {
		var archive bytes.Buffer
		w := tar.NewWriter(&archive)
		for _, h := range c.entries {
			if err := w.WriteHeader(&h); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		dir := t.TempDir()
		if err := errors.Join(os.Mkdir(dir+"/mine", 0o755), os.Symlink(outside, dir+"/mine/out"), os.Symlink(outside+"/evil", dir+"/mine/file")); err != nil {
			t.Fatal(err)
		}
		root, err := os.OpenRoot(dir)
		if err != nil {
			t.Fatal(err)
		}
		err = unpacker{root: root, from: "data", to: "mine", errOut: io.Discard}.unpack(&archive)
		if (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%s: got %v, want %q", name, err, c.err)
		}
		if info, err := os.Stat(dir + "/mine/s"); err == nil && info.Mode() != 0o755 {
			t.Errorf("%s: the mode is %v", name, info.Mode())
		}
		if left, _ := os.ReadDir(outside); len(left) > 0 {
			t.Fatalf("%s: %v was written outside", name, left)
		}
		root.Close()
	}
}
