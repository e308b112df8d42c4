package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stead-project/stead/records"
)

func runDrain(t *testing.T, b *book) {
	f := newFleet(t)
	f.db()
	b.run(f.cluster, "stead drain host-b --dry-run", "node host-b would be cordoned and drained", "db-1 stops (Drain), and waits")
	b.run(f.cluster, "stead drain host-b --timeout 30m", "node host-b drained")
	b.run(f.cluster, "stead status", "host-b has been drained for")
	b.run(f.cluster, "stead uncordon host-b", "node host-b uncordoned")
	b.run(f.cluster, "stead wait db --timeout 10m", "db is available")
	f.off("host-c") // a budget would hold the drain now
	b.run(f.cluster, "stead drain host-b --disable-eviction", "node host-b drained")
}

func runReboot(t *testing.T, b *book) {
	f := newFleet(t)
	f.db()
	f.off("host-b")
	f.on("host-b")
	b.run(f.cluster, "stead get nodes", "host-b Ready")
	b.run(f.cluster, "stead wait db --timeout 10m", "db is available")
}

func runPowerLoss(t *testing.T, b *book) {
	f := newFleet(t)
	f.db()
	was := f.must("get", "volume", "data-db-1", "-o", "jsonpath={.spec.volume}")
	f.off("host-b")
	b.run(f.cluster, "stead status", "host-b Silent")
	b.run(f.cluster, "stead explain db-1", "host-b is unreachable")
	b.run(f.cluster, "stead node fence host-b --i-have-powered-off", "node host-b fenced")
	f.on("host-b")
	b.run(f.cluster, "stead wait db --timeout 10m", "db is available")
	if now := f.must("get", "volume", "data-db-1", "-o", "jsonpath={.spec.volume}"); f.nodeOf("db-1") != "host-b" || now != was {
		t.Errorf("db-1 is on %s with volume %q, which was %q on host-b", f.nodeOf("db-1"), now, was)
	}
}

func runLostHost(t *testing.T, b *book) {
	f := newFleet(t)
	f.db()
	f.off("host-b")
	f.wipe("host-b")
	b.giveUp(f, "stead volume ls -A")
	f.join("host-d", b.run(f.cluster, "stead token create --node host-d"))
}

func runReinstalled(t *testing.T, b *book) {
	f := newFleet(t)
	f.db()
	f.off("host-b")
	f.wipe("host-b")
	b.giveUp(f)
	token := b.run(f.cluster, "stead token create --node host-b")
	f.join("host-b", token)
	b.run(f.cluster, "stead get nodes", "host-b Ready")
}

// giveUp gives up host-b with all that was on it; the lines look are in between.
func (b *book) giveUp(f *fleet, look ...string) {
	b.t.Helper()
	b.run(f.cluster, "stead node fence host-b --i-have-powered-off", "db-1: token counts as over")
	for _, line := range look {
		b.run(f.cluster, line, "data-db-1 host-b")
	}
	b.run(f.cluster, "stead volume reclaim data-db-1 --lost --yes", "db-1 starts with a new, empty one")
	b.run(f.cluster, "stead wait db --timeout 10m", "db is available")
	f.until("db-1 is elsewhere", func() bool { return f.nodeOf("db-1") != "host-b" })
	b.run(f.cluster, "stead node remove host-b", "node host-b removed")
}

// That an expired certificate is replaced by such a token: TestANodeWhoseCertificateEndedComesBackByATokenOfItsOwn.
func runClock(t *testing.T, b *book) {
	f := newFleet(t)
	b.run(f.cluster, "stead get nodes", "host-b Ready")
	f.off("host-b")
	f.start("host-b", b.run(f.cluster, "stead token create --node host-b"))
}

func runShortHost(t *testing.T, b *book) {
	c := newCluster(t, nil)
	c.must("apply", "-f", "testdata/db.yaml", "--wait", "--timeout", "2m")
	c.must("scale", "db", "--replicas", "2", "--wait", "--timeout", "2m")
	c.agent.Load().SetConditions([]records.NodeCondition{{Type: records.DiskPressure, Message: "the disk of /var has 1Gi of 50Gi free"}})
	b.run(c, "stead status", "DiskPressure 1Gi of 50Gi free")
	b.run(c, "stead volume ls -A", "data-db-2 5Mi 3Gi")
	b.run(c, "stead volume reclaim data-db-2 --trash-period 0s --yes", "is being given up")
	c.until("it is gone", func() bool { return !strings.Contains(c.must("volume", "ls"), "data-db-2") })
	b.run(c, "stead top pods -A", "db-0")
	c.agent.Load().SetConditions(nil)
	if out := b.run(c, "stead node ls", "host-a Ready"); strings.Contains(out, "Pressure") {
		c.until("the condition is over", func() bool { return !strings.Contains(c.must("node", "ls"), "Pressure") })
	}
}

func runNoNetwork(t *testing.T, b *book) {
	f := newFleet(t)
	f.off("host-b") // and on again: its agent is the one that was started last
	f.on("host-b")
	f.agent.Load().SetConditions([]records.NodeCondition{{Type: records.NetworkUnavailable, Message: "another DNS server holds 169.254.1.1"}})
	b.run(f.cluster, "stead status", "host-b", "NetworkUnavailable another DNS server holds")
	b.run(f.cluster, "stead describe node host-b", "NetworkUnavailable")
}

// The upgrade itself: TestAnUpgradeTouchesNoMember (test/e2e).
func runUpgrade(t *testing.T, b *book) {
	dir, err := os.MkdirTemp("", "stead-upgrade-") // socket paths have a limit
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	c := &realServer{t: t, dir: filepath.Join(dir, "server"), socket: filepath.Join(dir, "s")}
	stop := c.start()
	b.run(c, "stead backup save /var/backups/stead-before.db", "keys at revision")
	stop()
	c.start()
	b.run(c, "stead version", "server")
	b.run(c, "stead status", "servers a")
}

// The change itself: TestASetOnSeveralHosts (test/e2e).
func runWireGuard(t *testing.T, b *book) {
	c := newCluster(t, nil)
	b.run(c, "stead status", "nodes 1 of 1 have a session")
}
