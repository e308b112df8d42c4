package lab

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stead-project/stead/test/judge"
)

// TestHostsRebootFreezeAndLosePower: three hosts in one cluster, a member of etcd on each under acknowledged writes,
// lives that are held and lives that are guarded. One host after the other is rebooted, loses its power, hangs
// for longer than the bound, has its clock set, is drained, and short of disk; nobody lends a hand.
func TestHostsRebootFreezeAndLosePower(t *testing.T) {
	h := newLab(t, 3)
	h.act("Stead is installed", func() { h.install(etcdArchive) })
	var d *database
	h.act("sets are up", func() {
		h.applyLives()
		d = h.newDatabase("etcd", "2379")
		d.write()
	})
	held := slices.Concat(holds, d.members)
	all := slices.Concat(held, guards)
	h.act("the kernel's order", h.assertKernel)
	h.act("lines of the runbook", func() { h.runbook(all...) })
	h.act("host2 is rebooted", func() { h.reboot(2, held...) })
	h.act("host3 loses its power", func() { h.losePower(3, 0, held...) })
	h.act("the host of a guarded life freezes", func() { h.freeze(held...) })
	h.act("clock of host2 120 s back", func() { h.stepClock(2, -2*time.Minute, all...) })
	h.act("clock of the server a day back", func() { h.stepClock(1, -24*time.Hour, all...) })
	h.act("names are answered while the agent of host3 ends", func() { h.assertNames(3, d) })
	h.act("host2 is drained", func() { h.drain(2, held...) })
	h.act("host2 is short of disk", func() { h.fillDisk(2) })
	h.whole(all...)
	d.read()
	h.judge()
}

// assertKernel looks at what only a host with systemd and cgroup v2 has: who the kernel ends first when memory is
// short, and where members are.
func (h *hosts) assertKernel() {
	h.Helper()
	if kind := h.ssh(2, "stat -fc %T /sys/fs/cgroup"); kind != "cgroup2fs" {
		h.Errorf("cgroups are %s", kind)
	}
	score := func(process string) (lowest int) {
		lowest = 1 << 10
		for field := range strings.FieldsSeq(h.ssh(2, "for p in $(pgrep -x "+process+"); do cat /proc/$p/oom_score_adj; done")) {
			n, err := strconv.Atoi(field)
			if err != nil {
				h.Fatal(err)
			}
			lowest = min(lowest, n)
		}
		return lowest
	}
	etcd, guard, stead, containerd := score("etcd"), score("box"), score("stead"), score("containerd")
	// etcd is Burstable and requests an eighth of the host's memory or less; the life is BestEffort.
	if etcd < 800 || etcd >= 1000 || guard != 1000 || stead > -900 || containerd > -900 {
		h.Errorf("oom_score_adj: etcd %d, BestEffort %d, stead %d, containerd %d", etcd, guard, stead, containerd)
	}
}

// assertNames asks the DNS of a host all the time while its agent is restarted, and killed.
func (h *hosts) assertNames(i int, d *database) {
	h.Helper()
	h.startAsking(i, d)
	started := h.ssh(i, "systemctl show -P ExecMainPID stead-agent")
	h.ssh(i, "systemctl restart stead-agent && systemctl kill -s KILL stead-agent")
	h.eventually("the agent runs again", func() error {
		if now := h.ssh(i, "systemctl is-active stead-agent; systemctl show -P ExecMainPID stead-agent"); now == "active\n"+started ||
			!strings.HasPrefix(now, "active") {
			return fmt.Errorf("%q", now)
		}
		return nil
	})
	h.connected()
	h.assertAnswered(i, all)
}

// startAsking asks the DNS of a host for a member of the database, all the time.
func (h *hosts) startAsking(i int, d *database) {
	h.Helper()
	if _, err := h.trySSH(i, "test -e /root/tool"); err != nil {
		h.lab("put", fmt.Sprint(i), h.tool, "/root/")
	}
	h.ssh(i, fmt.Sprintf("systemd-run -q --unit=asks -p StandardOutput=truncate:/root/asked /root/tool ask --every 50ms %s.%s.default.svc.cluster.local=%s",
		d.members[0], d.set, h.member(d.members[0]).Address))
}

// assertAnswered ends the asking, and fails the test when a question had a wrong answer, or more than one of so many had none.
func (h *hosts) assertAnswered(i, of int) {
	h.Helper()
	h.ssh(i, "systemctl stop asks")
	var seen struct {
		Asked, Lost, Other int
		Wrong              []string
		Slow               float64
	}
	out := h.ssh(i, "cat /root/asked")
	if err := json.Unmarshal([]byte(out), &seen); err != nil || seen.Asked < 100 {
		h.Errorf("asked %q: %v", out, err)
	}
	if seen.Other > 0 || seen.Lost*of > seen.Asked {
		h.Errorf("of %d questions %d had no answer and %d another one: %v", seen.Asked, seen.Lost, seen.Other, seen.Wrong)
	}
	h.Logf("%s: %d questions, %d without an answer, the slowest %.1f s", host(i), seen.Asked, seen.Lost, seen.Slow)
}

// all: none may have no answer.
const all = 1 << 30

// busy is the share of questions that may find no answer in minutes in which a host's one processor is short: a name server ends
// a connection over TCP that says nothing for 2 s, and the program that asks there tries once.
const busy = 500

// drain takes a host out of use and back; its members stop by their budgets, and return with what they had.
func (h *hosts) drain(i int, names ...string) {
	h.Helper()
	was := h.on(i, names...)
	h.stead("drain", host(i), "--timeout", "4m")
	if left := h.ssh(i, "cat /sys/fs/cgroup/stead-*/default.*/*/cgroup.procs 2>/dev/null || true"); left != "" {
		judge.Broken(h, "processes of members are left on a drained host: %q", left)
	}
	h.stead("uncordon", host(i))
	for _, m := range was {
		h.returned(m)
	}
}

// fillDisk takes room until less than a tenth of a host's disk is left, and waits until all say so.
func (h *hosts) fillDisk(i int) {
	h.Helper()
	h.ssh(i, "fallocate -l $(( ($(df --output=avail -k / | tail -1) - 400000) * 1024 )) /var/tmp/full")
	defer h.ssh(i, "rm /var/tmp/full")
	h.eventually("the host is short of disk", func() error {
		nodes, err := h.tryStead("get", "nodes", "-o", "wide")
		if err == nil && !strings.Contains(lineWith(nodes, host(i)), "DiskPressure") {
			err = fmt.Errorf("%s", nodes)
		}
		return err
	})
	if status := h.stead("status"); !strings.Contains(status, "DiskPressure") {
		h.Errorf("status does not say that a host is short of disk:\n%s", status)
	}
}
