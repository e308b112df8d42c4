package host

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"syscall"
	"time"

	"github.com/stead-project/stead/internal/backoff"
	"github.com/stead-project/stead/internal/notify"
	"github.com/stead-project/stead/records"
)

// setUp is whether the host can give members a network: its own part of it, and the addresses of DNS.
type setUp struct {
	opened chan struct{}  // closed once that was so: then only repairs are left to do
	look   *notify.Signal // cause is another

	mu    sync.Mutex
	tried int // times that it failed
	cause records.NodeCondition
}

func newSetUp() setUp { return setUp{opened: make(chan struct{}), look: notify.New()} }

// How long it takes until a network that could not be set up is tried again: doubled each time.
const (
	setUpFirst = time.Second
	setUpMost  = 10 * time.Second
)

// Prepare sets the host's network up and opens the addresses of DNS. What fails is a condition of the node, and Repair tries it
// again; until that succeeds no member gets a network, and members that an earlier agent started continue to run.
func (m *Machine) Prepare(ctx context.Context) {
	err := m.Network.Setup(ctx)
	m.noteSetUp(ctx, err)
	if err != nil && ctx.Err() == nil {
		m.log.Warn("network setup failed; retrying", "err", err)
		return
	}
	m.warn()
	m.bound()
}

// openNames opens the addresses of DNS. For network.Config.Names.
func (m *Machine) openNames(ctx context.Context) error {
	err := m.names.Open(ctx)
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return fmt.Errorf("%w; stop it, or give members another --gateway", err)
	case err == nil:
		close(m.setUp.opened)
	}
	return err
}

// runNames keeps DNS answering once its addresses are open.
func (m *Machine) runNames(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return nil
	case <-m.setUp.opened:
		return m.names.Run(ctx)
	}
}

// noteSetUp takes how an attempt to set the network up ended, and has Repair called soon after one that failed. Later failures
// leave in place what was set up; they are no condition.
func (m *Machine) noteSetUp(ctx context.Context, err error) {
	select {
	case <-m.setUp.opened:
		err = nil
	default:
	}
	if ctx.Err() != nil {
		return
	}
	u := &m.setUp
	u.mu.Lock()
	defer u.mu.Unlock()
	if err == nil {
		if u.cause.Type != "" {
			u.cause = records.NodeCondition{}
			u.look.Notify()
		}
		return
	}
	u.tried++
	time.AfterFunc(backoff.After(setUpFirst, setUpMost, u.tried), m.changed.Notify)
	since := u.cause.LastTransitionTime
	if since.IsZero() {
		since = time.Now().UTC().Truncate(time.Second)
		u.look.Notify()
	}
	u.cause = records.NodeCondition{
		Type: records.NetworkUnavailable, Status: "True", LastTransitionTime: since,
		Message: err.Error() + "; the agent tries again; for all that is missing: 'stead agent check' on that host",
	}
}

// unavailable is the condition of a host that cannot give members a network; none: it can.
func (u *setUp) unavailable() []records.NodeCondition {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.cause.Type == "" {
		return nil
	}
	return []records.NodeCondition{u.cause}
}
