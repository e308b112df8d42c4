package host

import (
	"cmp"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/stead-project/stead/agent/home"
	"github.com/stead-project/stead/agent/network"
	"github.com/stead-project/stead/agent/volume"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/spec/scalar"
)

// Options place a node on its machine. Each is a flag of 'stead agent', but the last four.
type Options struct {
	Root       string            // disk: identity, ledger, volumes, logs
	RunDir     string            // tmpfs: namespaces, files of members
	Node       string            // name of the node; "": the machine's name
	Containerd string            // containerd's socket
	Gateway    string            // the members' gateway and DNS address, on lo
	BootID     string            // file that holds the kernel's boot id
	MTU        int               // of the members' links
	Mode       string            // how members of other hosts are reached
	TunnelPort int               // of UDP, at which this host takes what comes through WireGuard; 0: network.DefaultTunnelPort
	Address    string            // of this host for other hosts; "": as its routes say
	DNSListen  []string          // where DNS answers machines outside, beside the gateway
	SeccompDir string            // of seccomp profiles
	Processes  int64             // that a container may have; 0: any number
	ImageBytes int64             // that an image may have, as an archive and unpacked; 0: any number
	Pulls      int               // images that are pulled at once; 0: 3
	OCIRuntime string            // makes containers: RunC, CRun or AutoRuntime; "": RunC
	NativeOnly bool              // members run programs of the processor's own instruction set only, none of 32 bit
	Registries string            // directory with a hosts.toml for each registry, as containerd has them
	ImageHigh  int               // percent of a disk with images from which on images are removed; 0: never
	ImageLow   int               // percent down to which they are
	DiskLeft   int               // percent of a disk that must be free, or no new member comes; 0: any
	MemoryLeft int64             // bytes of memory that must be available; 0: any
	TasksLeft  int               // percent of the processes and threads that must be free; 0: any
	MovePort   int               // of TCP, at which this host hands out volumes of members that move; 0: any
	MoveRate   string            // bytes a second of all moves together, each way, with a suffix; "0": any number
	Reserve    int64             // bytes of memory that members leave the host; 0: a share, -1: none
	Classes    map[string]string // directory by storage class
	Shared     []string          // those whose directory other hosts have, too
	Fenced     []string          // those of these that fence by themselves
	Sized      []string          // classes, spec.LocalClass too, whose new volumes have their size as a limit

	Version string // of this program
	// SteadNode is the program stead-node, which outlives the agent.
	SteadNode func() ([]byte, error)
	// SteadDNS is the program stead-dns, which outlives it, too.
	SteadDNS func() ([]byte, error)
	// SteadTunnel is the program stead-tunnel, which does so where the kernel has no WireGuard.
	SteadTunnel func() ([]byte, error)
}

// lacks says what this host lacks for the sized classes of the options.
func (o *Options) lacks() []string {
	if len(o.Sized) == 0 {
		return nil
	}
	return volume.CheckSized()
}

// DefaultRegistries is where containerd's own documentation puts the configuration of registries.
const DefaultRegistries = "/etc/containerd/certs.d"

// OptionError is an option that cannot work, whatever the machine is like.
type OptionError struct{ error }

