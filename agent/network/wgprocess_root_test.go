package network

import (
	"fmt"
	"io"
	"net"
	"net/netip"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/stead-project/stead/agent/wireguard"
	"github.com/stead-project/stead/records"
)

// TestTheProcessOfTheTunnelIsReplaced: a connection outlives it, whether it was killed or another version took over. Meanwhile the link
// and its routes stay, and nothing goes another way.
func TestTheProcessOfTheTunnelIsReplaced(t *testing.T) {
	g := newGuarded(t, ModeAuto, false)
	g.announce(t)
	g.use(t, records.TunnelWireGuard)
	g.settle(t, wireOf)
	if len(g.pids[0]) == 0 {
		t.Skip("the kernel has WireGuard")
	}
	var l net.Listener
	must(t, inNamespace(g.member[1], func() (err error) {
		l, err = net.Listen("tcp4", netip.AddrPortFrom(g.address[1], 7).String())
		return err
	}))
	defer l.Close()
	go func() {
		if c, err := l.Accept(); err == nil {
			io.Copy(c, c)
			c.Close()
		}
	}()
	var c net.Conn
	must(t, inNamespace(g.member[0], func() (err error) {
		c, err = net.DialTimeout("tcp4", netip.AddrPortFrom(g.address[1], 7).String(), time.Minute)
		return err
	}))
	defer c.Close()
	c.SetDeadline(time.Now().Add(2 * time.Minute))
	goesOn := func(what string) {
		t.Helper()
		began := time.Now()
		if _, err := c.Write([]byte(what)); err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		b := make([]byte, len(what))
		if _, err := io.ReadFull(c, b); err != nil || string(b) != what {
			t.Fatalf("%s: %q, %v", what, b, err)
		}
		t.Logf("%s: answered after %v", what, time.Since(began))
	}
	goesOn("at first")
	for i := range g.net {
		before := len(g.pids[i])
		g.net[i].cfg.WireGuard.Process.Program = program(t, "") // at another path, as after an upgrade that changed only others
		must(t, g.net[i].Setup(t.Context()))
		if len(g.pids[i]) != before {
			t.Error("a process of the same program was replaced")
		}
		g.net[i].cfg.WireGuard.Process.Program = program(t, "another")
		must(t, g.net[i].Setup(t.Context()))
		if len(g.pids[i]) != before+1 {
			t.Error("a process of another program was not replaced")
		}
		goesOn(fmt.Sprintf("host %d has another program", i))
	}
	pid := 0
	for len(g.pids[0]) > 0 {
		pid = <-g.pids[0]
	}
	must(t, unix.Kill(pid, unix.SIGKILL))
	for deadline := time.Now().Add(time.Minute); wireguard.Served(g.net[0].wire.wireName(), ""); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("it does not end")
		}
	}
	if list := g.remoteRoutes(t, 0); len(list) != 1 {
		t.Errorf("without the process the routes are %v", list)
	}
	must(t, g.net[0].Setup(t.Context()))
	goesOn("killed, and started again")
}
