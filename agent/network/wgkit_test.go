package network

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"os/signal"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	"golang.zx2c4.com/wireguard/wgctrl/wgtypes"

	"github.com/stead-project/stead/agent/wireguard"
	"github.com/stead-project/stead/agent/wireguard/userspace"
	"github.com/stead-project/stead/records"
)

// TestMain lets the test binary be stead-tunnel, by its name.
func TestMain(m *testing.M) {
	if filepath.Base(os.Args[0]) != wireguard.Program {
		os.Exit(m.Run())
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	if err := userspace.Serve(ctx, os.Args[1], slog.New(slog.NewTextHandler(os.Stderr, nil))); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// program makes a stead-tunnel: the test binary by that name, with more at its end, so that it is another program.
func program(t testing.TB, more string) string {
	t.Helper()
	self, err := os.Executable()
	must(t, err)
	content, err := os.ReadFile(self)
	must(t, err)
	path := filepath.Join(t.TempDir(), wireguard.Program)
	must(t, os.WriteFile(path, append(content, more...), 0o700))
	return path
}

// guarded are two hosts with WireGuard and a member each.
type guarded struct {
	*two
	ends []records.TunnelEnd
	pids [2]chan int // of processes that were started
}

// newGuarded makes them, in a cluster of their own: links that are not the kernel's are found by their name on the whole machine.
func newGuarded(t *testing.T, mode string, far bool) *guarded {
	t.Helper()
	needsRoot(t)
	g := &guarded{}
	text := program(t, "")
	g.two = newTwo(t, mode, far, func(c *Config) {
		i := len(g.ends)
		c.ClusterID = fmt.Sprintf("%08x%s", os.Getpid(), t.Name())
		key, err := OpenTunnelKey(t.TempDir())
		must(t, err)
		pids := make(chan int, 100)
		g.pids[i] = pids
		c.WireGuard = &WireGuard{Key: key, Port: DefaultTunnelPort, Process: wireguard.Process{
			Program: text, Log: filepath.Join(t.TempDir(), "log"), Started: func(pid int) { pids <- pid },
		}}
		g.ends = append(g.ends, records.TunnelEnd{Node: c.Node, Port: DefaultTunnelPort, Key: key.PublicKey().String()})
	})
	for i := range g.ends {
		g.ends[i].Host = g.host[i]
	}
	t.Cleanup(func() {
		for _, n := range g.net {
			if err := n.Teardown(context.Background()); err != nil {
				t.Error(err)
			}
		}
		for deadline := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
			if !wireguard.Served(g.net[0].wire.wireName(), "") && !wireguard.Served(g.net[1].wire.wireName(), "") {
				return
			}
			if time.Now().After(deadline) {
				t.Error("a process outlives its link")
				return
			}
		}
	})
	return g
}

// announce tells each host of the other's member.
func (g *guarded) announce(t *testing.T) {
	t.Helper()
	for i, n := range g.net {
		must(t, n.Reach(t.Context(), map[netip.Addr]Location{g.address[1-i]: {Node: g.net[1-i].cfg.Node, Host: g.host[1-i]}}))
	}
}

// use tells each host of a kind of tunnel, and of both ends.
func (g *guarded) use(t *testing.T, kind string) {
	t.Helper()
	for _, n := range g.net {
		must(t, n.UseTunnel(t.Context(), &records.HostTunnel{Kind: kind, Ends: g.ends}))
	}
}

// settle waits until both hosts lead to the other's member through a link.
func (g *guarded) settle(t *testing.T, link func(n *Network) string) {
	t.Helper()
	for i, n := range g.net {
		h := handle(t, g.path[i])
		for deadline := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
			must(t, n.UseTunnel(t.Context(), nil))
			l, err := h.LinkByName(link(n))
			if list := g.remoteRoutes(t, i); err == nil && len(list) == 1 && list[0].LinkIndex == l.Attrs().Index {
				break
			}
			if time.Now().After(deadline) {
				t.Fatalf("host %d leads by %v", i, g.remoteRoutes(t, i))
			}
		}
	}
}

