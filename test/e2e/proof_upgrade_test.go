package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stead-project/stead/test/judge"
)

// otherStead builds the program with another version, and another stead-node and stead-dns in it.
func (l *Lab) otherStead() string {
	l.t.Helper()
	replace := map[string][]byte{}
	for _, name := range []string{"stead-node", "stead-dns"} {
		file := "cmd/stead/embed/" + name
		replace[file] = append(l.source(file), "other"...)
	}
	return l.buildStead("other", replace)
}

// source is a file of the tree.
func (l *Lab) source(file string) []byte {
	l.t.Helper()
	content, err := os.ReadFile(filepath.Join("../..", file))
	if err != nil {
		l.t.Fatal(err)
	}
	return content
}

// buildStead builds the program as that version, with other content of files of the tree.
func (l *Lab) buildStead(version string, files map[string][]byte) string {
	l.t.Helper()
	root, err := filepath.Abs("../..")
	if err != nil {
		l.t.Fatal(err)
	}
	replace := map[string]string{}
	for file, content := range files {
		other := l.path(version + "." + filepath.Base(file))
		if err := os.WriteFile(other, content, 0o755); err != nil {
			l.t.Fatal(err)
		}
		replace[filepath.Join(root, file)] = other
	}
	overlay, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		l.t.Fatal(err)
	}
	file, out := l.path(version+".json"), l.path("stead."+version)
	if err := os.WriteFile(file, overlay, 0o600); err != nil {
		l.t.Fatal(err)
	}
	build := exec.CommandContext(l.t.Context(), "go", "build", "-overlay", file, "-ldflags", "-s -w -X main.version="+version, "-o", out, "./cmd/stead")
	build.Dir, build.Env = root, append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=-buildvcs=false")
	if text, err := build.CombinedOutput(); err != nil {
		l.t.Fatalf("build stead %s: %v\n%s", version, err, text)
	}
	return out
}

// startUnit starts a unit's command with another program, and flags as its options.
func (l *Lab) startUnit(unit, program string, flags ...string) *process {
	l.t.Helper()
	text, err := os.ReadFile("../../deploy/" + unit)
	if err != nil {
		l.t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if command, found := strings.CutPrefix(strings.TrimSpace(line), "ExecStart="); found {
			argv := strings.Fields(command)
			if len(argv) != 3 || argv[0] != "/usr/local/bin/stead" || !strings.HasPrefix(argv[2], "$STEAD_") {
				l.t.Fatalf("%s: %q is no program, verb and options", unit, command)
			}
			name := fmt.Sprint(strings.TrimSuffix(unit, ".service"), ".", len(l.all)) // a log of its own
			return l.start(name, append([]string{program, argv[1]}, flags...)...)
		}
	}
	l.t.Fatalf("%s starts nothing", unit)
	return nil
}

// stopUnits ends the main processes as systemd does with KillMode=process.
func (l *Lab) stopUnits() {
	l.t.Helper()
	end(l.t, l.agent)
	end(l.t, l.server)
	l.agent, l.server = nil, nil
}

// waitVersion waits until a server of that version answers and the agent started last
// has a session with it.
func (l *Lab) waitVersion(version string) {
	l.t.Helper()
	l.eventually(time.Minute, "a server of version "+version+" has the node", func() error {
		out, err := l.trySteadFor(time.Minute, "version")
		log, err2 := os.ReadFile(l.agent.log)
		if err != nil || err2 != nil {
			return fmt.Errorf("%v: %s; %v", err, out, err2)
		}
		if server := out[strings.Index(out, "server")+1:]; !strings.Contains(server, version) || !strings.Contains(string(log), "session started") {
			return fmt.Errorf("version: %s; the agent: %s", out, log)
		}
		return nil
	})
}

// ownVersion is that of the program under test.
func (l *Lab) ownVersion() string {
	l.t.Helper()
	out, _ := l.trySteadFor(time.Minute, "version") // no server runs yet: an error
	fields := strings.Fields(out)
	if len(fields) < 2 || fields[0] != "client" {
		l.t.Fatalf("version tells %q", out)
	}
	return fields[1]
}

// loggers are the paths of the loggers' programs that run in the lab.
func (l *Lab) loggers() (paths []string) {
	l.t.Helper()
	all, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		l.t.Fatal(err)
	}
	for _, file := range all {
		cmdline, err := os.ReadFile(file)
		if path, _, _ := strings.Cut(string(cmdline), "\x00"); err == nil && strings.HasPrefix(path, l.path("agent/bin")) && strings.HasSuffix(path, "stead-node") {
			paths = append(paths, path)
		}
	}
	slices.Sort(paths)
	return slices.Compact(paths)
}

// An upgrade is another program behind the same unit. Members do not notice, whichever
// way it goes, and neither when one process becomes two.
func TestAnUpgradeTouchesNoMember(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	other := l.otherStead()
	ours := l.ownVersion()
	heard := l.startWitness()
	pair := func(program string) {
		l.server = l.startUnit("stead-server.service", program, "--data-dir", l.path("server"), "--socket", l.Socket)
		l.agent = l.startUnit("stead-agent.service", program, append(l.agentFlags(), "--server", "unix://"+l.Socket)...)
	}
	single := func(program string) {
		l.agent = l.startUnit("stead.service", program, "--root", l.Dir, "--run-dir", l.path("run"), "--socket", l.Socket,
			"--node", l.nodeName(), "--containerd", l.containerdSocket())
	}
	pair(steadBinary)
	l.waitVersion(ours)
	l.stead("image", "load", l.toolArchive())
	l.apply("life", lifeSet, "--wait", "--timeout", patience)
	names := []string{"life-0", "life-1", "life-2"}
	stand := func() (all []string) {
		for _, name := range names {
			m := l.waitReady(name, nil)
			all = append(all, fmt.Sprint(m.Status.Token, m.Status.Address, m.Status.Revision, l.begun(name)))
		}
		return all
	}
	was, old := stand(), l.loggers()
	if len(old) != 1 {
		t.Fatalf("loggers %v; want one program", old)
	}
	asking := l.startAsker("life", names...)
	answering := l.oneNameServer(0)
	for _, step := range []struct {
		what, version string
		start         func()
	}{
		{"upgraded", "other", func() { pair(other) }},
		{"one process instead of two", "other", func() { single(other) }},
		{"and the old program again", ours, func() { pair(steadBinary) }},
		{"upgraded for good", "other", func() { pair(other) }},
	} {
		t.Log(step.what)
		l.stopUnits()
		step.start()
		l.waitVersion(step.version)
		if now := stand(); !slices.Equal(now, was) {
			judge.Broken(t, "members were %v and are %v", was, now)
		}
		if step.what != "one process instead of two" { // of the same version
			answering = l.oneNameServer(answering)
		}
	}
	asking.saw()
	t.Log("lives of before and after: logs, a new life, an end")
	if out := l.stead("logs", "life-1"); !strings.Contains(out, "life of default/life-1 with token") {
		t.Errorf("logs of a life of before: %q", out)
	}
	before := l.mustMember("life-0")
	l.stead("restart", "life-0")
	l.waitReady("life-0", &before)
	if now := l.loggers(); len(now) != 2 || !slices.Contains(now, old[0]) {
		t.Errorf("loggers are %v, were %v; want the old one beside a new one", now, old)
	}
	if now := stand(); now[0] == was[0] || now[1] != was[1] || now[2] != was[2] {
		t.Errorf("members are %v, were %v; want another life-0 only", now, was)
	}
	l.stead("scale", "life", "--replicas", "2", "--wait", "--timeout", patience)
	l.assertOneLife(heard, names...)
}
