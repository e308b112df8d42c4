// Package host is what one machine gives to its members: containerd, network, volumes and DNS,
// set up from the options of 'stead agent', kept and repaired while it runs, and taken back (Purge).
package host

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/stead-project/stead/agent/cgroup"
	"github.com/stead-project/stead/agent/files"
	"github.com/stead-project/stead/agent/home"
	"github.com/stead-project/stead/agent/images"
	"github.com/stead-project/stead/agent/move/peer"
	"github.com/stead-project/stead/agent/nameserver"
	"github.com/stead-project/stead/agent/network"
	"github.com/stead-project/stead/agent/pressure"
	"github.com/stead-project/stead/agent/runtime/containerdrt"
	"github.com/stead-project/stead/agent/session"
	"github.com/stead-project/stead/agent/volume"
	"github.com/stead-project/stead/agent/watchdog"
	"github.com/stead-project/stead/dnsd"
	"github.com/stead-project/stead/internal/notify"
	"github.com/stead-project/stead/internal/trouble"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
)

// Machine is what one machine gives to its members.
type Machine struct {
	Runtime *containerdrt.Runtime
	Network *network.Network
	Volumes *volume.Volumes
	Meter   *volume.Meter
	Moves   *volume.Moves
	Copier  *peer.Exchange // the caller closes it

	interests atomic.Pointer[session.Interests] // nil: not yet
	following chan struct{}                     // closed once there are interests

	names    *nameserver.Feeder
	setUp    setUp
	newest   dnsd.Snapshot
	listed   bool // a server has said that newest is all there is
	routes   *routes
	leads    *leads
	policies *policies
	helper   string // path of stead-node
	log      *slog.Logger
	changed  *notify.Signal // something of the host's network went

	marks  images.Marks  // of disks with images
	bounds cgroup.Bounds // of all members
	short  pressure.Tracker
	root   string // the agent's directory
	memory int64  // bytes of the host
	disk   int64  // bytes of the agent's disk
	// What was logged last, so that it is logged once: of the bounds, of the network.
	unbounded trouble.Last
	warned    []string
}

// New makes the parts of a machine for the cluster that its node joined; nothing is changed
// on it yet. The caller closes Runtime.
func New(o Options, at *home.Home, log *slog.Logger) (*Machine, error) {
	cidr, err := netip.ParsePrefix(at.CIDR())
	if err != nil {
		return nil, fmt.Errorf("the cluster's range of addresses: %w", err)
	}
	id := at.Cluster()
	gateway, err := o.gateway()
	if err != nil {
		return nil, err
	}
	for _, dir := range []string{o.Root, o.RunDir} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return nil, err
		}
	}
	helper, _, err := o.lay("stead-node", o.SteadNode)
	if err != nil {
		return nil, err
	}
	boot, err := home.BootID(o.BootID)
	if err != nil {
		return nil, err
	}
	name := "stead-" + id[:8] + "-" + o.Node
	memory, err := memoryBytes()
	if err != nil {
		return nil, err
	}
	bounds, err := o.bounds(memory)
	if err != nil {
		return nil, err
	}
	disk, _ := roomOf(o.Root) // 0: not known
	m := &Machine{helper: helper, log: log, marks: images.Marks{High: o.ImageHigh, Low: o.ImageLow}, bounds: bounds, memory: memory, disk: disk.TotalBytes, root: o.Root, changed: notify.New(), following: make(chan struct{}), setUp: newSetUp(),
		short: pressure.Tracker{Limits: o.pressureLimits()}}
	program, err := o.findRuntime()
	if err != nil {
		return nil, err
	}
	m.Runtime, err = containerdrt.New(containerdrt.Config{
		Address: o.Containerd, Namespace: name, CgroupParent: "/" + name, RunDir: o.RunDir, Logger: helper,
		MaxProcesses: o.Processes, MaxImageBytes: o.ImageBytes, SeccompDir: o.SeccompDir,
		HostsDir: o.Registries, MaxPulls: o.Pulls, OCIRuntime: program, NativeOnly: o.NativeOnly, Log: log,
	})
	if err != nil {
		return nil, err
	}
	wireGuard, err := o.tunnelFor(m)
	if err != nil {
		return nil, errors.Join(err, m.Runtime.Close())
	}
	m.Network, err = network.New(network.Config{
		ClusterID: id, Node: spec.NodeName(o.Node), CIDR: cidr, Gateway: gateway, MTU: o.MTU, Mode: o.Mode, WireGuard: wireGuard, Policies: true,
		Names: m.openNames, Logger: log,
	})
	if err != nil {
		return nil, errors.Join(err, m.Runtime.Close())
	}
	m.routes = newRoutes(spec.NodeName(o.Node), cidr, m.Network, log)
	m.leads = newLeads(spec.NodeName(o.Node), at.ServiceCIDR, m.Network.SetServices, log)
	m.policies = newPolicies(place{node: spec.NodeName(o.Node), members: cidr, dns: gateway}, m.Network.SetPolicies, log)
	m.Volumes, err = volume.New(volume.Config{Root: o.Root, RunDir: o.RunDir, Classes: o.Classes, Shared: o.Shared, Sized: o.Sized, Node: spec.NodeName(o.Node), ClusterID: id, Boot: boot, Clock: watchdog.BootTime,
		Kept: []string{filepath.Dir(o.Containerd)}})
	if err != nil {
		return nil, errors.Join(err, m.Runtime.Close())
	}
	m.Meter = volume.NewMeter(m.Volumes, log)
	m.Moves = volume.NewMoves(m.Volumes)
	if m.Copier, err = o.copier(log); err != nil {
		return nil, errors.Join(err, m.Runtime.Close())
	}
	for _, dir := range o.Classes {
		if _, err := os.Stat(dir); err != nil {
			log.Warn("storage class not usable yet", "err", err)
		}
	}
	for _, lack := range o.lacks() {
		log.Warn("sized class not usable yet", "err", lack)
	}
	if m.names, err = o.nameServer(m, id+" "+string(boot), gateway, cidr); err != nil {
		return nil, errors.Join(err, m.Runtime.Close())
	}
	m.newest = dnsd.Snapshot{Domain: at.Domain(), Gateway: gateway, Members: cidr}
	return m, nil
}

