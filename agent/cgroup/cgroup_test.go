package cgroup

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"
)

// tree is a picture of cgroups: mountinfo lines and files below a directory.
func tree(t *testing.T, mounts string, files map[string]string) Tree {
	t.Helper()
	root := t.TempDir()
	info := filepath.Join(root, "mountinfo")
	text := os.Expand(mounts, func(string) string { return root })
	if err := os.WriteFile(info, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, content := range files {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return Tree{root: root, parent: "/stead", mounts: info}
}

const (
	unified = "30 24 0:26 / $root rw,nosuid shared:4 - cgroup2 cgroup2 rw\n"
	hybrid  = "30 24 0:26 / $root/unified rw - cgroup2 cgroup2 rw\n" +
		"31 24 0:27 / $root/memory rw - cgroup cgroup rw,memory\n" +
		"32 24 0:28 / $root/freezer rw - cgroup cgroup rw,freezer\n"
)

func TestEmptyIsSeenInEveryHierarchy(t *testing.T) {
	for _, c := range []struct {
		name   string
		mounts string
		files  map[string]string
		want   bool
		fails  bool
	}{
		{"an absent cgroup is empty", unified, nil, true, false},
		{"v2 populated", unified, map[string]string{"stead/a/cgroup.events": "populated 1\nfrozen 0\n"}, false, false},
		{"v2 not populated", unified, map[string]string{"stead/a/cgroup.events": "populated 0\n", "stead/a/cgroup.procs": ""}, true, false},
		{"v2 process below", unified, map[string]string{"stead/a/cgroup.events": "populated 0\n", "stead/a/main/cgroup.procs": "12\n"}, false, false},
		{"v1 process below", hybrid, map[string]string{"memory/stead/a/main/cgroup.procs": "12\n"}, false, false},
		{"v1 all trees empty", hybrid, map[string]string{"memory/stead/a/cgroup.procs": "", "freezer/stead/a/main/cgroup.procs": ""}, true, false},
		{"a process without a name counts", hybrid, map[string]string{"freezer/stead/a/cgroup.procs": "0\n"}, false, false},
		{"another member does not", hybrid, map[string]string{"memory/stead/b/cgroup.procs": "12\n"}, true, false},
		{"no hierarchy to be seen proves nothing", "", nil, false, true},
		{"part of a hierarchy proves nothing", "30 24 0:26 /docker/x $root rw - cgroup2 cgroup2 rw\n", nil, false, true},
		{"hierarchies elsewhere prove nothing", "30 24 0:26 / /elsewhere rw - cgroup2 cgroup2 rw\n", nil, false, true},
		{"what cannot be read proves nothing", unified, map[string]string{"stead/a/cgroup.procs": "what\n"}, false, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := tree(t, c.mounts, c.files).Empty("a")
			if got != c.want || (err != nil) != c.fails {
				t.Errorf("got %v, %v; want %v, failure %v", got, err, c.want, c.fails)
			}
		})
	}
}

func TestKillEndsWithItsContextWhileAProcessIsLeft(t *testing.T) {
	// Pid 0 cannot be named, so nothing is signalled and the cgroup stays.
	c := tree(t, hybrid, map[string]string{"memory/stead/a/cgroup.procs": "0\n"})
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
	defer cancel()
	if err := c.Kill(ctx, "a"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v, want the context's end", err)
	}
}

func TestKillSignalsTheProcessesOfTheCgroupOnly(t *testing.T) {
	inside, outside := exec.Command("sleep", "60"), exec.Command("sleep", "60")
	for _, p := range []*exec.Cmd{inside, outside} {
		if err := p.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { p.Process.Kill(); p.Wait() })
	}
	c := tree(t, hybrid, map[string]string{"memory/stead/a/main/cgroup.procs": strconv.Itoa(inside.Process.Pid) + "\n"})
	dirs, err := c.dirs("a")
	if err != nil || len(dirs) != 1 {
		t.Fatalf("dirs %v, %v", dirs, err)
	}
	if err := killOnce(dirs); err != nil {
		t.Fatal(err)
	}
	if err := inside.Wait(); err == nil || err.Error() != "signal: killed" {
		t.Errorf("the one inside: %v, want it killed", err)
	}
	if err := outside.Process.Signal(syscall.Signal(0)); err != nil {
		t.Errorf("the one outside: %v, want it alive", err)
	}
}

