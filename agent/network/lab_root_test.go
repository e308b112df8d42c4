package network

import (
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/nftables"
	"github.com/stead-project/stead/spec"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// The tests in *_root_test.go make network namespaces of their own and touch
// nothing outside of them.
func needsRoot(t *testing.T) {
	t.Helper()
	if os.Getenv("STEAD_ROOT_TESTS") != "1" || os.Geteuid() != 0 {
		t.Skip("needs root and STEAD_ROOT_TESTS=1")
	}
}

// namespace makes a network namespace, pinned until the test ends.
func namespace(t testing.TB) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "net")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	err := inNamespace("/proc/thread-self/ns/net", func() error { // on a thread that ends here
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			return err
		}
		return unix.Mount("/proc/thread-self/ns/net", path, "", unix.MS_BIND, "")
	})
	if err != nil {
		t.Fatalf("make a network namespace: %v", err)
	}
	t.Cleanup(func() { unpin(t, path) })
	return path
}

// unpin lets the kernel destroy a namespace; again is no error.
func unpin(t testing.TB, path string) {
	t.Helper()
	if err := unix.Unmount(path, unix.MNT_DETACH); err != nil && err != unix.EINVAL && err != unix.ENOENT {
		t.Errorf("unpin %s: %v", path, err)
	}
}

// handle opens a netlink socket into a namespace for the rest of the test.
func handle(t *testing.T, path string) *netlink.Handle {
	t.Helper()
	h, err := open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(h.Close)
	return h
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// host makes a namespace that stands for a host, with lo up, and a Network in it.
func host(t *testing.T, edit func(*Config)) (*Network, string) {
	t.Helper()
	needsRoot(t)
	path := namespace(t)
	h := handle(t, path)
	lo, err := h.LinkByName("lo")
	must(t, err)
	must(t, h.LinkSetUp(lo))
	c := Config{ClusterID: cluster, Node: "n1", NetNS: path}
	if edit != nil {
		edit(&c)
	}
	n, err := New(c)
	must(t, err)
	return n, path
}

func member(ordinal int) spec.Identity {
	return spec.Identity{Namespace: "default", Set: "db", Ordinal: ordinal}
}

func address(last byte) netip.Addr { return netip.AddrFrom4([4]byte{10, 88, 0, last}) }

// attach gives a new namespace to db-<ordinal> at 10.88.0.<10 + ordinal>.
func attach(t *testing.T, n *Network, ordinal int) (string, netip.Addr) {
	t.Helper()
	path, addr := namespace(t), address(byte(10+ordinal))
	must(t, n.Attach(t.Context(), member(ordinal), path, addr))
	return path, addr
}

// echo answers each TCP connection to addr:7 inside a namespace with the
// address it came from.
func echo(t *testing.T, path string, addr netip.Addr) {
	t.Helper()
	var l net.Listener
	must(t, inNamespace(path, func() error {
		var err error
		l, err = net.Listen("tcp4", netip.AddrPortFrom(addr, 7).String())
		return err
	}))
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			from, _, _ := net.SplitHostPort(c.RemoteAddr().String())
			io.WriteString(c, from)
			c.Close()
		}
	}()
	t.Cleanup(func() { l.Close(); <-done })
}

// dial connects from inside a namespace to addr:7 and returns what echo says.
func dial(path string, addr netip.Addr) (from string, err error) {
	err = inNamespace(path, func() error {
		c, err := net.DialTimeout("tcp4", netip.AddrPortFrom(addr, 7).String(), 20*time.Second)
		if err != nil {
			return err
		}
		defer c.Close()
		c.SetDeadline(time.Now().Add(time.Minute))
		b, err := io.ReadAll(c)
		from = string(b)
		return err
	})
	return from, err
}

// reaches fails the test unless addr answers and sees the connection come from want.
func reaches(t *testing.T, from string, addr, want netip.Addr) {
	t.Helper()
	if got, err := dial(from, addr); err != nil || got != want.String() {
		t.Errorf("dial %s: from %q, %v; want from %s", addr, got, err, want)
	}
}

// picture writes everything of a namespace's network down, one line each, sorted.
func picture(t *testing.T, path string) []string {
	t.Helper()
	h := handle(t, path)
	var lines []string
	all, err := links(h)
	must(t, err)
	names := map[int]string{}
	for _, l := range all {
		a := l.Attrs()
		names[a.Index] = a.Name
		lines = append(lines, fmt.Sprintf("link %d %s %s mtu %d %s up=%v %q", a.Index, a.Name, l.Type(), a.MTU, a.HardwareAddr, a.Flags&net.FlagUp != 0, a.Alias))
	}
	addrs, err := addresses(h, nil)
	must(t, err)
	for _, a := range addrs {
		lines = append(lines, fmt.Sprintf("address %s %s scope %d label %s", names[a.LinkIndex], a.IPNet, a.Scope, a.Label))
	}
	all4, err := routes(h, 0)
	must(t, err)
	for _, r := range all4 {
		lines = append(lines, fmt.Sprintf("route %s type %d metric %d src %v", describe(r, names), r.Type, r.Priority, r.Src))
	}
	neighbours, err := listed("neighbours", func() ([]netlink.Neigh, error) { return h.NeighList(0, unix.AF_INET) })
	must(t, err)
	for _, n := range neighbours {
		if n.State&netlink.NUD_PERMANENT != 0 {
			lines = append(lines, fmt.Sprintf("neighbour %s %s %s", names[n.LinkIndex], n.IP, n.HardwareAddr))
		}
	}
	must(t, inNamespace(path, func() error {
		c, err := nftables.New()
		if err != nil {
			return err
		}
		chains, err := c.ListChains()
		for _, chain := range chains {
			rules, err := (&node{}).ruleMarks(chain.Table)
			if err != nil {
				return err
			}
			lines = append(lines, fmt.Sprintf("nft %s %s: %d rules", chain.Table.Name, chain.Name, len(rules[chain.Name])))
		}
		return err
	}))
	slices.Sort(lines)
	return lines
}

// same fails the test with the differing lines of two pictures.
func same(t *testing.T, what string, before, after []string) {
	t.Helper()
	var diff []string
	for _, l := range before {
		if !slices.Contains(after, l) {
			diff = append(diff, "- "+l)
		}
	}
	for _, l := range after {
		if !slices.Contains(before, l) {
			diff = append(diff, "+ "+l)
		}
	}
	if len(diff) > 0 {
		t.Errorf("%s:\n%s", what, strings.Join(diff, "\n"))
	}
}
