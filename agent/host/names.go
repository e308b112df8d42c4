package host

import (
	"crypto/sha256"
	"encoding/hex"
	"net/netip"
	"os"
	"path/filepath"

	"github.com/stead-project/stead/agent/nameserver"
	"github.com/stead-project/stead/dnsd"
	"github.com/stead-project/stead/internal/durable"
)

// nameServer is the side of m of the host's name server. home is whose names it answers.
func (o *Options) nameServer(m *Machine, home string, gateway netip.Addr, members netip.Prefix) (*nameserver.Feeder, error) {
	upstreams, err := dnsd.HostUpstreams("/etc/resolv.conf")
	if err != nil {
		m.log.Warn("host's name servers not read; only members' names are answered", "err", err)
	}
	listen, err := o.dnsListen()
	if err != nil {
		return nil, err
	}
	program, sum, err := o.lay("stead-dns", o.SteadDNS)
	if err != nil {
		return nil, err
	}
	return nameserver.NewFeeder(nameserver.FeederConfig{
		Task: nameserver.Task{
			Home: home, Listen: append([]netip.AddrPort{netip.AddrPortFrom(gateway, 53)}, listen...), Upstreams: upstreams, Members: members,
		},
		Dir: namesDir(o.RunDir), Program: program, Sum: sum, Started: m.moveNames, Follow: m.follow, Asked: m.asked, Logger: m.log,
	}), nil
}

// namesDir is where the name server is found.
func namesDir(runDir string) string { return filepath.Join(runDir, "dns") }

// moveNames takes a name server out of the agent's cgroup: it outlives the agent.
func (m *Machine) moveNames(pid int) {
	if err := m.Runtime.Put("dns", pid); err != nil {
		m.log.Warn("name server left in the agent's cgroup", "err", err)
	}
}

// lay puts a program that outlives the agent under a path named by its content, and returns the path and the sum of the
// content: what was started from there continues to use it after an upgrade.
func (o *Options) lay(name string, content func() ([]byte, error)) (path string, sum [sha256.Size]byte, err error) {
	program, err := content()
	if err != nil {
		return "", sum, err
	}
	sum = sha256.Sum256(program)
	dir := filepath.Join(o.Root, "bin", o.Version+"-"+hex.EncodeToString(sum[:4]))
	path = filepath.Join(dir, name)
	if have, err := os.ReadFile(path); err == nil && sha256.Sum256(have) == sum {
		return path, sum, nil
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", sum, err
	}
	// Not synced: its content is checked before each use.
	return path, sum, durable.PutUnsynced(path, program, 0o755)
}
