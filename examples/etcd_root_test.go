package examples

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stead-project/stead/records"
)

// TestRealEtcdGrowsShrinksAndHeals runs the entry script with Debian's etcd: every
// member has an address on the loopback of a network namespace of the test's own, and
// /etc/hosts of a mount namespace of its own has the names. The test plays Stead.
func TestRealEtcdGrowsShrinksAndHeals(t *testing.T) {
	if os.Getenv("STEAD_ROOT_TESTS") != "1" {
		t.Skip("needs root: set STEAD_ROOT_TESTS=1")
	}
	if os.Getenv("STEAD_INSIDE") != "1" {
		// With the PID namespace everything ends when the test does.
		cmd := exec.CommandContext(t.Context(), "unshare", "--mount", "--net", "--pid", "--fork", "--kill-child", "--mount-proc",
			os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v", "-test.timeout=90s")
		cmd.Env = append(os.Environ(), "STEAD_INSIDE=1")
		if out, err := cmd.CombinedOutput(); err != nil || !bytes.Contains(out, []byte("--- PASS")) {
			t.Fatalf("%v\n%s", err, out)
		}
		return
	}
	c := newEtcdCluster(t)
	for i := range 3 {
		c.begin(i, "data first")
	}
	for i := range 3 {
		c.waitHealthy(i)
	}
	c.setBootstrapped()
	c.ctl("put", "before", "kept")

	t.Log("scale up by two at once")
	c.setReplicas(5)
	c.begin(3, "data first")
	c.begin(4, "data first")
	c.waitHealthy(3)
	c.waitHealthy(4)
	c.wantMembers(5)

	t.Log("a disk is lost and replaced")
	c.end(1, syscall.SIGKILL, "")
	c.wipe(1)
	c.begin(1, "data replaced")
	c.waitHealthy(1)
	c.wantMembers(5)

	t.Log("a restart needs nobody's leave")
	c.end(0, syscall.SIGTERM, "Update")
	c.begin(0, "")
	c.waitHealthy(0)
	c.wantMembers(5)

	t.Log("scale down by two at once")
	c.setReplicas(3)
	for _, i := range []int{4, 3} {
		c.signal(i, syscall.SIGTERM, "ScaleDown")
	}
	c.await(4)
	c.await(3)
	c.wantMembers(3)

	t.Log("scale up again onto the kept disk")
	c.setReplicas(4)
	c.begin(3, "")
	c.waitHealthy(3)
	c.wantMembers(4)

	t.Log("all are killed at once")
	for i := range 4 {
		c.signal(i, syscall.SIGKILL, "")
	}
	for i := range 4 {
		c.await(i)
		c.begin(i, "")
	}
	c.waitHealthy(0)
	if got := c.ctl("get", "--print-value-only", "before"); strings.TrimSpace(got) != "kept" {
		t.Fatalf("the key holds %q", got)
	}
}

const testSize = 5

// etcdCluster is homes of members that run real etcd.
type etcdCluster struct {
	t     *testing.T
	homes []*home
	cmds  []*exec.Cmd
	waits []func()
	tools string
}

func newEtcdCluster(t *testing.T) *etcdCluster {
	t.Helper()
	c := &etcdCluster{t: t, tools: t.TempDir(), cmds: make([]*exec.Cmd, testSize), waits: make([]func(), testSize)}
	for _, pattern := range []string{"etcd-server_*.deb", "etcd-client_*.deb"} {
		found, err := filepath.Glob(filepath.Join("..", ".cache", "debs", pattern))
		if err != nil || len(found) == 0 {
			t.Fatalf("no %s in .cache/debs: run make image", pattern)
		}
		c.command("dpkg-deb", "-x", found[len(found)-1], c.tools)
	}
	c.command("ip", "link", "set", "lo", "up")
	hosts := "127.0.0.1 localhost\n"
	for i := range testSize {
		hosts += fmt.Sprintf("127.0.1.%d etcd-%d.etcd.d\n", i+1, i)
	}
	file := filepath.Join(t.TempDir(), "hosts")
	if err := os.WriteFile(file, []byte(hosts), 0o644); err != nil {
		t.Fatal(err)
	}
	c.command("mount", "--bind", file, "/etc/hosts")
	for i := range testSize {
		h := newEtcdHome(t, i)
		h.env = append(h.env, "PATIENCE=30")
		h.put("bin/etcdctl", "#!/bin/bash\nexec "+c.tools+"/usr/bin/etcdctl \"$@\"\n")
		// All members share one namespace here: each takes its own address only.
		h.put("bin/etcd", fmt.Sprintf("#!/bin/bash\nexec %s/usr/bin/etcd \"${@//0.0.0.0/127.0.1.%d}\"\n", c.tools, i+1))
		c.homes = append(c.homes, h)
	}
	c.setReplicas(3)
	return c
}

func (c *etcdCluster) command(name string, args ...string) string {
	c.t.Helper()
	out, err := exec.CommandContext(c.t.Context(), name, args...).CombinedOutput()
	if err != nil {
		c.t.Fatalf("%s %v: %v\n%s", name, args, err, out)
	}
	return string(out)
}

// setReplicas tells every member, as set.env does.
func (c *etcdCluster) setReplicas(n int) {
	for _, h := range c.homes {
		p := records.Snapshot{Replicas: n, InitialOrdinals: []int{0, 1, 2}}
		for i := range testSize {
			p.Peers = append(p.Peers, h.peer(i))
		}
		h.set(p)
	}
}

func (c *etcdCluster) setBootstrapped() {
	for _, h := range c.homes {
		h.put("facts/bootstrapped", "1\n")
		_ = os.Remove(filepath.Join(h.dir, "facts/volume-new"))
	}
}

// begin starts a life of member i; volumeNew is the content of that fact, "" for none.
// Like Stead, it starts the script again whenever it ends while the member is wanted.
func (c *etcdCluster) begin(i int, volumeNew string) {
	h := c.homes[i]
	for _, f := range []string{"facts/volume-new", "facts/termination-reason"} {
		_ = os.Remove(filepath.Join(h.dir, f))
	}
	if volumeNew != "" {
		h.put("facts/volume-new", volumeNew+"\n")
	}
	c.cmds[i], c.waits[i] = h.start()
}

func (c *etcdCluster) signal(i int, sig syscall.Signal, reason string) {
	c.t.Helper()
	if reason != "" {
		c.homes[i].put("facts/termination-reason", reason+"\n")
	}
	pid := c.cmds[i].Process.Pid
	if sig == syscall.SIGKILL {
		pid = -pid // the whole member, as a kill of its cgroup does
	}
	if err := syscall.Kill(pid, sig); err != nil && err != syscall.ESRCH {
		c.t.Fatal(err)
	}
}

func (c *etcdCluster) await(i int) { c.waits[i]() }

func (c *etcdCluster) end(i int, sig syscall.Signal, reason string) {
	c.t.Helper()
	c.signal(i, sig, reason)
	c.await(i)
}

func (c *etcdCluster) wipe(i int) {
	if err := os.RemoveAll(filepath.Join(c.homes[i].dir, "disk")); err != nil {
		c.t.Fatal(err)
	}
}

// waitHealthy waits until member i is part of a quorum, then its disk is no longer new.
func (c *etcdCluster) waitHealthy(i int) {
	c.t.Helper()
	for deadline := time.Now().Add(3 * time.Minute); ; time.Sleep(50 * time.Millisecond) {
		err := exec.CommandContext(c.t.Context(), c.homes[i].dir+"/bin/etcdctl", "--command-timeout=2s",
			"--endpoints", fmt.Sprintf("http://etcd-%d.etcd.d:2379", i), "endpoint", "health").Run()
		if err == nil {
			break
		}
		if time.Now().After(deadline) {
			c.t.Fatalf("etcd-%d is not healthy in time:\n%s", i, c.homes[i].read("log"))
		}
		if !c.ended(i) {
			continue
		}
		c.t.Logf("etcd-%d ended and is started again", i)
		c.await(i)
		c.cmds[i], c.waits[i] = c.homes[i].start()
	}
	_ = os.Remove(filepath.Join(c.homes[i].dir, "facts/volume-new"))
}

// ended reports whether the script of member i waits to be reaped.
func (c *etcdCluster) ended(i int) bool {
	state, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", c.cmds[i].Process.Pid))
	return err != nil || bytes.Contains(state, []byte(") Z "))
}

func (c *etcdCluster) ctl(args ...string) string {
	c.t.Helper()
	return c.command(c.homes[0].dir+"/bin/etcdctl", append([]string{"--endpoints", "http://etcd-0.etcd.d:2379,http://etcd-2.etcd.d:2379"}, args...)...)
}

func (c *etcdCluster) wantMembers(n int) {
	c.t.Helper()
	list := c.ctl("member", "list")
	if got := strings.Count(list, ", started, "); got != n || strings.Count(list, "\n") != n {
		c.t.Fatalf("%d members are started, want %d:\n%s", got, n, list)
	}
}
