package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	goruntime "runtime"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/pflag"

	"github.com/stead-project/stead/agent/cgroup"
	"github.com/stead-project/stead/agent/home"
	"github.com/stead-project/stead/agent/network"
	"github.com/stead-project/stead/agent/runtime/containerdrt"
	"github.com/stead-project/stead/agent/volume"
	"github.com/stead-project/stead/dnsd"
	"github.com/stead-project/stead/internal/notify"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/server"
	"github.com/stead-project/stead/spec"
)

// hostOptions place an agent on its host; flags mirror the fields.
type hostOptions struct {
	Root       string            // disk: identity, ledger, volumes, logs
	RunDir     string            // tmpfs: namespaces, files of members
	Node       string            // name of the node; default the host's name
	Containerd string            // containerd's socket
	Gateway    string            // the members' gateway and DNS address, on lo
	BootID     string            // file that holds the kernel's boot id
	MTU        int               // of the members' links
	Mode       string            // how members of other hosts are reached
	Address    string            // of this host for other hosts
	DNSListen  []string          // where DNS answers machines outside, beside the gateway
	Processes  int64             // that a container may have; 0: any number
	ImageBytes int64             // that an image may have, as an archive and unpacked; 0: any number
	Reserve    int64             // bytes of memory that members leave the host; 0: a share, -1: none
	Metrics    string            // where the agent's are served; "": nowhere
	Classes    map[string]string // directory by storage class
	Shared     []string          // those whose directory other hosts have, too
	Fenced     []string          // those of these that fence by themselves
	Join       []string          // servers on other hosts; none: a socket
	Token      string            // to be let in by them; "": has been
}

func (o *hostOptions) flags(f *pflag.FlagSet) {
	f.StringVar(&o.RunDir, "run-dir", "/run/stead/agent", "directory on tmpfs: namespaces and files of running members")
	f.StringVar(&o.Node, "node", "", "name of this node (default: the host's name)")
	f.StringVar(&o.Containerd, "containerd", "/run/containerd/containerd.sock", "containerd's socket; it is used as it is")
	f.StringVar(&o.Gateway, "gateway", network.DefaultGateway, "address of gateway and DNS for members, put on lo")
	f.StringVar(&o.BootID, "boot-id", home.BootIDFile, "file that holds the boot id of this host")
	f.StringToStringVar(&o.Classes, "storage-class", nil,
		"a storage class and its directory on this host: ssd=/mnt/ssd (repeatable; local is in --root unless named)")
	f.StringSliceVar(&o.Shared, "shared-class", nil,
		"a --storage-class whose directory is one and the same on all hosts that say so: its volumes go where their members begin (repeatable)")
	f.StringSliceVar(&o.Fenced, "fenced-class", nil,
		"a --shared-class whose storage takes no late write of a host that is cut off: guarded members are replaced without a fence (repeatable)")
	f.IntVar(&o.MTU, "mtu", 1500, "MTU of the members' links")
	f.StringVar(&o.Mode, "network-mode", network.ModeAuto,
		"how members of other hosts are reached: routes (hosts share a link), vxlan (through a tunnel), or auto, which takes what fits")
	f.StringSliceVar(&o.DNSListen, "dns-listen", nil, "ADDRESS[:PORT] of this host where its DNS answers machines without Stead, too; of members' names only (repeatable)")
	f.Int64Var(&o.Processes, "max-processes", 4096, "processes and threads that a container may have (0: any number)")
	f.Int64Var(&o.ImageBytes, "max-image-bytes", 20<<30, "bytes that an archive of images may have, as it comes and unpacked, and that the layers of a pulled image may have (0: any number)")
	f.Int64Var(&o.Reserve, "reserve-memory-bytes", 0,
		"memory that members leave the host (0: 5 %, at least 512 MiB and at most a quarter; -1: they may use all)")
	f.StringVar(&o.Address, "address", "", "address of this host for other hosts (default: that of the default route, or the only one)")
}

