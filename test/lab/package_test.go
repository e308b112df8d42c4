package lab

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stead-project/stead/test/judge"
)

// The package of this tree, newer for Debian than that of scripts/previous.
const next = "0.2.0~lab1"

// TestThreeHostsLiveThroughUpgradesPowerLossAndRemoval: three hosts with the package of an earlier release, each a server with a part
// of the store, an agent, and a member of etcd that is written to from all three. The package of this tree is installed on one host
// after the other, the earlier one again, and this one for good; each host loses its power, the one of the leader first, and all at once; on a host
// that was drained the package is removed, installed, and purged.
func TestThreeHostsLiveThroughUpgradesPowerLossAndRemoval(t *testing.T) {
	h := newLab(t, 3)
	r := &rolling{inside: &inside{database: &database{hosts: h}}, earlier: h.packEarlier(), latest: h.pack(next), ours: h.versionOf(steadBin)}
	h.act("the earlier release is installed", func() { h.installServers(r.earlier, etcdArchive) })
	h.act("sets are up", func() {
		h.applyLives()
		d := h.newDatabaseOf("etcd", "2379", h.ssh(1, "cat /usr/share/doc/stead/examples/etcd.yaml"))
		r.inside = d.writeInside()
	})
	r.theirs = h.versionOf("")
	r.held = slices.Concat(holds, r.members)
	r.act("an upgrade, servers first", func() { r.upgrade(r.latest, r.ours, "stead-server", "stead-agent") })
	r.act("the way back, agents first", func() { r.upgrade(r.earlier, r.theirs, "stead-agent", "stead-server") })
	r.act("an upgrade for good", func() { r.upgrade(r.latest, r.ours, "stead-server", "stead-agent") })
	r.act("the leader's host loses its power, then each other", r.loseEach)
	r.act("all hosts lose their power at once", r.loseAll)
	r.act("the package is removed from a drained host, and installed again", func() { r.removePackage(3) })
	r.act("a host leaves for good, and the package is purged", func() { r.purge(3) })
	r.act("what was acknowledged is read", func() { r.readBack(1, 2) })
	h.judge()
}

// rolling is a cluster of hosts whose package changes.
type rolling struct {
	*inside
	earlier, latest string // packages
	theirs, ours    string // versions of the programs in them
	held            []string
}

// act does something and says how long etcd acknowledged nothing meanwhile, whoever wrote.
func (r *rolling) act(what string, do func()) {
	r.Helper()
	from := clock(r)
	r.hosts.act(what, do)
	if !r.Failed() {
		r.Logf("acts: %s: etcd acknowledged nothing for %.1f s at most", what, r.gap(from).Seconds())
		r.judge()
	}
}

// packEarlier makes the package of the earlier release, by that release's own scripts.
func (h *hosts) packEarlier() string {
	h.Helper()
	ctx, cancel := context.WithTimeout(h.Context(), hanging)
	defer cancel()
	var told strings.Builder
	build := exec.CommandContext(ctx, "../../scripts/previous", "--own-store-package", filepath.Join(h.dir, "earlier"))
	build.Stderr = &told
	out, err := build.Output()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok && exit.ExitCode() == 3 {
		h.Skip("the commit of an earlier version is not in this clone")
	}
	if err != nil {
		h.Fatalf("make the earlier package: %v\n%s", err, &told)
	}
	return strings.TrimSpace(string(out))
}

// versionOf is that of a program here; "": of what is installed on the first host.
func (h *hosts) versionOf(program string) string {
	h.Helper()
	var out string
	var err error
	if program == "" {
		out, err = h.trySSH(1, "stead version --client")
	} else {
		out, err = h.try(looking, program, "version", "--client")
	}
	fields := strings.Fields(out)
	if err != nil || len(fields) < 2 {
		h.Fatalf("version: %v %q", err, out)
	}
	return fields[1]
}

