package main

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"

	"github.com/spf13/pflag"

	"github.com/stead-project/stead/agent/home"
	"github.com/stead-project/stead/agent/host"
	"github.com/stead-project/stead/agent/network"
	"github.com/stead-project/stead/server"
)

// hostOptions place an agent on its host.
type hostOptions struct {
	host.Options
	Metrics string   // address for the agent's metrics; "": none
	Join    []string // servers on other hosts; none: a socket
	Token   string   // join token; "": the node has joined
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
	f.IntVar(&o.MTU, "mtu", 1500, "MTU of the members' links")
	f.StringVar(&o.Mode, "network-mode", network.ModeAuto,
		"how members on other hosts are reached: routes (hosts share a link), vxlan (tunnel), or auto (whichever fits)")
	f.StringSliceVar(&o.DNSListen, "dns-listen", nil, "ADDRESS[:PORT] of this host where its DNS also answers machines without Stead, for members' names only (repeatable)")
	f.Int64Var(&o.Processes, "max-processes", 4096, "limit of processes and threads of a container (0: no limit)")
	f.Int64Var(&o.ImageBytes, "max-image-bytes", 20<<30, "limit in bytes of an image archive, as sent and unpacked, and of the layers of a pulled image (0: no limit)")
	f.Int64Var(&o.Reserve, "reserve-memory-bytes", 0,
		"memory in bytes that members leave to the host (0: 5 %, at least 512 MiB and at most a quarter; -1: none)")
	f.StringVar(&o.Address, "address", "", "address under which other hosts reach this one (default: that of the default route, or the only one)")
}

// check fills in the defaults of this host and refuses what cannot work.
func (o *hostOptions) check() error {
	if err := server.CheckMetrics(o.Metrics); err != nil {
		return usageError{err}
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

// carried holds stead-node, the tiny program that outlives the agent; make build
// puts it there.
//
//go:embed all:embed
var carried embed.FS

// steadNode returns the program that is embedded.
func steadNode() ([]byte, error) {
	program, err := carried.ReadFile("embed/stead-node")
	if errors.Is(err, fs.ErrNotExist) {
		return nil, errors.New("this stead was built without stead-node, which writes the members' logs; build it with 'make build'")
	}
	if err != nil {
		return nil, fmt.Errorf("read stead-node: %w", err)
	}
	return program, nil
}
