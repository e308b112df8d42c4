package e2e

import (
	"cmp"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/stead-project/stead/test/judge"
)

const containerdConfig = `version = 2
root = %q
state = %q
disabled_plugins = ["io.containerd.grpc.v1.cri"]
[grpc]
  address = %q
`

// startContainerd starts (again) the lab's own containerd and waits for its socket.
func (l *Lab) startContainerd() {
	l.t.Helper()
	config := l.path("containerd.toml")
	text := fmt.Sprintf(containerdConfig, l.path("ctd"), l.path("ctd-state"), l.containerdSocket())
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		l.t.Fatal(err)
	}
	l.containerd = l.start("containerd", "containerd", "--config", config, "--log-level", "warn")
	l.eventually(time.Minute, "containerd answers", func() error {
		_, err := l.try(time.Minute, "ctr", "--address", l.containerdSocket(), "version")
		return err
	})
}

func (l *Lab) containerdSocket() string { return l.path("ctd.sock") }

// startServer starts (again) the server and waits until it answers.
func (l *Lab) startServer(flags ...string) {
	l.t.Helper()
	argv := append([]string{cmp.Or(l.program, steadBinary), "server", "--data-dir", l.path("server"), "--socket", l.Socket}, l.storeFlags...)
	argv = append(argv, flags...)
	l.server = l.start("server", argv...)
	l.eventually(time.Minute, "the server answers", func() error {
		out, err := l.trySteadFor(time.Minute, "version")
		if err != nil {
			return fmt.Errorf("%w: %s", err, out)
		}
		return nil
	})
}

// agentFlags place an agent into the lab.
func (l *Lab) agentFlags() []string {
	flags := []string{"--root", l.path("agent"), "--run-dir", l.path("run"), "--node", l.nodeName(),
		"--containerd", l.containerdSocket(), "--pressure-disk-percent", "0"} // this machine's disk is not what is tested
	if l.boot != "" {
		flags = append(flags, "--boot-id", l.boot)
	}
	return flags
}

// sessions counts those that agents in the lab began: their node may count as ready by
// the session of an agent that was killed.
func (l *Lab) sessions() int { return l.sessionsIn("agent.log") }

func (l *Lab) sessionsIn(log string) int {
	b, err := os.ReadFile(l.path(log))
	if err != nil && !os.IsNotExist(err) {
		l.t.Fatal(err)
	}
	return strings.Count(string(b), "session started")
}

// startAgent starts (again) the agent and waits until its node is connected by it.
func (l *Lab) startAgent(flags ...string) {
	l.t.Helper()
	way := l.join
	if way == nil {
		way = []string{"--server", "unix://" + l.Socket}
	}
	argv := append(append([]string{cmp.Or(l.program, steadBinary), "agent"}, way...), l.agentFlags()...)
	before := l.sessions()
	l.agent = l.start("agent", append(argv, flags...)...)
	l.eventually(time.Minute, "the node connects", func() error {
		out, err := l.trySteadFor(time.Minute, "get", "nodes")
		if err != nil || !strings.Contains(lineWith(out, l.nodeName()), " Ready") || l.sessions() == before {
			return fmt.Errorf("%v: %s", err, out)
		}
		return nil
	})
}

// startAll starts server and agent and loads the images named.
func (l *Lab) startAll(archives ...string) {
	l.t.Helper()
	l.startServer()
	l.startAgent()
	for _, a := range archives {
		l.stead("image", "load", a)
	}
}

// remove takes everything away that the lab made, and fails the test when
// something cannot be removed.
func (l *Lab) remove() {
	if l.t.Failed() {
		l.t.Log(l.logs() + l.lastWords())
	}
	for _, p := range []*process{l.agent, l.server} {
		if err := p.signal(syscall.SIGTERM); err != nil {
			l.t.Error(err)
		}
	}
	if l.agent != nil && l.containerd != nil {
		l.purge()
	}
	for _, p := range l.all {
		if err := p.signal(syscall.SIGTERM); err != nil {
			l.t.Error(err)
		}
	}
	left := l.leftovers()
	for deadline := time.Now().Add(time.Minute); left != "" && time.Now().Before(deadline); left = l.leftovers() {
		time.Sleep(50 * time.Millisecond) // a shim ends after its containers
	}
	if left != "" {
		judge.Broken(l.t, "left behind:\n%s", left)
	}
	if out, err := l.try(time.Minute, "ip", "netns", "del", l.Name); err != nil {
		l.t.Errorf("ip netns del: %v %s", err, out)
	}
	if err := os.RemoveAll(l.Dir); err != nil {
		l.t.Error(err)
	}
}

// purge ends every member of the lab's node; containerd is started again if need be.
func (l *Lab) purge() {
	if !alive(l.containerdSocket()) {
		l.startContainerd()
	}
	args := append([]string{"--net=/run/netns/" + l.Name, steadBinary, "agent", "purge"}, l.agentFlags()...)
	if out, err := l.try(hanging, "nsenter", args...); err != nil {
		l.t.Errorf("purge: %v\n%s", err, out)
	}
}

func alive(socket string) bool {
	conn, err := net.DialTimeout("unix", socket, time.Second)
	if err != nil {
		return false
	}
	conn.Close()
	return true
}

// leftovers lists mounts, processes and cgroups that still name the lab.
func (l *Lab) leftovers() string {
	var left []string
	if mounts, err := os.ReadFile("/proc/self/mounts"); err == nil {
		for line := range strings.Lines(string(mounts)) {
			if strings.Contains(line, l.Dir+"/") {
				left = append(left, "mount "+strings.TrimSpace(line))
			}
		}
	}
	entries, _ := os.ReadDir("/proc")
	for _, e := range entries {
		cmdline, err := os.ReadFile("/proc/" + e.Name() + "/cmdline")
		if err == nil && strings.Contains(string(cmdline), l.Dir+"/") && !strings.Contains(string(cmdline), "\x00mount\x00") {
			left = append(left, "process "+e.Name()+" "+strings.ReplaceAll(string(cmdline), "\x00", " "))
		}
	}
	groups, _ := filepath.Glob("/sys/fs/cgroup/*/stead-*-" + l.nodeName())
	v2, _ := filepath.Glob("/sys/fs/cgroup/stead-*-" + l.nodeName())
	for _, g := range append(groups, v2...) {
		left = append(left, "cgroup "+g)
	}
	return strings.Join(left, "\n")
}
