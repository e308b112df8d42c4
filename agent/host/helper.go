package host

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"

	"github.com/stead-project/stead/agent/watchdog"
	"github.com/stead-project/stead/internal/durable"
)

// layHelper puts stead-node under a path named by its content and returns the path:
// containers continue to use the one they were started with after an upgrade.
func (o *Options) layHelper() (string, error) {
	program, err := o.SteadNode()
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(program)
	dir := filepath.Join(o.Root, "bin", o.Version+"-"+hex.EncodeToString(sum[:4]))
	path := filepath.Join(dir, "stead-node")
	if have, err := os.ReadFile(path); err == nil && sha256.Sum256(have) == sum {
		return path, nil
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	// Not synced: its content is checked before each use.
	return path, durable.PutUnsynced(path, program, 0o755)
}

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
