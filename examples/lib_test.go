package examples

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stead-project/stead/records"
)

// Every manifest that has a lib.sh has examples/lib.sh: an example stays one file to apply.
func TestManifestsCarryTheLibraryAsItIs(t *testing.T) {
	lib, err := tree.ReadFile("lib.sh")
	if err != nil {
		t.Fatal(err)
	}
	manifests, err := filepath.Glob("*/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	carried := 0
	for _, path := range manifests {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(text), "\n  lib.sh: |\n") {
			continue
		}
		carried++
		set := strings.TrimSuffix(filepath.Base(path), ".yaml")
		has := script(t, set, "lib.sh")
		if *update {
			if err := os.WriteFile(path, []byte(strings.Replace(string(text), indented(has), indented(string(lib)), 1)), 0o644); err != nil {
				t.Fatal(err)
			}
		} else if has != string(lib) {
			t.Errorf("%s has another lib.sh than examples/lib.sh: go test ./examples -run %s -update", path, t.Name())
		}
	}
	if carried < 2 {
		t.Errorf("%d manifests have it", carried)
	}
}

// indented is a script as a manifest has it, with its key.
func indented(script string) string {
	var out strings.Builder
	out.WriteString("\n  lib.sh: |\n")
	for line := range strings.Lines(script) {
		if line != "\n" {
			out.WriteString("    ")
		}
		out.WriteString(line)
	}
	return out.String()
}

// inShells runs what begins with lib.sh in each shell that entry scripts may be written for.
func inShells(t *testing.T, text string, test func(t *testing.T, h *home)) {
	t.Helper()
	for _, shell := range []string{"bash", "dash"} {
		t.Run(shell, func(t *testing.T) {
			t.Parallel()
			if _, err := exec.LookPath(shell); err != nil {
				t.Skipf("there is no %s", shell)
			}
			h := newHome(t, "etcd", 2)
			h.put("lib.sh", library(t))
			h.put("main.sh", "set -eu\n. \"$LIB\"\n"+text)
			h.put("entry.sh", "exec "+shell+" "+h.dir+"/main.sh\n")
			h.set(threeEmpty(h))
			test(t, h)
		})
	}
}

func library(t *testing.T) string {
	t.Helper()
	lib, err := tree.ReadFile("lib.sh")
	if err != nil {
		t.Fatal(err)
	}
	return string(lib)
}

func (h *home) run() {
	h.t.Helper()
	_, wait := h.start()
	wait()
}

func TestAMemberFormsAClusterOnlyWhereThereWasNone(t *testing.T) {
	used := func(p *records.Snapshot) { p.Peers[1].Volumes = records.VolumesUsed }
	for _, c := range []struct {
		name  string
		set   func(p *records.Snapshot)
		files map[string]string
		says  string // and waits for a cluster, where that is the first of it
		code  int    // -1: it waits
	}{
		{"an initial member with a first disk forms it", nil, map[string]string{"facts/volume-new": "other replaced\ndata first\n"}, "forming the cluster of members 0 1 2", 0},
		{"a disk that was used and is empty is refused", nil, map[string]string{"facts/volume-new": "other first\n"}, "refused: the disk was used before", 75},
		{"where a member has data it joins", used, map[string]string{"facts/volume-new": "data first\n"}, "", 1},
		{"where the set was complete it joins", func(p *records.Snapshot) { p.Bootstrapped = true }, map[string]string{"facts/volume-new": "data first\n"}, "", 1},
		{"the file says that it was complete, too", nil, map[string]string{"facts/volume-new": "data first\n", "facts/bootstrapped": "1\n"}, "", 1},
		{"another member waits", func(p *records.Snapshot) { p.InitialOrdinals = []int{0, 1} }, map[string]string{"facts/volume-new": "data first\n"}, "waiting for the first members", -1},
		{"12 is not 2", func(p *records.Snapshot) { p.InitialOrdinals = []int{12, 20} }, map[string]string{"facts/volume-new": "data first\n"}, "waiting for the first members", -1},
	} {
		t.Run(c.name, func(t *testing.T) {
			inShells(t, "forms data && exit 0 || exit 1", func(t *testing.T, h *home) {
				p := threeEmpty(h)
				if c.set != nil {
					c.set(&p)
				}
				h.set(p)
				for name, text := range c.files {
					h.put(name, text)
				}
				_, wait := h.start()
				if want := c.code; want < 0 {
					until(t, "it says that it waits", func() bool { return strings.Contains(h.read("log"), c.says) })
					used(&p)
					h.set(p)
					wait()
					if h.code != 1 {
						t.Errorf("code %d once there is a cluster, want 1\n%s", h.code, h.read("log"))
					}
					return
				}
				wait()
				if h.code != c.code || !strings.Contains(h.read("log"), c.says) {
					t.Errorf("code %d, want %d and %q in %q", h.code, c.code, c.says, h.read("log"))
				}
			})
		})
	}
	t.Run("one of the initial members forms it alone", func(t *testing.T) {
		inShells(t, `look; forms data "${STEAD_INITIAL_ORDINALS%% *}" && exit 0 || exit 1`, func(t *testing.T, h *home) {
			h.put("facts/volume-new", "data first\n")
			p := threeEmpty(h)
			_, wait := h.start()
			until(t, "it says that it waits", func() bool { return strings.Contains(h.read("log"), "waiting for the first members") })
			used(&p)
			h.set(p)
			wait()
			if h.code != 1 {
				t.Errorf("code %d, want 1", h.code)
			}
		})
	})
}

