package e2e

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stead-project/stead/test/judge"
)

// newHosts makes hosts on one switch, at 172.31.9.1 and on. The first one's server is
// that of all, and the command line asks it by its socket.
func newHosts(t *testing.T, n int) []*Lab {
	t.Helper()
	hosts := make([]*Lab, n)
	for i := range hosts {
		hosts[i] = newLab(t)
		hosts[i].Socket = hosts[0].Socket
	}
	sw := hosts[0].Name + "-sw"
	hosts[0].run("ip", "netns", "add", sw)
	t.Cleanup(func() { hosts[0].run("ip", "netns", "del", sw) })
	hosts[0].run("ip", "-n", sw, "link", "add", "br0", "address", "02:00:00:00:00:01", "type", "bridge")
	hosts[0].run("ip", "-n", sw, "link", "set", "br0", "up")
	for i, l := range hosts {
		l.plug(sw, fmt.Sprint("h", i), fmt.Sprintf("172.31.9.%d/24", i+1))
	}
	return hosts
}

// plug connects a machine to a port of the switch, by its link up0.
func (l *Lab) plug(sw, port, address string) {
	l.t.Helper()
	l.run("ip", "-n", l.Name, "link", "add", "up0", "type", "veth", "peer", "name", port, "netns", sw)
	l.run("ip", "-n", sw, "link", "set", port, "master", "br0", "up")
	l.run("ip", "-n", l.Name, "address", "add", address, "dev", "up0")
	l.run("ip", "-n", l.Name, "link", "set", "up0", "up")
}

// api is where the first host's server answers the others.
const api = "172.31.9.1:7443"

// letIn gives each host but the first a join token: from then on its agent knows the
// server over the network only.
func letIn(hosts []*Lab) {
	hosts[0].t.Helper()
	for _, l := range hosts[1:] {
		token := strings.TrimSpace(hosts[0].stead("token", "create", "--node", l.nodeName()))
		l.join = []string{"--join", api, "--token", token}
	}
}

// connect starts an agent on each host and waits until all nodes are connected. The next
// agents need no token.
func connect(hosts []*Lab, flags ...string) {
	hosts[0].t.Helper()
	for _, l := range hosts {
		l.startAgent(flags...)
	}
	hosts[0].eventually(time.Minute, "all nodes connect", func() error {
		out, err := hosts[0].trySteadFor(time.Minute, "get", "nodes")
		if err != nil || strings.Count(out, " Ready ") != len(hosts) {
			return fmt.Errorf("%v: %s", err, out)
		}
		return nil
	})
	for _, l := range hosts[1:] {
		l.join = []string{"--join", api}
	}
}

// outside is a machine on the switch without Stead, with the route and the name server
// that people are told to give it; it asks each of the endpoints how it is.
func (l *Lab) outside(endpoints string) {
	l.t.Helper()
	name := l.Name + "-out"
	l.run("ip", "netns", "add", name)
	defer l.run("ip", "netns", "del", name)
	for _, line := range []string{
		"link add up0 type veth peer name out netns " + l.Name + "-sw", "link set lo up",
		"address add 172.31.9.99/24 dev up0", "link set up0 up",
	} {
		l.run("ip", append([]string{"-n", name}, strings.Fields(line)...)...)
	}
	l.run("ip", "-n", l.Name+"-sw", "link", "set", "out", "master", "br0", "up")
	route, _, _ := strings.Cut(l.stead("node", "routes"), "#")
	l.run("ip", append([]string{"-n", name}, strings.Fields(route)[1:]...)...)
	in := func(argv ...string) (string, error) {
		return l.try(time.Minute, "nsenter", append([]string{"--net=/run/netns/" + name}, argv...)...)
	}
	for _, endpoint := range strings.Split(endpoints, ",") {
		host, port, _ := strings.Cut(endpoint, ":")
		l.eventually(time.Minute, "a machine without Stead reaches "+host, func() error {
			address, err := in("dig", "@172.31.9.2", "-p", "5353", "+short", "+time=5", "+tries=3", host)
			if err != nil {
				return fmt.Errorf("dig: %w: %s", err, address)
			}
			out, err := in("curl", "-s", "-m", "20", "http://"+strings.TrimSpace(address)+":"+port+"/health")
			if err == nil && !strings.Contains(out, "true") {
				err = fmt.Errorf("%s says %q", address, out)
			}
			return err
		})
	}
}

// tunnels are the processes of the lab's tunnel.
func (l *Lab) tunnels() []int { return l.living("stead-tunnel\x00sw", l.Dir+"/") }

