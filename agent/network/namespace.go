package network

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	"github.com/stead-project/stead/internal/thread"
	"github.com/stead-project/stead/internal/wrap"
)

// inNamespace runs f on a thread inside the network namespace at path ("": where the
// process is).
func inNamespace(path string, f func() error) error {
	if path == "" {
		return f()
	}
	return thread.Run(func() error {
		ns, err := netns.GetFromPath(path)
		if err != nil {
			return fmt.Errorf("open network namespace %s: %w", path, err)
		}
		defer ns.Close()
		if err := netns.Set(ns); err != nil {
			return fmt.Errorf("enter network namespace %s: %w", path, err)
		}
		return f()
	})
}

// open opens a netlink socket into the namespace at path; the caller closes it.
func open(path string) (h *netlink.Handle, err error) {
	err = inNamespace(path, func() error {
		h, err = netlink.NewHandle(unix.NETLINK_ROUTE)
		if err != nil {
			return fmt.Errorf("open netlink: %w", err)
		}
		return nil
	})
	return h, err
}

// host opens a netlink socket into the host's namespace.
func (n *node) host() (*netlink.Handle, error) { return open(n.cfg.NetNS) }

// step is one thing to do; what it is precedes its error, unless that says it.
type step struct {
	what string
	do   func() error
}

// inOrder does all steps up to the first that fails.
func inOrder(steps ...step) error {
	for _, s := range steps {
		err := s.do()
		if err != nil && s.what != "" {
			return fmt.Errorf("%s: %w", s.what, err)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// listed repeats a listing that changes interrupted, so that it is whole.
func listed[T any](what string, list func() ([]T, error)) ([]T, error) {
	const tries = 20
	for i := 0; ; i++ {
		all, err := list()
		switch {
		case err == nil:
			return all, nil
		case !errors.Is(err, netlink.ErrDumpInterrupted) || i == tries:
			return nil, fmt.Errorf("list %s: %w", what, err)
		}
	}
}

func links(h *netlink.Handle) ([]netlink.Link, error) { return listed("links", h.LinkList) }

// routes lists the IPv4 routes of all tables, or of one link.
func routes(h *netlink.Handle, link int) ([]netlink.Route, error) {
	filter, mask := &netlink.Route{}, netlink.RT_FILTER_TABLE
	if link != 0 {
		filter.LinkIndex, mask = link, mask|netlink.RT_FILTER_OIF
	}
	return listed("routes", func() ([]netlink.Route, error) {
		return h.RouteListFiltered(netlink.FAMILY_V4, filter, mask)
	})
}

func addresses(h *netlink.Handle, link netlink.Link) ([]netlink.Addr, error) {
	return listed("addresses", func() ([]netlink.Addr, error) { return h.AddrList(link, netlink.FAMILY_V4) })
}

// sysctlPath is the file of a setting such as net/ipv4/ip_forward. It shows the
// namespace of the thread that opens it.
func sysctlPath(key string) string { return filepath.Join("/proc/sys", key) }

// setSysctl makes a setting of this thread's namespace hold; a right one is not written.
// fs.ErrNotExist: the kernel has no such setting.
func setSysctl(key, value string) (err error) {
	defer wrap.Error(&err, "set sysctl %s to %s", strings.ReplaceAll(key, "/", "."), value)
	now, err := os.ReadFile(sysctlPath(key))
	if err != nil || strings.TrimSpace(string(now)) == value {
		return err
	}
	return os.WriteFile(sysctlPath(key), []byte(value), 0)
}

// sysctl is setSysctl in the host's namespace.
func (n *node) sysctl(key, value string) error {
	return inNamespace(n.cfg.NetNS, func() error { return setSysctl(key, value) })
}

// sysctlIs reports whether a setting of the host's namespace holds.
func (n *node) sysctlIs(key, value string) (holds bool, err error) {
	err = inNamespace(n.cfg.NetNS, func() error {
		now, err := os.ReadFile(sysctlPath(key))
		holds = strings.TrimSpace(string(now)) == value
		return err
	})
	return holds, err
}

// Members are IPv4 only. A link with IPv6 would give the host routes and addresses as a
// member advertises them, and nothing would check from which address it sends.
var withoutIPv6 = []struct{ name, value string }{
	{"accept_ra", "0"}, {"autoconf", "0"}, // for when IPv6 is switched on for all links
	{"disable_ipv6", "1"},
}

// disableIPv6 takes IPv6 from a link of the namespace at path, before it is up or after. A
// kernel without IPv6 has nothing to take.
func disableIPv6(path, link string) error {
	return inNamespace(path, func() error {
		for _, s := range withoutIPv6 {
			if err := setSysctl("net/ipv6/conf/"+link+"/"+s.name, s.value); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return fmt.Errorf("take IPv6 from %s: %w", link, err)
			}
		}
		return nil
	})
}
