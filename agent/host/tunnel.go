package host

import (
	"path/filepath"

	"github.com/stead-project/stead/agent/network"
	"github.com/stead-project/stead/agent/wireguard"
	"github.com/stead-project/stead/records"
)

// wireGuard is what the node has for its end of the WireGuard tunnel, and what that is.
func (o *Options) wireGuard() (w *network.WireGuard, device string, err error) {
	if o.Mode == network.ModeRoutes {
		return &network.WireGuard{Missing: "its agent was started with --network-mode " + network.ModeRoutes}, "", nil
	}
	device, err = network.FindWireGuard()
	if err != nil {
		return &network.WireGuard{Missing: err.Error()}, "", nil
	}
	w = &network.WireGuard{Port: uint16(o.TunnelPort)}
	w.Key, err = network.OpenTunnelKey(tunnelDir(o.RunDir))
	return w, device, err
}

// tunnelDir has the key of WireGuard, and what its process says.
func tunnelDir(runDir string) string { return filepath.Join(runDir, "tunnel") }

func (o *Options) tunnelFacts() (*records.TunnelFacts, error) {
	w, device, err := o.wireGuard()
	if err != nil {
		return nil, err
	}
	return w.Facts(device), nil
}

// tunnelFor is the end of the tunnel of m, with its program where it needs one.
func (o *Options) tunnelFor(m *Machine) (*network.WireGuard, error) {
	w, device, err := o.wireGuard()
	if err != nil || device != records.TunnelInProcess {
		return w, err
	}
	program, _, err := o.lay(wireguard.Program, o.SteadTunnel)
	w.Process = wireguard.Process{Program: program, Log: filepath.Join(tunnelDir(o.RunDir), "log"), Started: m.moveTunnel}
	return w, err
}

// moveTunnel takes the process of the tunnel out of the agent's cgroup: it outlives the agent.
func (m *Machine) moveTunnel(pid int) {
	if err := m.Runtime.Put("tunnel", pid); err != nil {
		m.log.Warn("process of the tunnel left in the agent's cgroup", "err", err)
	}
}

// UpdateTunnel takes what servers say of the tunnel between hosts; it does not block. For agent.Config.Tunnel.
func (m *Machine) UpdateTunnel(t *records.HostTunnel) { replace(m.routes.tunnel, t) }
