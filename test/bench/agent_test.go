package bench

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/stead-project/stead/agent"
	"github.com/stead-project/stead/agent/home"
	"github.com/stead-project/stead/agent/runtime/fakert"
	"github.com/stead-project/stead/agent/session"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
)

// runAgent is a real agent on a host in memory, until ctx ends. What lasts is in dir; the files of
// members are on a tmpfs, as on a real node. clock is the time since boot; nil: the machine's.
func runAgent(ctx context.Context, name string, l *link, dir string, clock func() time.Duration) (err error) {
	at, err := home.Open(dir, spec.NodeName(name))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, at.Close()) }()
	run, err := os.MkdirTemp("/dev/shm", "stead-b")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(run)) }()
	facts := records.NodeFacts{Name: spec.NodeName(name), Boot: "b1", CPUMillis: 1 << 40, MemoryBytes: 1 << 50}
	log := slog.New(slog.DiscardHandler)
	if err := session.Join(ctx, at, l.dial, facts.Boot, facts, log); err != nil {
		return err
	}
	host := fakert.New()
	a, err := agent.New(agent.Config{
		Home: at, RunDir: filepath.Join(run, name), Dial: l.dial, Clock: clock, Boot: facts.Boot, Facts: facts,
		Runtime: host, Network: host, Volumes: host, Logger: log,
	})
	if err != nil {
		return err
	}
	return a.Run(ctx)
}
