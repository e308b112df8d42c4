package main

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/stead-project/stead/agent/watchdog"
)

// carried holds stead-node, the tiny program that outlives the agent; make build
// puts it there.
//
//go:embed all:embed
var carried embed.FS

// layNode puts stead-node under a path named by its content and returns the path:
// containers go on using the one they were started with after an upgrade.
func layNode(root string) (string, error) {
	program, err := carried.ReadFile("embed/stead-node")
	if errors.Is(err, fs.ErrNotExist) {
		return "", errors.New("this stead was built without stead-node, which writes the members' logs; build it with 'make build'")
	}
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(program)
	dir := filepath.Join(root, "bin", version+"-"+hex.EncodeToString(sum[:4]))
	path := filepath.Join(dir, "stead-node")
	if have, err := os.ReadFile(path); err == nil && sha256.Sum256(have) == sum {
		return path, nil
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	fresh := path + ".new"
	if err := os.WriteFile(fresh, program, 0o755); err != nil {
		return "", err
	}
	if err := os.Rename(fresh, path); err != nil {
		return "", fmt.Errorf("lay stead-node: %w", err)
	}
	return path, nil
}

// watch starts a watchdog of the lives recorded in dir, apart from us: it outlives this
// process, and what ends the agent's cgroup does not end it.
func (h *host) watch(dir string) error {
	pid, err := watchdog.Start(h.node, watchdog.Dir(dir))
	if err != nil {
		return err
	}
	if err := h.runtime.Put("watchdog", pid); err != nil {
		h.log.Warn("watchdog left in the agent's cgroup", "err", err)
	}
	return nil
}