func TestTheLibraryTellsAndReadsFacts(t *testing.T) {
	inShells(t, `look; peers; echo "[$(volume data)] [$(volume logs)] [$(noted 1)] [$(noted 0)]"
tell note "seqno 9"; cat "$facts/self/note"; ls "$facts/self"`, func(t *testing.T, h *home) {
		p := threeEmpty(h)
		p.Peers[1].Note = "seqno '7'"
		p.Expected = []records.Peer{{Name: "etcd-4", Ordinal: 4, FQDN: "etcd-4.etcd.d", Volumes: records.VolumesUsed}}
		p.Peers = append(p.Peers, h.peer(2)) // itself
		h.set(p)
		h.put("facts/volume-new", "logs replaced\n")
		h.run()
		want := "etcd-0.etcd.d\netcd-1.etcd.d\n[] [replaced] [seqno '7'] []\nseqno 9\nnote\n"
		if got := h.read("log"); h.code != 0 || got != want {
			t.Errorf("code %d, %q, want %q", h.code, got, want)
		}
	})
}

func TestInsistGivesUpWithTheReason(t *testing.T) {
	inShells(t, `n=0
later() { n=$((n + 1)); why="not yet"; [ $n -ge 2 ]; }
never() { why="it is never so"; return 1; }
PATIENCE=1; insist later; echo "after $n"; PATIENCE=0; insist never; echo "not reached"`, func(t *testing.T, h *home) {
		h.run()
		want := "entry: waiting to join: not yet\nafter 2\nentry: waiting to join: it is never so\nentry: refused: cannot join: it is never so\n"
		if got := h.read("log"); h.code != 75 || got != want {
			t.Errorf("code %d, %q, want 75, %q", h.code, got, want)
		}
	})
}

// The database runs until a signal, and ends with code 9.
func TestAStopReachesTheDatabaseAfterTheMemberLeft(t *testing.T) {
	for _, c := range []struct{ name, reason, calls string }{
		{"an update", "Update\n", "stops\n"},
		{"a scale to zero", "ScaleToZero\n", "stops\n"},
		{"no reason", "", "stops\n"},
		{"a scale-down", "ScaleDown\n", "leaves\nstops\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			inShells(t, `leave() { echo leaves >>"$FAKE/calls"; false; }
start "$FAKE/bin/database" run; await`, func(t *testing.T, h *home) {
				h.put("bin/database", `#!/bin/bash
trap 'echo stops >> "$FAKE/calls"; exit 9' TERM
: > "$FAKE/$1"
while :; do sleep 0.02; done
`)
				cmd, wait := h.start()
				until(t, "the database runs", func() bool { return h.has("run") })
				if c.reason != "" {
					h.put("facts/termination-reason", c.reason)
				}
				if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
					t.Fatal(err)
				}
				wait()
				if h.code != 9 || h.read("calls") != c.calls {
					t.Errorf("code %d, calls %q, want 9, %q\n%s", h.code, h.read("calls"), c.calls, h.read("log"))
				}
			})
		})
	}
	t.Run("before it was started", func(t *testing.T) {
		inShells(t, `leave() { echo leaves >>"$FAKE/calls"; }
: >"$FAKE/run"; while :; do sleep 0.05; done`, func(t *testing.T, h *home) {
			h.put("facts/termination-reason", "ScaleDown\n")
			cmd, wait := h.start()
			until(t, "the script runs", func() bool { return h.has("run") })
			if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
				t.Fatal(err)
			}
			wait()
			if h.code != 143 || h.read("calls") != "leaves\n" {
				t.Errorf("code %d, calls %q, want 143 and that it leaves", h.code, h.read("calls"))
			}
		})
	})
	t.Run("its own end is the script's", func(t *testing.T) {
		inShells(t, `start sh -c 'exit 3'; await`, func(t *testing.T, h *home) {
			h.run()
			if h.code != 3 {
				t.Errorf("code %d, want 3", h.code)
			}
		})
	})
}
