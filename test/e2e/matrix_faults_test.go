package e2e

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/stead-project/stead/test/judge"
)

// fault is one that strikes, lasts until everybody took note, and heals; a rolling update
// begins in its middle.
type fault struct {
	what string
	// do returns the members that the fault itself ended, of those that are held.
	do func(m *matrix) (ended []string)
}

// Faults of the control plane, and of hosts: the two tables together are the matrix.
var (
	controlFaults = []fault{
		{"the leading server is killed", (*matrix).killLeader},
		{"a member of the store is killed", (*matrix).killStore},
		{"a server and a member of the store are cut off", (*matrix).cutControl},
	}
	guardFaults = []fault{ // of the host of a guarded life, which is replaced elsewhere
		{"a host is cut off", (*matrix).cutHost},
		{"an agent is stopped", (*matrix).stopAgent},
		{"agent and watchdog are killed together", (*matrix).killBoth},
		{"a host loses its power", (*matrix).cyclePower},
	}
	partFaults = []fault{ // nobody is replaced
		{"an agent is killed", (*matrix).killAgent},
		{"a watchdog is killed", (*matrix).killWatchdog},
		{"containerd is killed", (*matrix).killContainerd},
	}
	away = fault{"the control plane is away", (*matrix).controlAway}
)

// strike lets a fault happen and waits until all is whole again. Of those that are held
// only they have another life or process whom the fault ended or an update concerned.
func (m *matrix) strike(f fault) {
	m.Helper()
	began := time.Now()
	m.edited = ""
	was := m.held()
	ended := f.do(m)
	m.settle()
	for name := range was {
		if strings.HasPrefix(name, m.edited+"-") || slices.Contains(ended, name) {
			delete(was, name)
		}
	}
	m.assertHeld(was)
	m.Logf("%s, while %q is updated: %v", f.what, m.edited, time.Since(began).Round(100*time.Millisecond))
}

// update begins a rolling update of one of the sets, by chance.
func (m *matrix) update() {
	m.Helper()
	f := m.sets[m.chance.IntN(len(m.sets))]
	m.edited = f.set
	// A server may be just about to lead, or its store to elect.
	m.people.eventually(2*time.Minute, "the update of "+f.set+" is taken", f.edit)
}

func (m *matrix) anyHost() int    { return m.chance.IntN(len(m.hosts)) }
func (m *matrix) anyControl() int { return m.chance.IntN(controls) }

func (m *matrix) kill(p *process) {
	m.Helper()
	if err := p.signal(syscall.SIGKILL); err != nil {
		m.Fatal(err)
	}
}

// another waits until a server leads that is not the i-th.
func (m *matrix) another(i int) {
	m.Helper()
	m.people.eventually(2*time.Minute, "another server leads", func() error {
		if now := m.leader(); now == i {
			return fmt.Errorf("s%d leads", now)
		}
		return nil
	})
}

func (m *matrix) killLeader() []string {
	m.Helper()
	i := m.leader()
	m.kill(m.control[i].server)
	m.update()
	m.another(i)
	m.startServer(i)
	return nil
}

func (m *matrix) killStore() []string {
	m.Helper()
	i := m.anyControl()
	m.kill(m.control[i].store)
	m.update()
	m.startStore(i)
	return nil
}

func (m *matrix) cutControl() []string {
	m.Helper()
	i := m.leader()
	m.port(fmt.Sprint("c", i), "down")
	m.update()
	m.another(i)
	m.port(fmt.Sprint("c", i), "up")
	return nil
}

// guarded is the host of a guarded life.
func (m *matrix) guarded() (name string, i int) {
	m.Helper()
	name = []string{"guard-0", "guard-1"}[m.chance.IntN(2)]
	return name, m.hostOf(name)
}

// moved waits until a guarded member is ready on another host.
func (m *matrix) moved(name string, from int) {
	m.Helper()
	m.people.eventually(patient, name+" is ready on another host", func() error {
		o, err := m.people.member(name)
		if err == nil && (!o.Status.Ready || o.Status.Node == m.hosts[from].nodeName()) {
			err = fmt.Errorf("%+v", o.Status)
		}
		return err
	})
}

