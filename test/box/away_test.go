package box

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
)

var errAway = errors.New("no server is reached from here")

// watchdog starts the node's watchdog, which outlives its agents and ends with the boot.
func (n *node) watchdog(dir string) error {
	ctx, cancel := context.WithCancel(context.WithoutCancel(n.c.t.Context()))
	done := make(chan struct{})
	w := n.host.Watchdog(dir, n.c.clock)
	go func() {
		defer close(done)
		_ = w.Run(ctx, nil) // another one runs, then
	}()
	n.mu.Lock()
	before := n.unwatch
	n.unwatch = func() { cancel(); <-done }
	n.mu.Unlock()
	if before != nil {
		before()
	}
	return nil
}

// blind ends the node's watchdog, as the end of a boot does.
func (n *node) blind() {
	n.mu.Lock()
	end := n.unwatch
	n.unwatch = nil
	n.mu.Unlock()
	if end != nil {
		end()
	}
}

func (n *node) dial(context.Context) (*grpc.ClientConn, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.away {
		return nil, errAway
	}
	conn, err := n.c.current().local.dial()
	if err == nil {
		n.conns = append(n.conns, conn)
	}
	return conn, err
}

// cut takes the servers away from the node, and nothing else; heal gives them back.
func (n *node) cut() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.away = true
	for _, conn := range n.conns {
		_ = conn.Close() // the agent closes it, too
	}
	n.conns = nil
}

func (n *node) heal() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.away = false
}

// replaced is how members are lost after that time.
func replaced(after time.Duration) string { return fmt.Sprintf("{policy: Replace, after: %v}", after) }

// TestAMemberOfALostHostBeginsElsewhere: once, with its address, when its own watchdog has
// ended it, whether its agent lives or not; the audit sees every start. When the host
// returns nobody is disturbed.
func TestAMemberOfALostHostBeginsElsewhere(t *testing.T) {
	t.Parallel()
	for name, lose := range map[string]func(*node) (back func()){
		"it is cut off":             func(n *node) func() { n.cut(); return n.heal },
		"its agent dies":            func(n *node) func() { n.crash(); return n.start },
		"it is off, and boots then": func(n *node) func() { n.reboot(); return n.start },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(t *testing.T) {
				loseAHost(t, 10*time.Second, lose)
			})
		})
	}
}

func loseAHost(t *testing.T, bound time.Duration, lose func(*node) (back func())) {
	c := newCluster(t, inMemory(t), "a", "b", "c")
	c.apply(shape{name: "db", replicas: 3, loss: replaced(bound)})
	c.ready("db", 3)
	lost, before, others := c.host("db-1"), c.find("db-1"), []string{c.find("db-0").Token, c.find("db-2").Token}
	back := lose(lost)
	c.until("db-1 waits for its deadline", func() bool {
		return strings.Contains(c.find("db-1").Blocked, "counts as over after")
	})
	c.until("it began elsewhere", func() bool { m := c.find("db-1"); return m.Token != before.Token && m.Ready })
	after := c.find("db-1")
	if after.Node == before.Node || after.Address != before.Address {
		t.Errorf("db-1 is %+v, was %+v; want another life elsewhere with its address", after, before)
	}
	if old := c.audit.running(member("db-1")); len(old) > 1 || len(old) == 1 && !strings.HasPrefix(old[0], string(after.Node)) {
		t.Errorf("these run: %v; want the new life alone", old)
	}
	back()
	c.until("the host is back", func() bool { return c.live() == 3 })
	c.ready("db", 3)
	now := []string{c.find("db-0").Token, c.find("db-2").Token}
	if m := c.find("db-1"); m.Token != after.Token || now[0] != others[0] || now[1] != others[1] || len(c.audit.starts()) != 4 {
		t.Errorf("db-1 is %+v after %d starts, the others %v; want %+v after 4, and %v", m, len(c.audit.starts()), now, after, others)
	}
}

// TestMembersEndWhenNoServerIsHeardOf: for longer than their bound, on every host; who is
// to wait runs on. When a server answers they begin again, and only they.
func TestMembersEndWhenNoServerIsHeardOf(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		loseAllServers(t, 10*time.Second)
	})
}

func loseAllServers(t *testing.T, bound time.Duration) {
	c := newCluster(t, inMemory(t), "a", "b")
	c.apply(shape{name: "hold", replicas: 2})
	c.apply(shape{name: "db", replicas: 2, volumes: true, loss: replaced(bound)})
	c.ready("hold", 2)
	c.ready("db", 2)
	before := map[string]string{}
	names := []string{"hold-0", "hold-1", "db-0", "db-1"}
	for _, name := range names {
		before[name] = c.find(name).Token
	}
	starts := len(c.audit.starts())
	c.nodes["a"].cut()
	c.nodes["b"].cut()
	c.until("guarded members have ended", func() bool {
		return len(c.audit.running(member("db-0")))+len(c.audit.running(member("db-1"))) == 0
	})
	for _, name := range names[:2] {
		if len(c.audit.running(member(name))) != 1 {
			t.Errorf("%s ended", name)
		}
	}
	c.until("who waits is told why", func() bool {
		return strings.Contains(c.find("db-0").Blocked, "nothing is replaced while more than half are")
	})
	c.throughout(3*time.Second, "nothing begins while no node is heard of", func() bool { return len(c.audit.starts()) == starts })
	c.nodes["a"].heal()
	c.nodes["b"].heal()
	c.until("guarded members have begun again", func() bool {
		return c.find("db-0").Token != before["db-0"] && c.find("db-1").Token != before["db-1"]
	})
	c.ready("hold", 2)
	c.ready("db", 2)
	for _, name := range names[:2] {
		if c.find(name).Token != before[name] {
			t.Errorf("%s began anew", name)
		}
	}
	if got := len(c.audit.starts()); got != 6 {
		t.Errorf("%d starts, want 6", got)
	}
}