func TestWhatIsFrozenForTheKillIsFreedAgain(t *testing.T) {
	c := tree(t, hybrid, map[string]string{"freezer/stead/a/freezer.state": "THAWED\n", "freezer/stead/a/main/freezer.state": "FROZEN\n", "unified/stead/a/cgroup.procs": ""})
	for _, name := range []string{"cgroup.kill", "cgroup.freeze"} { // a kernel that cannot kill a cgroup
		dir := filepath.Join(c.root, "unified/stead/a", name)
		if name == "cgroup.freeze" {
			if err := os.WriteFile(dir, []byte("0"), 0o600); err != nil {
				t.Fatal(err)
			}
		} else if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.KillOnce("a"); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"freezer/stead/a/freezer.state": "THAWED", "freezer/stead/a/main/freezer.state": "THAWED", "unified/stead/a/cgroup.freeze": "0"} {
		if got, err := os.ReadFile(filepath.Join(c.root, name)); err != nil || string(got) != want {
			t.Errorf("%s says %q, %v; want %q", name, got, err, want)
		}
	}
}

func TestKillsForMemoryAreCounted(t *testing.T) {
	for _, c := range []struct {
		name, mounts, file, text string
		want                     int
	}{
		{"v1", hybrid, "memory/stead/a/memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 2\n", 2},
		{"v2", unified, "stead/a/memory.events", "low 0\noom 3\noom_kill 1\n", 1},
		{"none", unified, "stead/a/memory.events", "oom_kill 0\n", 0},
		{"no counter", unified, "stead/a/cgroup.procs", "", 0},
	} {
		got, err := tree(t, c.mounts, map[string]string{c.file: c.text}).OOMKills("a")
		if got != c.want || err != nil {
			t.Errorf("%s: %d, %v; want %d", c.name, got, err, c.want)
		}
	}
}

func TestATreeThatIsNoLongerMountedIsSeen(t *testing.T) {
	c := tree(t, hybrid, map[string]string{"unified/x": "", "memory/x": "", "freezer/stead/a/cgroup.procs": "12\n"})
	c.known = &trees{}
	for range 2 {
		if empty, err := c.Empty("a"); empty || err != nil {
			t.Fatalf("empty %v, error %v; want a process seen", empty, err)
		}
	}
	// Another directory stands there now, and the table of mounts has none of them.
	freezer := filepath.Join(c.root, "freezer")
	for _, err := range []error{os.Rename(freezer, freezer+"-gone"), os.Mkdir(freezer, 0o700), os.WriteFile(c.mounts, nil, 0o600)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	if empty, err := c.Empty("a"); empty || err == nil {
		t.Errorf("empty %v, error %v; want an error: nothing can be seen", empty, err)
	}
}

func TestHugePagesAreBoundedWhereRuncCan(t *testing.T) {
	for name, c := range map[string]struct {
		mounts string
		files  map[string]string
		want   bool
	}{
		"v2 with the controller":                {unified, map[string]string{"cgroup.controllers": "cpu hugetlb\n"}, true},
		"v2 without it":                         {unified, map[string]string{"cgroup.controllers": "cpu\n"}, false},
		"both, and it is v2's, which runc lets": {hybrid, map[string]string{"unified/cgroup.controllers": "hugetlb\n"}, false},
		"both, and it is v1's":                  {hybrid + "33 24 0:29 / $root/hugetlb rw - cgroup cgroup rw,hugetlb\n", nil, true},
	} {
		if got := tree(t, c.mounts, c.files).BoundsHugePages(); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}