// held are the members that a host holds through its silence, with their processes.
func (m *matrix) heldOn(i int) map[string]string {
	all := map[string]string{}
	for _, f := range m.sets {
		for _, name := range f.members {
			if begun := m.hosts[i].begun(name); !f.guarded && begun != "" {
				all[name] = begun
			}
		}
	}
	return all
}

// assertRunsOn fails the test when a silent host does not run on what it holds.
func (m *matrix) assertRunsOn(i int, was map[string]string) {
	m.Helper()
	for name, before := range was {
		if now := m.hosts[i].begun(name); now != before {
			judge.Broken(m, "%s ran as %s and runs as %s on a silent host", name, before, now)
		}
	}
}

func (m *matrix) cutHost() []string {
	m.Helper()
	name, i := m.guarded()
	held := m.heldOn(i)
	m.port(fmt.Sprint("h", i), "down")
	m.silent(i)
	m.assertRunsOn(i, held)
	m.update()
	m.moved(name, i)
	m.assertRunsOn(i, held)
	m.port(fmt.Sprint("h", i), "up")
	return nil
}

func (m *matrix) stopAgent() []string {
	m.Helper()
	name, i := m.guarded()
	held := m.heldOn(i)
	if err := m.hosts[i].agent.signal(syscall.SIGSTOP); err != nil {
		m.Fatal(err)
	}
	m.update()
	m.moved(name, i)
	m.assertRunsOn(i, held)
	if err := m.hosts[i].agent.signal(syscall.SIGCONT); err != nil {
		m.Fatal(err)
	}
	return nil
}

func (m *matrix) killBoth() []string {
	m.Helper()
	name, i := m.guarded()
	held := m.heldOn(i)
	m.kill(m.hosts[i].agent)
	for _, pid := range m.watchdogs(i) {
		_ = syscall.Kill(pid, syscall.SIGKILL) // it may have ended with its agent
	}
	m.update()
	m.moved(name, i)
	m.assertRunsOn(i, held)
	m.startAgent(i)
	return nil
}

func (m *matrix) cyclePower() (ended []string) {
	m.Helper()
	name, i := m.guarded()
	for held := range m.heldOn(i) {
		ended = append(ended, held)
	}
	was := map[string]member{}
	for _, held := range ended {
		was[held] = m.member(held)
	}
	m.powerOff(i)
	m.silent(i)
	m.update()
	m.moved(name, i)
	m.port(fmt.Sprint("h", i), "up")
	m.boot(i)
	for held, before := range was {
		m.people.eventually(patient, held+" has a life of the new boot", func() error {
			o, err := m.people.member(held)
			if err == nil && o.Status.Token == before.Status.Token {
				err = fmt.Errorf("%+v", o.Status)
			}
			return err
		})
	}
	return ended
}

func (m *matrix) killAgent() []string {
	m.Helper()
	i := m.anyHost()
	m.kill(m.hosts[i].agent)
	m.update()
	m.startAgent(i)
	return nil
}

// watchdogs are the processes of a host's watchdog.
func (m *matrix) watchdogs(i int) []int {
	return m.hosts[i].living("stead-node\x00watchdog\x00", m.hosts[i].Dir+"/")
}

func (m *matrix) killWatchdog() []string {
	m.Helper()
	_, i := m.guarded()
	var was []int
	m.hosts[i].eventually(2*time.Minute, "there is a watchdog", func() error {
		was = m.watchdogs(i)
		if len(was) == 0 {
			return errors.New("there is none")
		}
		return nil
	})
	for _, pid := range was {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
	m.update()
	m.hosts[i].eventually(2*time.Minute, "the watchdog is started again", func() error {
		now := m.watchdogs(i)
		if len(now) == 0 || slices.ContainsFunc(now, func(pid int) bool { return slices.Contains(was, pid) }) {
			return fmt.Errorf("watchdogs %v, before %v", now, was)
		}
		return nil
	})
	return nil
}

func (m *matrix) killContainerd() []string {
	m.Helper()
	i := m.anyHost()
	m.kill(m.hosts[i].containerd)
	m.update()
	m.hosts[i].startContainerd()
	return nil
}
