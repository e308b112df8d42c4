package network

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
	"golang.zx2c4.com/wireguard/wgctrl/wgtypes"

	"github.com/stead-project/stead/agent/wireguard"
	"github.com/stead-project/stead/internal/durable"
	"github.com/stead-project/stead/records"
)

// DefaultTunnelPort is the port of UDP at which a node takes what comes through WireGuard.
const DefaultTunnelPort = 51888

// WireGuard is what a node has for its end of the WireGuard tunnel.
type WireGuard struct {
	Key     wgtypes.Key // private
	Port    uint16
	Process wireguard.Process // for a kernel without WireGuard
	Missing string            // why the node has no end; "": it has
}

// err says why there is no end of the tunnel; w may be nil.
func (w *WireGuard) err() error {
	if w == nil {
		return errors.New("not set up on this host")
	}
	return errors.New(w.Missing)
}

// OpenTunnelKey reads the node's private key, or makes it. It is kept in dir, which is on tmpfs: each boot has another, and none
// is ever on a disk.
func OpenTunnelKey(dir string) (wgtypes.Key, error) {
	path := filepath.Join(dir, "key")
	text, err := os.ReadFile(path)
	if err == nil {
		key, err := wgtypes.ParseKey(strings.TrimSpace(string(text)))
		if err == nil {
			return key, nil
		}
	} else if !errors.Is(err, fs.ErrNotExist) {
		return wgtypes.Key{}, fmt.Errorf("read the key of WireGuard: %w", err)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return wgtypes.Key{}, err
	}
	key, err := wgtypes.GeneratePrivateKey()
	if err != nil {
		return wgtypes.Key{}, err
	}
	return key, durable.PutUnsynced(path, []byte(key.String()+"\n"), 0o600)
}

// Facts are what the node says of its end, which device is.
func (w *WireGuard) Facts(device string) *records.TunnelFacts {
	if w.Missing != "" {
		return &records.TunnelFacts{Missing: w.Missing}
	}
	return &records.TunnelFacts{Key: w.Key.PublicKey().String(), Port: w.Port, Device: device}
}

// FindWireGuard says what a node's end of the WireGuard tunnel can be on this host: records.TunnelInKernel or records.TunnelInProcess.
func FindWireGuard() (device string, err error) {
	h, err := open("")
	if err != nil {
		return "", err
	}
	defer h.Close()
	probe := &netlink.Wireguard{LinkAttrs: netlink.LinkAttrs{Name: "stead-wg-probe"}}
	switch err := h.LinkAdd(probe); {
	case err == nil:
		return records.TunnelInKernel, h.LinkDel(probe)
	case errors.Is(err, unix.EEXIST): // another agent looks at this moment
		return records.TunnelInKernel, nil
	}
	f, err := os.OpenFile("/dev/net/tun", os.O_RDWR, 0)
	if err != nil {
		return "", fmt.Errorf("the kernel has no WireGuard, and no tun: %w", err)
	}
	return records.TunnelInProcess, f.Close()
}
