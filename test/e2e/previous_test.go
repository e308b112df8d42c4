package e2e

import (
	"os"
	"strings"
	"testing"
)

// The manifest with a little of all, and its members.
const previousManifest = "testdata/previous.yaml"

// The example of etcd for that release, which does not write set.env.
const previousEtcd = "testdata/previous-etcd.yaml"

var previousMembers = []string{"all-0", "all-1", "guarded-0"}

// A cluster of the previous release is upgraded in either order, and goes back in either order, under load: no member
// is touched, no record written, no question to DNS lost. Each step is a cluster of two versions that works.
func TestAnUpgradeFromThePreviousRelease(t *testing.T) {
	t.Parallel()
	before := previousStead(t)
	hosts := newHosts(t, 2)
	l := hosts[0]
	l.storeFlags = nil // the embedded store, of which all is compared
	for _, h := range hosts {
		h.program = before
	}
	l.startServer("--listen", api)
	ours := l.ownVersion()
	if out := l.stead("version"); !strings.Contains(out, previousVersion) {
		t.Fatalf("the server before is %s; want %s", out, previousVersion)
	}
	letIn(hosts)
	connect(hosts)
	tool := l.toolArchive()
	for _, h := range hosts {
		for _, archive := range []string{etcdArchive, tool} {
			l.stead("image", "load", archive, "--node", h.nodeName())
		}
	}
	l.stead("apply", "-f", previousEtcd, "--wait", "--timeout", patience)
	l.stead("apply", "-f", previousManifest, "--wait", "--timeout", patience)
	etcd := []string{"etcd-0", "etcd-1", "etcd-2"}
	g := &generations{t: t, hosts: hosts}
	g.note(append(etcd, previousMembers...)...)
	stop := l.startLoad("--endpoints", etcdEndpoints)
	var asking []*asker
	for _, h := range hosts {
		asking = append(asking, h.startAsker("etcd", etcd...))
	}

	for _, step := range []struct {
		what string
		do   func()
	}{
		{"an upgrade of the agents first", func() { g.agents(steadBinary, ours) }},
		{"then of the server", func() { g.server(steadBinary, ours) }},
		{"the way back of the server first", func() { g.server(before, previousVersion) }},
		{"then of the agents", func() { g.agents(before, previousVersion) }},
		{"an upgrade of the server first", func() { g.server(steadBinary, ours) }},
		{"then of the agents", func() { g.agents(steadBinary, ours) }},
		{"the way back of the agents first", func() { g.agents(before, previousVersion) }},
		{"then of the server", func() { g.server(before, previousVersion) }},
		{"an upgrade for good, of the server", func() { g.server(steadBinary, ours) }},
		{"and of the agents", func() { g.agents(steadBinary, ours) }},
	} {
		t.Log(step.what)
		step.do()
		g.unchanged(step.what)
	}
	for _, a := range asking {
		a.saw()
	}
	stop()

	t.Log("a member begins its next life")
	was := l.mustMember("all-1")
	l.stead("restart", "all-1")
	l.waitReady("all-1", &was)
}

// What the previous release stores and keeps, for test/previous: scripts/previous --golden runs this.
func TestThePreviousReleaseLeavesGoldenFiles(t *testing.T) {
	dir := os.Getenv("STEAD_GOLDEN")
	if dir == "" {
		t.Skip("it makes files: scripts/previous --golden")
	}
	l := newLab(t)
	l.storeFlags, l.program = nil, previousStead(t)
	l.startAll(l.toolArchive())
	l.stead("apply", "-f", previousManifest, "--wait", "--timeout", patience)
	was := l.mustMember("all-1")
	l.stead("restart", "all-1")
	l.waitReady("all-1", &was)
	l.keepGolden(dir)
}