// Allocatable is what members together can have: of memory what is not reserved for the host,
// of disk the size of that on which the agent's root is. Zero: all, or not known.
func (m *Machine) Allocatable() files.Allocatable {
	memory := m.bounds.MemoryBytes
	if memory == 0 {
		memory = m.memory
	}
	return files.Allocatable{MemoryBytes: memory, DiskBytes: m.disk}
}

// Repair puts back what is missing of the host's network, and logs what came in
// the way of members meanwhile. One goroutine at a time may call it.
func (m *Machine) Repair(ctx context.Context) error {
	err := m.Network.Setup(ctx)
	m.noteSetUp(ctx, err)
	m.leads.repair()
	m.policies.repair()
	m.warn()
	m.bound()
	return err
}

// warn logs what of the host's own keeps members from being reached, once each.
func (m *Machine) warn() {
	warnings, err := m.Network.Warnings()
	if err != nil {
		warnings = []string{fmt.Sprintf("the firewall cannot be read: %v", err)}
	}
	for _, w := range warnings {
		if !slices.Contains(m.warned, w) {
			m.log.Warn("host firewall may block member traffic", "reason", w)
		}
	}
	m.warned = warnings
}

// bound sets the bounds of all members, and logs once what keeps it from that.
func (m *Machine) bound() {
	if err := m.Runtime.Bound(m.bounds); m.unbounded.IsErr(err) {
		m.log.Warn("members not limited; they could use what the host itself needs", "reason", err.Error())
	}
}

// Update takes the newest snapshots of all sets: DNS answers from them, and members elsewhere
// are reached where they say, and so are those that addresses of services lead to, and NetworkPolicies are enforced. One goroutine at a time may call it, and the snapshots must not be
// changed. For agent.Config.Snapshots.
func (m *Machine) Update(snapshots []records.Snapshot) {
	m.newest.Pictures = snapshots
	for i := range snapshots {
		if s := &snapshots[i]; s.Sequence.Compare(m.newest.Sequence) > 0 {
			m.newest.Sequence = s.Sequence
		}
	}
	m.newest.Services = m.leads.rng()
	m.names.Update(m.newest, m.listed)
	m.routes.update(snapshots)
	m.policies.update(snapshots)
	m.leads.update(snapshots)
}

// Listed takes the sequence of a list of all sets that a server sent, before the Update with it. For agent.Config.Listed.
func (m *Machine) Listed(s spec.Sequence) {
	m.listed = true
	if s.Compare(m.newest.Sequence) > 0 {
		m.newest.Sequence = s
	}
}

// UpdateHosts takes the addresses of all nodes; it does not block. For agent.Config.Hosts.
func (m *Machine) UpdateHosts(nodes []netip.Addr) { replace(m.routes.nodes, nodes) }

// Changed receives when something of the host's network went. For agent.Config.Changed.
func (m *Machine) Changed() <-chan struct{} { return m.changed.C() }

// Run keeps DNS answering, and routes, and sees what goes of the network, until ctx ends.
func (m *Machine) Run(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return m.runNames(ctx) })
	group.Go(func() error { return m.routes.run(ctx) })
	group.Go(func() error { return m.leads.run(ctx) })
	group.Go(func() error { return m.policies.run(ctx) })
	group.Go(func() error { m.Network.Watch(ctx, m.changed); return nil })
	group.Go(func() error { m.Meter.Run(ctx); return nil })
	return group.Wait()
}

// CollectImages removes images that nothing needs while the disk with them is too full, until ctx
// ends; wanted are those that the node's lives need.
func (m *Machine) CollectImages(ctx context.Context, wanted func() []string) {
	images.New(images.Config{Store: m.Runtime, Marks: m.marks, Wanted: wanted, Now: time.Now, Log: m.log}).Run(ctx)
}

// ForeignWatchdog reports whether a watchdog runs there that is of another release than StartWatchdog's.
func (m *Machine) ForeignWatchdog(dir string) bool { return watchdog.Dir(dir).Foreign(m.helper) }

// StartWatchdog starts a watchdog of the lives recorded in dir, apart from us: it outlives this
// process, and what ends the agent's cgroup does not end it.
func (m *Machine) StartWatchdog(dir string) error {
	pid, err := watchdog.Start(m.helper, watchdog.Dir(dir))
	if err != nil {
		return err
	}
	if err := m.Runtime.Put("watchdog", pid); err != nil {
		m.log.Warn("watchdog left in the agent's cgroup", "err", err)
	}
	return nil
}