// Check fills in the node's name, makes paths absolute and refuses what cannot work: an
// OptionError names the flag.
func (o *Options) Check() error {
	if o.Node == "" {
		name, err := os.Hostname()
		if err != nil {
			return fmt.Errorf("find the host's name: %w; give --node", err)
		}
		o.Node = strings.ToLower(name)
	}
	if !scalar.ValidSubdomain(o.Node) {
		return OptionError{fmt.Errorf("invalid --node %q: use lower-case letters, digits, '-' and '.'", o.Node)}
	}
	if o.Processes < 0 || o.Processes > 0 && o.Processes < minProcesses {
		return OptionError{fmt.Errorf("--max-processes %d: write 0 (any number), or at least %d", o.Processes, minProcesses)}
	}
	if o.ImageBytes < 0 {
		return OptionError{fmt.Errorf("--max-image-bytes %d: write a number of bytes, or 0 (any number)", o.ImageBytes)}
	}
	o.TunnelPort = cmp.Or(o.TunnelPort, network.DefaultTunnelPort)
	if o.TunnelPort < 1 || o.TunnelPort > 65535 {
		return OptionError{fmt.Errorf("--tunnel-port %d: write a port from 1 to 65535", o.TunnelPort)}
	}
	if o.MovePort < 0 || o.MovePort > 65535 {
		return OptionError{fmt.Errorf("--move-port %d: write a port from 1 to 65535, or 0 (any free one)", o.MovePort)}
	}
	if _, err := o.moveRate(); err != nil {
		return err
	}
	if o.Pulls < 0 {
		return OptionError{fmt.Errorf("--max-parallel-pulls %d: write 1 or more", o.Pulls)}
	}
	if o.ImageHigh != 0 && (o.ImageLow < 0 || o.ImageLow >= o.ImageHigh || o.ImageHigh > 100) {
		return OptionError{fmt.Errorf("--image-gc-high-percent %d, --image-gc-low-percent %d: write percentages of which the high one is the larger, "+
			"or --image-gc-high-percent 0 (no image is removed)", o.ImageHigh, o.ImageLow)}
	}
	if o.DiskLeft < 0 || o.DiskLeft > 99 || o.TasksLeft < 0 || o.TasksLeft > 99 {
		return OptionError{fmt.Errorf("--pressure-disk-percent %d, --pressure-process-percent %d: write percentages from 0 (never) to 99", o.DiskLeft, o.TasksLeft)}
	}
	if o.MemoryLeft < 0 {
		return OptionError{fmt.Errorf("--pressure-memory-bytes %d: write a number of bytes, or 0 (never)", o.MemoryLeft)}
	}
	if o.Reserve < -1 {
		return OptionError{fmt.Errorf("--reserve-memory-bytes %d: write a number of bytes, 0 or -1", o.Reserve)}
	}
	if _, err := o.findRuntime(); err != nil {
		return err
	}
	for _, class := range o.Shared {
		if o.Classes[class] == "" {
			return OptionError{fmt.Errorf("--shared-class %s: name the class and its directory with --storage-class, too", class)}
		}
	}
	for _, class := range o.Fenced {
		if !slices.Contains(o.Shared, class) {
			return OptionError{fmt.Errorf("--fenced-class %s: name it with --shared-class, too", class)}
		}
	}
	for _, class := range o.Sized {
		if o.Classes[class] == "" && class != spec.LocalClass {
			return OptionError{fmt.Errorf("--sized-class %s: name the class and its directory with --storage-class, too", class)}
		}
		if slices.Contains(o.Shared, class) {
			return OptionError{fmt.Errorf("--sized-class %s: it is a --shared-class, and two hosts must not mount one image; let that storage limit its volumes", class)}
		}
	}
	o.Registries = cmp.Or(o.Registries, DefaultRegistries)
	for _, dir := range []*string{&o.Root, &o.RunDir, &o.Registries} {
		abs, err := filepath.Abs(*dir)
		if err != nil {
			return err
		}
		*dir = abs
	}
	return nil
}

func (o *Options) gateway() (netip.Addr, error) {
	gateway, err := netip.ParseAddr(o.Gateway)
	if err != nil {
		err = OptionError{fmt.Errorf("--gateway: %w", err)}
	}
	return gateway, err
}

// address is that of this host for other hosts: the one that was given, or the one that
// its routes tell; "" when they leave a choice. several are all that it might be, if none was given and there is more than one.
func (o *Options) address() (shown string, several []string, err error) {
	if o.Address == "" {
		a, every, err := network.HostAddress()
		if err != nil {
			return "", nil, err
		}
		if len(every) > 1 {
			for _, one := range every[:min(len(every), shownAddresses)] {
				several = append(several, one.String())
			}
		}
		if !a.IsValid() {
			return "", several, nil
		}
		return a.String(), several, nil
	}
	if a, err := netip.ParseAddr(o.Address); err != nil || !a.Is4() {
		return "", nil, OptionError{fmt.Errorf("invalid --address %q: write an IPv4 address", o.Address)}
	}
	return o.Address, nil, nil
}

// shownAddresses are said of a host that has more.
const shownAddresses = 16

// dnsListen are the addresses of --dns-listen; port 53 unless said.
func (o *Options) dnsListen() (list []netip.AddrPort, err error) {
	for _, text := range o.DNSListen {
		at, err := netip.ParseAddrPort(text)
		if err != nil {
			addr, err := netip.ParseAddr(text)
			if err != nil {
				return nil, OptionError{fmt.Errorf("invalid --dns-listen %q: write ADDRESS or ADDRESS:PORT", text)}
			}
			at = netip.AddrPortFrom(addr, 53)
		}
		list = append(list, at)
	}
	return list, nil
}

// Facts are what the node says of itself.
func (o *Options) Facts() (records.NodeFacts, error) {
	boot, err := home.BootID(o.BootID)
	if err != nil {
		return records.NodeFacts{}, err
	}
	address, several, err := o.address()
	if err != nil {
		return records.NodeFacts{}, err
	}
	pages, _, err := hugePages(hugePagesDir)
	if err != nil {
		return records.NodeFacts{}, err
	}
	tunnel, err := o.tunnelFacts()
	if err != nil {
		return records.NodeFacts{}, err
	}
	memory, err := memoryBytes()
	return records.NodeFacts{
		Name: spec.NodeName(o.Node), Boot: boot, HostIP: address, HostIPs: several, Tunnel: tunnel,
		Classes:       volume.ClassNames(o.Classes),
		SharedClasses: ascending(o.Shared), FencedClasses: ascending(o.Fenced),
		CPUMillis: int64(runtime.NumCPU()) * 1000, MemoryBytes: memory, HugePages: pages, Version: o.Version, Level: spec.Level,
	}, err
}

// ascending is list in ascending order, each once.
func ascending(list []string) []string { return slices.Compact(slices.Sorted(slices.Values(list))) }