// check fills in the node's name and refuses what cannot work.
func (o *hostOptions) check() error {
	if o.Node == "" {
		name, err := os.Hostname()
		if err != nil {
			return fmt.Errorf("find the host's name: %w; give --node", err)
		}
		o.Node = strings.ToLower(name)
	}
	if !spec.ValidSubdomain(o.Node) {
		return usageError{fmt.Errorf("--node %q is no name: lower-case letters, digits, '-' and '.'", o.Node)}
	}
	if err := server.CheckMetrics(o.Metrics); err != nil {
		return usageError{err}
	}
	if o.Processes < 0 || o.Processes > 0 && o.Processes < minProcesses {
		return usageError{fmt.Errorf("--max-processes %d: write 0 (any number), or at least %d", o.Processes, minProcesses)}
	}
	if o.ImageBytes < 0 {
		return usageError{fmt.Errorf("--max-image-bytes %d: write a number of bytes, or 0 (any number)", o.ImageBytes)}
	}
	if o.Reserve < -1 {
		return usageError{fmt.Errorf("--reserve-memory-bytes %d: write a number of bytes, 0 or -1", o.Reserve)}
	}
	for _, class := range o.Shared {
		if o.Classes[class] == "" {
			return usageError{fmt.Errorf("--shared-class %s is no --storage-class of this host", class)}
		}
	}
	for _, class := range o.Fenced {
		if !slices.Contains(o.Shared, class) {
			return usageError{fmt.Errorf("--fenced-class %s is no --shared-class of this host", class)}
		}
	}
	for _, dir := range []*string{&o.Root, &o.RunDir} {
		abs, err := filepath.Abs(*dir)
		if err != nil {
			return err
		}
		*dir = abs
	}
	return nil
}

// host is what one machine gives to its members.
type host struct {
	runtime *containerdrt.Runtime
	network *network.Network
	volumes *volume.Volumes
	dns     *dnsd.Server
	reach   *reacher
	node    string // path of stead-node
	log     *slog.Logger
	changed *notify.Signal // something of the host's network went

	bounds cgroup.Bounds // of all members
	unsaid string        // bound's alone: what it told last

	warned []string // warn's alone: what it found last

	told dnsd.Snapshot // what is answered from; see's alone
	zone *dnsd.Zone    // made from it; nil: not yet
}

// newHost makes the parts of a host for a cluster; nothing is changed on it yet.
func newHost(o hostOptions, at *home.Home, log *slog.Logger) (*host, error) {
	cidr, err := netip.ParsePrefix(at.CIDR())
	if err != nil {
		return nil, fmt.Errorf("the cluster's range of addresses: %w", err)
	}
	id := at.Cluster()
	gateway, err := netip.ParseAddr(o.Gateway)
	if err != nil {
		return nil, usageError{fmt.Errorf("--gateway: %w", err)}
	}
	for _, dir := range []string{o.Root, o.RunDir} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return nil, err
		}
	}
	logger, err := layNode(o.Root)
	if err != nil {
		return nil, err
	}
	boot, err := home.BootID(o.BootID)
	if err != nil {
		return nil, err
	}
	name := "stead-" + id[:8] + "-" + o.Node
	bounds, err := o.bounds()
	if err != nil {
		return nil, err
	}
	h := &host{node: logger, log: log, bounds: bounds, changed: notify.New(), told: dnsd.Snapshot{Domain: at.Domain(), Gateway: gateway, Members: cidr}}
	h.runtime, err = containerdrt.New(containerdrt.Config{
		Address: o.Containerd, Namespace: name, CgroupParent: "/" + name, RunDir: o.RunDir, Logger: logger,
		MaxProcesses: o.Processes, MaxImageBytes: o.ImageBytes, Log: log,
	})
	if err != nil {
		return nil, err
	}
	h.network, err = network.New(network.Config{
		ClusterID: id, Node: spec.NodeName(o.Node), CIDR: cidr, Gateway: gateway, MTU: o.MTU, Mode: o.Mode, Logger: log,
	})
	if err != nil {
		return nil, errors.Join(err, h.runtime.Close())
	}
	h.reach = newReacher(spec.NodeName(o.Node), h.network, log)
	h.volumes, err = volume.New(volume.Config{Root: o.Root, RunDir: o.RunDir, Classes: o.Classes, Shared: o.Shared, Node: spec.NodeName(o.Node), ClusterID: id, Boot: boot, Clock: home.SinceBoot})
	if err != nil {
		return nil, errors.Join(err, h.runtime.Close())
	}
	for _, dir := range o.Classes {
		if _, err := os.Stat(dir); err != nil {
			log.Warn("storage class not usable yet", "err", err)
		}
	}
	upstreams, err := dnsd.HostUpstreams("/etc/resolv.conf")
	if err != nil {
		log.Warn("host's name servers not read; only members' names are answered", "err", err)
	}
	listen, err := o.dnsListen()
	if err != nil {
		return nil, errors.Join(err, h.runtime.Close())
	}
	h.dns, err = dnsd.New(dnsd.Config{
		Listen: append([]netip.AddrPort{netip.AddrPortFrom(gateway, 53)}, listen...), Upstreams: upstreams, Members: cidr, Logger: log,
	})
	if err != nil {
		return nil, errors.Join(err, h.runtime.Close())
	}
	return h, nil
}

