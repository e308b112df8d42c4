package lab

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/stead-project/stead/test/judge"
)

// elsewhere are the members that are not on a host.
func (r *rolling) elsewhere(i int) (names []string) {
	r.Helper()
	all := r.known(r.held...)
	for _, name := range r.held {
		if all[name].Node != host(i) {
			names = append(names, name)
		}
	}
	return names
}

// removePackage drains a host and removes the package there: what it stops, leaves and says. The host returns when it is installed again.
func (r *rolling) removePackage(i int) {
	r.Helper()
	was, others := r.on(i, r.held...), r.elsewhere(i)
	lives, processes := r.lives(others...), r.processes(others...)
	r.stead("drain", host(i), "--timeout", "4m")
	out := r.ssh(i, "apt-get remove -y stead")
	if !strings.Contains(out, "stopping stead-agent. Members go on running") || !strings.Contains(out, "stopping stead-server") {
		r.Errorf("the removal says %s", out)
	}
	r.left(i, "usr/bin/stead lib/systemd/system/stead-agent.service lib/systemd/system/stead-server.service",
		"etc/default/stead etc/systemd/system/multi-user.target.wants/stead-agent.service var/lib/stead/server var/lib/stead/agent/volumes")
	r.quorate(1, 2)
	r.goesOn(1)
	r.goesOn(2)
	r.assertSame(lives, processes)
	r.ssh(i, "apt-get install -y ./stead_*_amd64.deb && systemctl start stead-server stead-agent")
	r.quorate()
	r.connected()
	r.stead("uncordon", host(i))
	for _, m := range was {
		r.returned(m)
	}
	r.goesOn(i)
	r.whole(slices.Concat(r.held, guards)...)
	r.assertSame(lives, processes)
}

// purge takes a host out of the cluster for good, as docs/OPERATIONS.md says ("Uninstall"): what it had is moved to the others.
func (r *rolling) purge(i int) {
	r.Helper()
	was, others := r.on(i, r.held...), r.elsewhere(i)
	lives, processes := r.lives(others...), r.processes(others...)
	r.stead("drain", host(i), "--move", "--timeout", "4m")
	for _, m := range was {
		if now := r.ready(m.Name, m); now.Node == host(i) || now.Address != m.Address {
			r.Errorf("%+v was moved, and is %+v", m, now)
		}
	}
	r.eventually("the server is removed", func() error { // refused while one of the others is not reachable, as on a busy machine
		if out, err := r.tryStead("server", "remove", host(i), "--yes"); err != nil {
			return fmt.Errorf("%w: %s", err, out)
		}
		return nil
	})
	r.ssh(i, "systemctl disable --now stead-server stead-agent")
	r.ssh(i, "stead agent purge")
	out := r.ssh(i, "apt-get purge -y stead")
	if !strings.Contains(out, "/var/lib/stead is kept") {
		r.Errorf("the purge says %s", out)
	}
	r.left(i, "usr/bin/stead etc/default/stead etc/systemd/system/multi-user.target.wants/stead-agent.service "+
		"etc/systemd/system/multi-user.target.wants/stead-server.service lib/systemd/system/stead-agent.service",
		"var/lib/stead/server var/lib/stead/agent")
	if left := r.ssh(i, "pgrep -a stead || true; ls -d /sys/fs/cgroup/stead-* 2>/dev/null || true; nft list tables | grep stead || true"); left != "" {
		judge.Broken(r, "left behind on a purged host: %s", left)
	}
	r.eventually("the node is removed", func() error {
		if out, err := r.tryStead("node", "remove", host(i)); err != nil {
			return fmt.Errorf("%w: %s", err, out)
		}
		return nil
	})
	r.quorate(1, 2)
	r.assertSame(lives, processes)
}

// left fails the test unless of these files on a host the first are gone and the others there.
func (r *rolling) left(i int, gone, there string) {
	r.Helper()
	if found := r.ssh(i, "cd / && ls -d "+gone+" 2>/dev/null || true"); found != "" {
		r.Errorf("not removed from %s: %s", host(i), found)
	}
	r.ssh(i, "cd / && ls -d "+there)
}

// assertSame fails the test when members have other lives or processes than then.
func (r *rolling) assertSame(lives map[string]member, processes map[string]string) {
	r.Helper()
	r.assertHeld(lives)
	if now := r.processes(slices.Sorted(maps.Keys(processes))...); !maps.Equal(now, processes) {
		judge.Broken(r, "processes were %v and are %v", processes, now)
	}
}
