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
	Metrics string   // where the agent's are served; "": nowhere
	Join    []string // servers on other hosts; none: a socket
	Token   string   // to be let in by them; "": has been
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

// check fills in what was left to the host and refuses what cannot work.
func (o *hostOptions) check() error {
	if err := server.CheckMetrics(o.Metrics); err != nil {
		return usageError{err}
	}
	return usage(o.Options.Check())
}

// usage makes a wrong option of the host a wrong use of the command line.
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

// steadNode is the program that was built in.
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
