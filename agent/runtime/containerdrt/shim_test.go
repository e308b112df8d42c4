package containerdrt

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestOnlyShimsOfTheContainerAreReaped(t *testing.T) {
	r := newRuntime(&daemon{cfg: Config{Namespace: "ns"}})
	for _, c := range []struct {
		name, cmdline string
		want          bool
	}{
		{"a shim", "/usr/bin/containerd-shim-runc-v2 -namespace ns -id a -address s", true},
		{"of another container", "/usr/bin/containerd-shim-runc-v2 -namespace ns -id b -address s", false},
		{"of another namespace", "/usr/bin/containerd-shim-runc-v2 -namespace other -id a -address s", false},
		{"what the daemon runs to start a shim", "/usr/bin/containerd-shim-runc-v2 -namespace ns -id a -address s start", false},
		{"what the daemon runs after a shim died", "/usr/bin/containerd-shim-runc-v2 -namespace ns -id a -bundle d delete", false},
		{"another program", "/bin/vi -namespace ns -id a", false},
		{"a kernel thread", "", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			line := strings.ReplaceAll(c.cmdline, " ", "\x00")
			if err := os.WriteFile(filepath.Join(dir, "cmdline"), []byte(line), 0o600); err != nil {
				t.Fatal(err)
			}
			if got := r.isShim(dir, "a"); got != c.want {
				t.Errorf("got %t, want %t", got, c.want)
			}
		})
	}
}

func TestOnlyTheContainersOwnBundleIsTakenForLeft(t *testing.T) {
	r := newRuntime(&daemon{cfg: Config{Namespace: "ns"}})
	for text, want := range map[string]string{
		"failed to start shim: mkdir /x/io.containerd.runtime.v2.task/ns/a: file exists: unknown":    "/x/io.containerd.runtime.v2.task/ns/a",
		"failed to start shim: mkdir /x/io.containerd.runtime.v2.task/ns/b: file exists: unknown":    "",
		"failed to start shim: mkdir /x/io.containerd.runtime.v2.task/other/a: file exists: unknown": "",
		"mkdir /home/a: file exists": "",
		"no such image":              "",
	} {
		if got, left := r.bundleLeft("a", errors.New(text)); got != want || left != (want != "") {
			t.Errorf("%s: got %q, %t", text, got, left)
		}
	}
	if got, left := r.bundleLeft("a", nil); left {
		t.Errorf("without an error: got %q", got)
	}
}
