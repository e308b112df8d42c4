package network

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"slices"
	"strings"
	"unsafe"

	"github.com/google/nftables"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/stead-project/stead/internal/wrap"
)

// Setting is one thing that Setup or Attach makes on the host.
type Setting struct {
	// Kind is route, address, sysctl, nft, link, peer or rule.
	Kind string
	// What it is, as ip, sysctl and nft write it.
	What string
	// Set: it is there now.
	Set bool
}

// Check lists everything Setup makes on the host, the link, sysctl and host ports of
// each member that is attached, and what there is for services and policies, without changing anything. If Setup would refuse, its
// ErrOverlap is returned with the list.
func (n *Network) Check(ctx context.Context) ([]Setting, error) {
	h, err := n.host()
	if err != nil {
		return nil, fmt.Errorf("check network: %w", err)
	}
	defer h.Close()
	settings, err := n.settings(ctx, h)
	if err != nil {
		return nil, err
	}
	return settings, n.checkOverlap(h)
}

func (n *Network) settings(ctx context.Context, h *netlink.Handle) (_ []Setting, err error) {
	defer wrap.Error(&err, "check network")
	all, err := routes(h, 0)
	if err != nil {
		return nil, err
	}
	addrs, err := addresses(h, nil)
	if err != nil {
		return nil, err
	}
	forward, err := n.sysctlIs("net/ipv4/ip_forward", "1")
	if err != nil {
		return nil, err
	}
	var table bool
	var shield []string
	err = n.nft(func(c *nftables.Conn) (err error) {
		table, err = n.nat.isComplete(c)
		if err == nil {
			shield, _, err = n.shield.read(c)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	covered := slices.ContainsFunc(all, func(r netlink.Route) bool {
		return n.isUnreachable(r) && prefixOf(r.Dst) == n.cfg.CIDR
	})
	gateway := slices.ContainsFunc(addrs, func(a netlink.Addr) bool {
		return a.Label == n.label() && prefixOf(a.IPNet).Addr() == n.cfg.Gateway
	})
	settings := []Setting{
		{"route", fmt.Sprintf("unreachable %s proto %d metric %d", n.cfg.CIDR, protocol, n.metric()), covered},
		{"address", fmt.Sprintf("%s/32 dev lo label %s", n.cfg.Gateway, n.label()), gateway},
		{"sysctl", "net.ipv4.ip_forward = 1", forward},
		{"nft", fmt.Sprintf("table ip %s: ip saddr %s ip daddr != %s masquerade", n.table().Name, n.cfg.CIDR, n.cfg.CIDR), table},
		{"nft", fmt.Sprintf("table ip %s: from members udp dport %d drop", n.shieldTable().Name, vxlanPort), len(shield) > 0},
	}
	if len(shield) > 1 {
		settings = append(settings, Setting{"nft", fmt.Sprintf("table ip %s: udp dport %d VXLAN %d not from a node drop",
			n.shieldTable().Name, vxlanPort, n.vni()), true})
	}
	if link, err := h.LinkByName(n.tunnelName()); err == nil {
		settings = append(settings, Setting{"link", fmt.Sprintf("%s alias %s: VXLAN %d to other hosts, UDP port %d",
			link.Attrs().Name, n.tunnelAlias(), n.vni(), vxlanPort), true})
	}
	settings = append(settings, n.wire.settings(h)...)
	if len(shield) > 0 && strings.HasPrefix(shield[len(shield)-1], besideMark) {
		settings = append(settings, Setting{"nft", fmt.Sprintf("table ip %s: ip saddr %s neither from members nor from %s drop",
			n.shieldTable().Name, n.cfg.CIDR, n.wire.wireName()), true})
	}
	ports, err := n.nat.portSettings()
	if err != nil {
		return nil, err
	}
	services, err := n.serviceSettings(all)
	if err != nil {
		return nil, err
	}
	policies, err := n.policySettings()
	if err != nil {
		return nil, err
	}
	members, err := n.memberSettings(ctx)
	return slices.Concat(settings, ports, services, policies, members), err
}

// memberSettings are the links of attached members, and their sysctls.
func (n *Network) memberSettings(ctx context.Context) (settings []Setting, err error) {
	ids, err := n.Attached(ctx)
	if err != nil {
		return nil, err
	}
	for _, id := range ids {
		strict, err := n.sysctlIs("net/ipv4/conf/"+n.linkName(id)+"/rp_filter", "1")
		if err != nil {
			return nil, err
		}
		none, err := n.sysctlIs("net/ipv6/conf/"+n.linkName(id)+"/disable_ipv6", "1")
		if errors.Is(err, fs.ErrNotExist) {
			none = true // the kernel has no IPv6
		} else if err != nil {
			return nil, err
		}
		settings = append(settings,
			Setting{"link", n.linkName(id) + " alias " + n.alias(id), true},
			Setting{"sysctl", "net.ipv4.conf." + n.linkName(id) + ".rp_filter = 1", strict},
			Setting{"sysctl", "net.ipv6.conf." + n.linkName(id) + ".disable_ipv6 = 1", none})
	}
	return settings, nil
}

// portSettings are the host ports that are set.
func (t *natTable) portSettings() (list []Setting, err error) {
	err = t.nft(func(c *nftables.Conn) error {
		have, err := t.portRules(c)
		var listed []published
		for _, r := range have {
			if slices.Contains(listed, r.published) {
				continue
			}
			listed = append(listed, r.published)
			list = append(list, Setting{"nft", fmt.Sprintf("table ip %s: host port %s to %s (%s)",
				t.table().Name, r.port, netip.AddrPortFrom(r.addr, r.port.To), r.id), true})
		}
		return err
	})
	return list, err
}

// Warnings names what is not ours and will keep members from being reached: rules
// that drop forwarded packets by default, whether nft, iptables-nft or iptables-legacy
// made them. One sentence each. What cannot be looked at is one, too.
func (n *Network) Warnings() ([]string, error) {
	var found []string
	err := n.nft(func(c *nftables.Conn) error {
		chains, err := c.ListChains()
		if err != nil {
			return fmt.Errorf("list nft chains: %w", err)
		}
		for _, chain := range chains {
			if dropsForwarded(chain) {
				found = append(found, n.dropWarning(fmt.Sprintf("nft chain %s of table %s", chain.Name, chain.Table.Name)))
			}
		}
		switch drops, err := legacyDrops(); {
		case err != nil:
			found = append(found, fmt.Sprintf("cannot read the rules of iptables-legacy (%v): "+
				"check that `iptables-legacy -S FORWARD` accepts %s", err, n.cfg.CIDR))
		case drops:
			found = append(found, n.dropWarning("iptables-legacy's chain FORWARD"))
		}
		return nil
	})
	return found, err
}

func (n *Network) dropWarning(chain string) string {
	return fmt.Sprintf("%s drops forwarded packets by default: members cannot reach each other unless it accepts %s", chain, n.cfg.CIDR)
}

func dropsForwarded(c *nftables.Chain) bool {
	return c.Hooknum != nil && *c.Hooknum == *nftables.ChainHookForward && c.Type == nftables.ChainTypeFilter &&
		c.Policy != nil && *c.Policy == nftables.ChainPolicyDrop &&
		(c.Table.Family == nftables.TableFamilyIPv4 || c.Table.Family == nftables.TableFamilyINet)
}

// The kernel's interface to the tables of iptables-legacy, which nftables does not
// show: linux/netfilter_ipv4/ip_tables.h.
const (
	getInfo    = 64 // IPT_SO_GET_INFO
	getEntries = 65 // IPT_SO_GET_ENTRIES

	tableName    = 32                       // bytes of a table's name
	infoBytes    = tableName + 13*4         // struct ipt_getinfo
	infoHooks    = tableName                // .valid_hooks
	infoPolicies = tableName + 4 + 5*4      // .underflow
	infoSize     = tableName + 4 + 10*4 + 4 // .size
	entriesHead  = tableName + 8            // struct ipt_get_entries before its entries

	entryTarget   = 84 + 4 // ipt_entry.target_offset, after ipt_ip and nfcache
	targetVerdict = 32     // xt_standard_target.verdict, after xt_entry_target

	hookForward = 2  // NF_INET_FORWARD
	verdictDrop = -1 // -NF_DROP - 1
)

// legacyDrops reports whether the chain FORWARD of iptables-legacy drops by default,
// in the namespace of the calling thread. Nothing is loaded for looking: a table that
// does not stand is not asked for.
func legacyDrops() (bool, error) {
	names, err := os.ReadFile("/proc/thread-self/net/ip_tables_names")
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil // a kernel without such tables
	}
	if err != nil {
		return false, err
	}
	if !slices.Contains(strings.Fields(string(names)), "filter") {
		return false, nil
	}
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.IPPROTO_RAW)
	if err != nil {
		return false, fmt.Errorf("open raw socket: %w", err)
	}
	defer unix.Close(fd)
	info := make([]byte, infoBytes)
	copy(info, "filter")
	if err := getsockopt(fd, getInfo, info); err != nil {
		return false, fmt.Errorf("ask for table filter: %w", err)
	}
	size := binary.NativeEndian.Uint32(info[infoSize:])
	table := make([]byte, entriesHead+int(size))
	copy(table, "filter")
	binary.NativeEndian.PutUint32(table[tableName:], size)
	if err := getsockopt(fd, getEntries, table); err != nil {
		return false, fmt.Errorf("read table filter: %w", err) // also when it changed in between
	}
	return forwardDrops(info, table[entriesHead:])
}

// forwardDrops finds the policy of FORWARD: the verdict of the entry that is reached
// when no rule decided.
func forwardDrops(info, entries []byte) (bool, error) {
	if binary.NativeEndian.Uint32(info[infoHooks:])&(1<<hookForward) == 0 {
		return false, nil
	}
	at := uint64(binary.NativeEndian.Uint32(info[infoPolicies+4*hookForward:]))
	if at+entryTarget+2 > uint64(len(entries)) {
		return false, fmt.Errorf("table filter: policy at %d of %d bytes", at, len(entries))
	}
	target := at + uint64(binary.NativeEndian.Uint16(entries[at+entryTarget:]))
	if target+targetVerdict+4 > uint64(len(entries)) {
		return false, fmt.Errorf("table filter: verdict at %d of %d bytes", target, len(entries))
	}
	return int32(binary.NativeEndian.Uint32(entries[target+targetVerdict:])) == verdictDrop, nil
}

// getsockopt fills b, which the kernel also reads. The system's own wrapper cannot
// hand in what it reads.
func getsockopt(fd, option int, b []byte) error {
	size := uint32(len(b))
	_, _, errno := unix.Syscall6(unix.SYS_GETSOCKOPT, uintptr(fd), unix.IPPROTO_IP, uintptr(option),
		uintptr(unsafe.Pointer(&b[0])), uintptr(unsafe.Pointer(&size)), 0)
	if errno != 0 {
		return errno
	}
	return nil
}