// overWireGuard changes the tunnel between hosts from VXLAN to WireGuard, step by step, as OPERATIONS says.
func overWireGuard(hosts []*Lab) {
	l := hosts[0]
	l.t.Helper()
	for _, kind := range []string{"both", "wireguard"} {
		l.t.Logf("the server is started with --tunnel %s", kind)
		end(l.t, l.server)
		l.startServer("--listen", api, "--tunnel", kind)
		for _, h := range hosts {
			h.eventually(time.Minute, "the tunnel is WireGuard", func() error {
				out, err := h.inside(time.Minute, "ip", "route", "show", "proto", "83")
				_, vxlan := h.inside(time.Minute, "bash", "-c", "ip link | grep -q ' sx'")
				if err != nil || strings.Count(out, "dev sw") != len(hosts)-1 || kind == "wireguard" && vxlan == nil {
					return fmt.Errorf("%v, VXLAN %v, routes are\n%s", err, vxlan == nil, out)
				}
				return nil
			})
			out, err := h.inside(time.Minute, steadBinary, "agent", "check", "--root", h.path("agent"), "--run-dir", h.path("run"))
			if err != nil || strings.Count(out, "keys exchanged") != len(hosts)-1 || !strings.Contains(out, "WireGuard of the") {
				l.t.Errorf("%s: agent check says %v:\n%s", h.Name, err, out)
			}
		}
	}
	l.eventually(time.Minute, "status knows the tunnel", func() error {
		out, err := l.trySteadFor(time.Minute, "status")
		if err != nil || !strings.Contains(out, "tunnel   wireguard") || strings.Contains(out, "has no WireGuard") {
			return fmt.Errorf("%v: %s", err, out)
		}
		return nil
	})
}

// TestASetOnSeveralHosts: real etcd spread over three hosts that joined by token, under
// acknowledged writes from one of them, while the ways between the hosts change under it.
func TestASetOnSeveralHosts(t *testing.T) {
	t.Parallel()
	hosts := newHosts(t, 3)
	l := hosts[0]
	if _, err := os.Stat(etcdArchive); err != nil {
		t.Fatalf("no etcd image: %v; run make image", err)
	}
	l.startServer("--listen", api)
	letIn(hosts)
	connect(hosts, "--dns-listen", "0.0.0.0:5353")
	for _, h := range hosts {
		l.stead("image", "load", etcdArchive, "--node", h.nodeName())
	}
	l.stead("apply", "-f", "../../examples/etcd/etcd.yaml", "--wait", "--timeout", patience)
	was, at := map[string]member{}, map[string]string{}
	for _, name := range []string{"etcd-0", "etcd-1", "etcd-2"} {
		was[name] = l.mustMember(name)
		at[was[name].Status.Node] = name
		for _, h := range hosts {
			h.waitDig(name+".etcd.default.svc.cluster.local", was[name].Status.Address)
		}
	}
	if len(at) != len(hosts) {
		t.Errorf("the members are on %v; want one on each of %d hosts", at, len(hosts))
	}
	stop := l.startLoad("--endpoints", etcdEndpoints)
	all := func(what string) {
		t.Helper()
		for _, h := range hosts {
			for name, m := range was {
				url := "http://" + m.Status.Address + ":2379/health"
				h.eventually(time.Minute, what+": "+h.Name+" reaches "+name, func() error {
					out, err := h.inside(time.Minute, "curl", "-s", "-m", "20", url)
					if err == nil && !strings.Contains(out, "true") {
						err = fmt.Errorf("%s says %s", url, out)
					}
					return err
				})
			}
		}
	}
	all("by routes")
	l.outside(etcdEndpoints)

	t.Log("somebody flushes the routes of a host, and takes its link down")
	flushed := hosts[1]
	flushed.run("ip", "-n", flushed.Name, "route", "flush", "proto", "83")
	flushed.run("ip", "-n", flushed.Name, "link", "set", "up0", "down")
	flushed.run("ip", "-n", flushed.Name, "link", "set", "up0", "up")
	all("after a flush")

	t.Log("the next agents lead through a tunnel")
	for _, h := range hosts {
		if err := h.agent.signal(syscall.SIGTERM); err != nil {
			t.Error(err)
		}
	}
	connect(hosts, "--network-mode", "vxlan")
	for _, h := range hosts {
		h.eventually(time.Minute, "the tunnel stands", func() error {
			out, err := h.inside(time.Minute, "ip", "route", "show", "proto", "83")
			if err == nil && strings.Count(out, "dev sx") != len(hosts)-1 {
				err = fmt.Errorf("routes are\n%s", out)
			}
			return err
		})
	}
	all("through the tunnel")
	overWireGuard(hosts)
	all("through WireGuard")
	t.Log("the agent of a host is killed, and the process of its tunnel")
	if err := flushed.agent.signal(syscall.SIGKILL); err != nil {
		t.Error(err)
	}
	all("without the agent")
	was1 := flushed.tunnels()
	flushed.startAgent("--network-mode", "vxlan")
	if now := flushed.tunnels(); len(now) != 1 || !slices.Equal(now, was1) {
		t.Errorf("the processes of the tunnel are %v, before %v", now, was1)
	}
	flushed.kill(was1...)
	flushed.eventually(time.Minute, "another process is the tunnel", func() error {
		if now := flushed.tunnels(); len(now) != 1 || slices.Equal(now, was1) {
			return fmt.Errorf("processes %v, before %v", now, was1)
		}
		return nil
	})
	all("with another process")
	stop()
	for name, m := range was {
		if now := l.waitReady(name, nil); now.Status.Token != m.Status.Token {
			judge.Broken(t, "%s: %+v; want token %s", name, now.Status, m.Status.Token)
		}
	}
}