// prepare sets the host's network up and opens the DNS addresses.
func (h *host) prepare(ctx context.Context) error {
	if err := h.network.Setup(ctx); err != nil {
		return err
	}
	h.warn()
	h.bound()
	_, err := h.dns.Listen(ctx)
	if errors.Is(err, syscall.EADDRINUSE) {
		err = fmt.Errorf("%w; stop it, or give members another --gateway", err)
	}
	return err
}

// repair puts back what is missing of the host's network, and tells what came in
// the way of members meanwhile.
func (h *host) repair(ctx context.Context) error {
	err := h.network.Setup(ctx)
	h.warn()
	h.bound()
	return err
}

// warn tells what of the host's own keeps members from being reached, once each.
func (h *host) warn() {
	warnings, err := h.network.Warnings()
	if err != nil {
		warnings = []string{fmt.Sprintf("the firewall cannot be read: %v", err)}
	}
	for _, w := range warnings {
		if !slices.Contains(h.warned, w) {
			h.log.Warn("host's network may stop members", "reason", w)
		}
	}
	h.warned = warnings
}

// see takes all sets as last told, and answers from them.
func (h *host) see(pictures []records.Snapshot) {
	h.told.Pictures = pictures
	for _, p := range pictures {
		if p.Sequence.Compare(h.told.Sequence) > 0 {
			h.told.Sequence = p.Sequence
		}
	}
	h.zone = h.zone.Next(h.told)
	h.dns.Swap(h.zone)
	h.reach.see(pictures)
}

// facts are what this node says of itself.
func facts(o hostOptions) (records.NodeFacts, error) {
	boot, err := home.BootID(o.BootID)
	if err != nil {
		return records.NodeFacts{}, err
	}
	address, err := o.address()
	if err != nil {
		return records.NodeFacts{}, err
	}
	memory, err := memoryBytes()
	return records.NodeFacts{
		Name: spec.NodeName(o.Node), Boot: boot, HostIP: address,
		Classes:       volume.ClassNames(o.Classes),
		SharedClasses: ascending(o.Shared), FencedClasses: ascending(o.Fenced),
		CPUMillis: int64(goruntime.NumCPU()) * 1000, MemoryBytes: memory, Version: version,
	}, err
}

// ascending is list in ascending order, each once.
func ascending(list []string) []string { return slices.Compact(slices.Sorted(slices.Values(list))) }
