package main

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/stead-project/stead/agent/home"
	"github.com/stead-project/stead/agent/host"
	"github.com/stead-project/stead/agent/network"
	"github.com/stead-project/stead/agent/volume"
	"github.com/stead-project/stead/server"
	"github.com/stead-project/stead/spec/scalar"
)

// hostOptions place an agent on its host.
type hostOptions struct {
	host.Options
	Metrics string   // address for the agent's metrics; "": none
	Trace   string   // endpoint of a collector of traces; "": none
	Join    []string // servers on other hosts; none: a socket
	Token   string   // join token; "": the node has joined
	// ShutdownTime is how long members may take to stop when the host is shut down; 0: they are not stopped.
	ShutdownTime time.Duration
}

func (o *hostOptions) flags(f *pflag.FlagSet) {
	f.StringVar(&o.RunDir, "run-dir", "/run/stead/agent", "directory on tmpfs: namespaces and files of running members")
	f.StringVar(&o.Node, "node", "", "name of this node (default: the host's name)")
	f.StringVar(&o.Containerd, "containerd", "/run/containerd/containerd.sock", "socket of containerd, which is used as it is and never reconfigured")
	f.StringVar(&o.Gateway, "gateway", network.DefaultGateway, "address of the members' gateway and DNS, added to lo")
	f.StringVar(&o.BootID, "boot-id", home.BootIDFile, "file that holds the boot id of this host")
	f.StringToStringVar(&o.Classes, "storage-class", nil,
		"storage class and its directory on this host: ssd=/mnt/ssd (repeatable; the class local is in --root unless given)")
	f.StringSliceVar(&o.Shared, "shared-class", nil,
		"a --storage-class that is the same directory on all hosts that declare it shared: its volumes follow their members (repeatable)")
	f.StringSliceVar(&o.Fenced, "fenced-class", nil,
		"a --shared-class whose storage rejects late writes of a host that is cut off: guarded members are replaced without a fence (repeatable)")
	f.StringSliceVar(&o.Sized, "sized-class", nil,
		"a --storage-class, or local, whose new volumes are file systems of the size that their claims ask for, reserved and enforced (repeatable)")
	f.IntVar(&o.MTU, "mtu", 1500, "MTU of the members' links")
	f.StringVar(&o.Mode, "network-mode", network.ModeAuto,
		"how members on other hosts are reached: routes (hosts share a link), vxlan (tunnel), or auto (whichever fits)")
	f.IntVar(&o.TunnelPort, "tunnel-port", network.DefaultTunnelPort, "UDP port of this host for WireGuard (the servers' --tunnel)")
	f.StringSliceVar(&o.DNSListen, "dns-listen", nil, "ADDRESS[:PORT] of this host where its DNS also answers machines without Stead, for members' names only (repeatable)")
	f.StringVar(&o.SeccompDir, "seccomp-dir", "/etc/stead/seccomp", "directory with the files of seccompProfile: {type: Localhost}")
	f.Int64Var(&o.Processes, "max-processes", 4096, "limit of processes and threads of a container (0: no limit)")
	f.Int64Var(&o.ImageBytes, "max-image-bytes", 20<<30, "limit in bytes of an image archive, as sent and unpacked, and of the layers of a pulled image (0: no limit)")
	f.IntVar(&o.Pulls, "max-parallel-pulls", 3, "images that are pulled at once (members of one image wait for one pull)")
	f.StringVar(&o.OCIRuntime, "oci-runtime", host.RunC,
		"makes containers: runc, crun (which starts them in less time; needs cgroup v2), or auto (crun where it is installed and can be used)")
	f.BoolVar(&o.NativeOnly, "native-programs-only", false,
		"the default seccomp filter of members is for 64-bit programs only: with runc they start in less time, and a 32-bit program is killed (SIGSYS)")
	f.IntVar(&o.ImageHigh, "image-gc-high-percent", 85,
		"use of a disk with images from which on pulled images that nothing needs are removed, those used longest ago first (0: never)")
	f.IntVar(&o.ImageLow, "image-gc-low-percent", 80, "use of that disk down to which they are removed")
	f.IntVar(&o.DiskLeft, "pressure-disk-percent", 10,
		"share of a disk that must be free, or 10 GiB if that is less: below it the node has DiskPressure and gets no new member (0: never)")
	f.Int64Var(&o.MemoryLeft, "pressure-memory-bytes", 100<<20, "memory that must be available: below it the node has MemoryPressure and gets no new member (0: never)")
	f.IntVar(&o.TasksLeft, "pressure-process-percent", 10,
		"share of the processes and threads of the kernel that must be free: below it the node has PIDPressure and gets no new member (0: never)")
	f.StringVar(&o.Registries, "registry-dir", host.DefaultRegistries,
		"directory with a hosts.toml for each registry: mirrors, CAs, plain http, as containerd reads it")
	f.Int64Var(&o.Reserve, "reserve-memory-bytes", 0,
		"memory in bytes that members leave to the host (0: 5 %, at least 512 MiB and at most a quarter; -1: none)")
	f.IntVar(&o.MovePort, "move-port", 0, "TCP port of this host from which other hosts copy the volumes of members that move to them (0: any free one)")
	f.StringVar(&o.MoveRate, "move-rate", host.DefaultMoveRate, "bytes a second that all moves of this host together may copy, each way: 50Mi (0: any number)")
	f.DurationVar(&o.ShutdownTime, "shutdown-time", 5*time.Minute,
		"how long members may take to stop, in order, when systemd shuts the host down or reboots it; at most 20m (0: they are not stopped in order)")
	f.StringVar(&o.Address, "address", "", "address under which other hosts reach this one (default: that of the default route, or the only one)")
}