// upgrade does what docs/OPERATIONS.md says ("Upgrade Stead"): the package on each host, which restarts nothing; then one unit
// on one host after the other, then the other one. Nobody's life or process ends, the store takes writes all the time, and names are answered.
func (r *rolling) upgrade(deb, version string, units ...string) {
	r.Helper()
	lives, processes := r.lives(r.held...), r.processes(r.held...)
	r.ssh(1, "rm -f /var/backups/stead-before.db && stead backup save /var/backups/stead-before.db")
	for i := 1; i <= r.n; i++ {
		r.startAsking(i, r.database)
	}
	longest := r.storing(func() {
		r.each(func(i int) {
			r.ssh(i, "rm -f stead_*_amd64.deb")
			r.lab("put", fmt.Sprint(i), deb, "/root/")
			if out, err := r.trySSH(i, "apt-get install -y --allow-downgrades ./stead_*_amd64.deb"); err != nil || !strings.Contains(out, "systemctl restart stead-agent (no member restarts)") {
				r.Errorf("install %s on %s: %v %s", deb, host(i), err, out)
			}
		})
		for _, unit := range units {
			for i := 1; i <= r.n; i++ {
				r.ssh(i, "systemctl restart "+unit)
				r.quorate()
				r.connected()
			}
		}
	})
	for i := 1; i <= r.n; i++ {
		r.assertAnswered(i, busy)
		if said := r.ssh(i, "stead version"); strings.Count(said, version) < 2 {
			r.Errorf("%s is of %q, want %s", host(i), said, version)
		}
	}
	if longest > 2*looking {
		r.Errorf("the store took no write for %v", longest)
	}
	r.Logf("the store took no write for %.1f s at most", longest.Seconds())
	r.whole(slices.Concat(r.held, guards)...)
	r.assertHeld(lives)
	if now := r.processes(r.held...); !maps.Equal(now, processes) {
		judge.Broken(r, "processes were %v and are %v", processes, now)
	}
}

// processes are those of members, by name: their numbers and when they began, on their hosts.
func (r *rolling) processes(names ...string) map[string]string {
	r.Helper()
	all, lives := map[string]string{}, r.lives(names...)
	for i := 1; i <= r.n; i++ {
		var script string
		for _, name := range names {
			if lives[name].Node == host(i) {
				script += "echo " + name + " $(for p in $(cat /sys/fs/cgroup/stead-*/default." + name + "/*/cgroup.procs); do cut -d' ' -f1,22 /proc/$p/stat; done); "
			}
		}
		if script == "" {
			continue
		}
		for line := range strings.Lines(r.ssh(i, script)) {
			name, running, _ := strings.Cut(strings.TrimSpace(line), " ")
			all[name] = running
		}
	}
	for _, name := range names {
		if all[name] == "" {
			r.Errorf("%s has no process", name)
		}
	}
	return all
}

// loseEach takes the power of each host, first of the one whose server leads. The others go on without it.
func (r *rolling) loseEach() {
	r.Helper()
	order := []int{r.leader()}
	for i := 1; i <= r.n; i++ {
		if i != order[0] {
			order = append(order, i)
		}
	}
	for _, i := range order {
		r.hosts.act(host(i)+" loses its power", func() { r.lose(i) })
		r.judge()
	}
}

// lose takes the power of hosts. Where it is one, the others must go on before it is back. Nobody lends a hand.
func (r *rolling) lose(which ...int) {
	r.Helper()
	var was []member
	for _, i := range which {
		was = append(was, r.on(i, r.held...)...)
	}
	longest := r.storing(func() {
		for _, i := range which {
			r.lab("kill", fmt.Sprint(i))
		}
		if len(which) == 1 {
			others := slices.DeleteFunc([]int{1, 2, 3}, func(i int) bool { return i == which[0] })
			r.quorate(others...)
			r.goesOn(others[0])
			r.goesOn(others[1])
		}
		for _, i := range which {
			r.lab("power", fmt.Sprint(i))
		}
		for _, i := range which {
			r.lab("start", fmt.Sprint(i))
		}
		for _, m := range was {
			r.returned(m)
		}
		r.quorate()
		r.connected()
		for i := 1; i <= r.n; i++ {
			r.goesOn(i)
		}
	})
	r.Logf("power loss of %v: the store took no write for %.1f s at most", which, longest.Seconds())
	r.whole(slices.Concat(r.held, guards)...)
}

func (r *rolling) loseAll() { r.lose(1, 2, 3) }