func wireOf(n *Network) string  { return n.wire.wireName() }
func vxlanOf(n *Network) string { return n.tunnelName() }

// mayUse are the addresses from which a host's device takes packets of a peer; nil: there is no such peer.
func (g *guarded) mayUse(t *testing.T, host int, key string) map[netip.Addr]bool {
	t.Helper()
	d, err := g.net[host].wire.device()
	must(t, err)
	for _, p := range d.Peers {
		if p.PublicKey.String() == key {
			all := map[netip.Addr]bool{}
			for _, a := range p.AllowedIPs {
				all[prefixOf(&a).Addr()] = true
			}
			return all
		}
	}
	return nil
}

// rekey gives a node another key, which its agent has after it was started again.
func (g *guarded) rekey(t *testing.T, host int) {
	t.Helper()
	key, err := wgtypes.GeneratePrivateKey()
	must(t, err)
	g.net[host].cfg.WireGuard.Key = key
	g.ends[host].Key = key.PublicKey().String()
}

// answered sends datagrams from the first member to the second, one after the other, each once the one before was
// answered, until its end is called, which returns how many were; one that is not answered is a fault.
func (g *guarded) answered(t *testing.T) (end func() int) {
	t.Helper()
	var server net.PacketConn
	var client net.Conn
	must(t, inNamespace(g.member[1], func() (err error) {
		server, err = net.ListenPacket("udp4", netip.AddrPortFrom(g.address[1], 9).String())
		return err
	}))
	must(t, inNamespace(g.member[0], func() (err error) {
		client, err = net.Dial("udp4", netip.AddrPortFrom(g.address[1], 9).String())
		return err
	}))
	var group sync.WaitGroup
	stop, count := make(chan struct{}), 0
	group.Go(func() {
		b := make([]byte, 100)
		for {
			n, from, err := server.ReadFrom(b)
			if err != nil {
				return
			}
			server.WriteTo(b[:n], from)
		}
	})
	group.Go(func() {
		defer server.Close()
		b := make([]byte, 100)
		for ; ; count++ {
			select {
			case <-stop:
				return
			case <-time.After(time.Millisecond):
			}
			text := fmt.Sprint("datagram ", count)
			client.SetDeadline(time.Now().Add(20 * time.Second))
			if _, err := client.Write([]byte(text)); err != nil {
				t.Errorf("%s: %v", text, err)
				return
			}
			if n, err := client.Read(b); err != nil || string(b[:n]) != text {
				t.Errorf("%s was answered %q, %v", text, b[:n], err)
				return
			}
		}
	})
	return func() int {
		close(stop)
		group.Wait()
		client.Close()
		return count
	}
}

// capture collects the frames on a link of a namespace until its end is called.
func capture(t *testing.T, path, link string) (end func() [][]byte) {
	t.Helper()
	fd := -1
	must(t, inNamespace(path, func() error {
		i, err := net.InterfaceByName(link)
		if err != nil {
			return err
		}
		const all = 0x0300 // ETH_P_ALL, in network order
		fd, err = unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, all)
		if err != nil {
			return err
		}
		if err := unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Usec: 20_000}); err != nil {
			return err
		}
		return unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: all, Ifindex: i.Index})
	}))
	var frames [][]byte
	var group sync.WaitGroup
	stop := make(chan struct{})
	group.Go(func() {
		for b := make([]byte, 70_000); ; {
			n, _, err := unix.Recvfrom(fd, b, 0)
			if err == nil {
				frames = append(frames, append([]byte{}, b[:n]...))
				continue
			}
			select {
			case <-stop: // and nothing waits
				return
			default:
			}
		}
	})
	return func() [][]byte {
		close(stop)
		group.Wait()
		unix.Close(fd)
		return frames
	}
}