// mostShutdown is well below the half hour after which systemd reboots in any case (JobTimeoutSec of reboot.target).
const mostShutdown = 20 * time.Minute

// check fills in the defaults of this host and program, and refuses what cannot work.
func (o *hostOptions) check() error {
	o.Version, o.SteadNode, o.SteadDNS, o.SteadTunnel = version, steadNode, steadDNS, steadTunnel
	if err := server.CheckMetrics(o.Metrics); err != nil {
		return usageError{err}
	}
	if o.ShutdownTime < 0 || o.ShutdownTime > mostShutdown {
		return misuse("--shutdown-time %s: write a time of at most %s, for systemd waits no longer than half an hour, or 0", o.ShutdownTime, mostShutdown)
	}
	return usage(o.Options.Check())
}

// usage turns the error about a wrong option of the host into a usage error.
func usage(err error) error {
	if wrong, ok := errors.AsType[host.OptionError](err); ok {
		return usageError{wrong}
	}
	return err
}

// carried holds the programs that outlive the agent: stead-node, stead-dns and stead-tunnel; make build
// puts them there.
//
//go:embed all:embed
var carried embed.FS

func steadNode() ([]byte, error) { return program("stead-node", "writes the members' logs") }

func steadTunnel() ([]byte, error) {
	return program("stead-tunnel", "encrypts what members of different hosts send each other")
}

func steadDNS() ([]byte, error) { return program("stead-dns", "answers members' names") }

// program returns an embedded program, which does something.
func program(name, does string) ([]byte, error) {
	content, err := carried.ReadFile("embed/" + name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("this stead was built without %s, which %s; build it with 'make build'", name, does)
	}
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	return content, nil
}

// purgeCommand is the verb purge of the node that place returns once flags are parsed.
func purgeCommand(example string, place func() hostOptions) *cobra.Command {
	return &cobra.Command{
		Use:   "purge",
		Short: "End every member of this node at once and undo what Stead changed on the host",
		Long: `End every member of this node at once, and remove links, routes, mounts, cgroups,
the nft table, and the containers and images in Stead's containerd namespace.
Volumes, logs and the ledger are kept. The agent must not be running. Use the same
flags as for the agent.`,
		Example: example,
		Args:    exactly(0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return purge(cmd.Context(), place(), cmd.OutOrStdout())
		},
	}
}

// purge ends all that the node at o runs.
func purge(ctx context.Context, o hostOptions, out io.Writer) error {
	if err := o.check(); err != nil {
		return err
	}
	log, err := newLogger("warn")
	if err != nil {
		return err
	}
	err = host.Purge(ctx, o.Options, log)
	switch {
	case errors.Is(err, host.ErrNoNode):
		fmt.Fprintf(out, "%v (%s)\n", err, o.Root)
	case errors.Is(err, host.ErrNotJoined):
		fmt.Fprintln(out, err)
	case err != nil:
		return usage(err)
	default:
		fmt.Fprintf(out, "node %s runs nothing any more; its volumes are kept in %s\n", o.Node, filepath.Join(o.Root, "volumes"))
	}
	return nil
}

func checkCommand() *cobra.Command {
	var o hostOptions
	cmd := &cobra.Command{
		Use:   "check",
		Short: "Check the network settings of Stead on this host, and what blocks members",
		Long: `List every route, address, sysctl, link and nft table that the agent of this root sets
on the host, and whether it is set; what on the host blocks members; and, if there are
guarded members, whether a watchdog runs; and, with --sized-class, what that lacks. Nothing is changed. Exit code 1 when something is
missing or in the way. A running agent restores what is missing within seconds.`,
		Example: "  stead agent check --root /var/lib/stead/agent",
		Args:    exactly(0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return check(cmd.Context(), o, cmd.OutOrStdout())
		},
	}
	agentFlags(cmd, &o)
	return cmd
}

// check prints the settings of the node at o.
func check(ctx context.Context, o hostOptions, out io.Writer) error {
	if err := o.check(); err != nil {
		return err
	}
	found, err := host.Check(ctx, o.Options)
	if err != nil {
		return usage(err)
	}
	t := newTable(out, "KIND", "SETTING", "SET")
	for _, s := range found.Settings {
		t.row(s.Kind, s.What, yesNo(s.Set))
	}
	if found.Lives > 0 || found.Watched {
		t.row("watchdog", fmt.Sprintf("ends guarded lives past their deadline; now %d", found.Lives), yesNo(found.Watched))
	}
	if err := t.flush(); err != nil {
		return err
	}
	for _, w := range found.Warnings {
		fmt.Fprintln(out, "warning:", w)
	}
	for _, l := range found.Lacks {
		fmt.Fprintln(out, "missing:", l)
	}
	if found.Overlap != nil {
		fmt.Fprintln(out, "conflict:", found.Overlap)
	}
	if !found.Fit() {
		return errors.New("this host is not ready for Stead; see above")
	}
	return nil
}

func acceptDiskCommand() *cobra.Command {
	var (
		root string
		dirs map[string]string
	)
	cmd := &cobra.Command{
		Use:   "accept-disk CLASS",
		Short: "Accept the disk that is mounted now as the disk of a storage class",
		Long: `Accept the disk that now holds the directory of a storage class as the disk of that
class, instead of the one that was used first. Use it after a disk was replaced for
good: until then members with a volume of the class wait with DiskMissing. Mount the
new disk first. Volumes that were on the old disk become VolumeMissing. A running
agent notices the change by itself.`,
		Example: "  stead agent accept-disk ssd --root /var/lib/stead/agent",
		Args:    exactly(1, "one storage class"),
		RunE: func(cmd *cobra.Command, args []string) error {
			class := args[0]
			if !scalar.ValidSubdomain(class) {
				return misuse("invalid storage class %q: use lower-case letters, digits, '-' and '.'", class)
			}
			disk, err := volume.AcceptDisk(root, class, dirs[class])
			if err != nil {
				return err
			}
			fmt.Fprintf(cmd.OutOrStdout(), "storage class %s now uses %s; volumes made on another disk are missing (see 'stead volume ls')\n", class, disk)
			return nil
		},
	}
	cmd.Flags().StringVar(&root, "root", "/var/lib/stead/agent", "the agent's directory on disk")
	cmd.Flags().StringToStringVar(&dirs, "storage-class", nil, "the class and its directory, if that has changed: ssd=/mnt/ssd")
	return cmd
}
