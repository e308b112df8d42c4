package e2e

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/stead-project/stead/internal/program"
	"github.com/stead-project/stead/store"
	"github.com/stead-project/stead/test/judge"
)

// rolling is a cluster whose servers and agents change their program one after the other.
type rolling struct {
	*matrix
	before, ours string
	was          map[string]tale
	store        map[string]store.KV
}

// version is that of a program.
func (r *rolling) version(stead string) string {
	if stead == r.before {
		return ownStoreVersion
	}
	return r.ours
}

// servers starts servers again with a program, one after the other.
func (r *rolling) servers(what, stead string, which ...int) {
	r.Helper()
	began := time.Now()
	for _, i := range which {
		end(r.T, r.control[i].server)
		r.control[i].program = stead
		r.startOwn(i)
		if out := r.control[i].stead("version"); !strings.Contains(out, "server   "+r.version(stead)) {
			r.Errorf("%s is\n%s\nwant %s", serverName(i), out, r.version(stead))
		}
		r.vote()
		r.connected()
	}
	r.unchanged(what, began)
}

// agents starts agents again with a program, one after the other. What an agent starts beside it has another content in each
// release, so that it is another process from then on; but for the watchdog, which an agent of before leaves as it is, for it replaces none.
func (r *rolling) agents(what, stead string, which ...int) {
	r.Helper()
	began := time.Now()
	for _, i := range which {
		h := r.hosts[i]
		names, sessions := h.nameServers(), h.sessions()
		changes := h.program != stead
		end(r.T, h.agent)
		h.program = stead
		r.startAgent(i)
		h.eventually(time.Minute, "the agent has a session", func() error {
			if h.sessions() == sessions {
				return fmt.Errorf("%s", h.agent.tail(5))
			}
			return nil
		})
		if changes {
			h.oneNameServer(names[0])
		}
		if stead == steadBinary {
			r.ownWatchdog(i)
		}
	}
	r.connected()
	r.unchanged(what, began)
}

// ownWatchdog waits until a watchdog of the program under test runs alone on a host.
func (r *rolling) ownWatchdog(i int) {
	r.Helper()
	r.hosts[i].eventually(time.Minute, "a watchdog of this release runs alone", func() error {
		if now := r.watchdogs(i); len(now) != 1 || !program.Runs(now[0], "../../cmd/stead/embed/stead-node") {
			return fmt.Errorf("watchdogs %v: %s", now, r.hosts[i].agent.tail(20))
		}
		return nil
	})
}

// unchanged fails the test unless members and store are as they were noted.
func (r *rolling) unchanged(what string, began time.Time) {
	r.Helper()
	r.Logf("%s: %v", what, time.Since(began).Round(100*time.Millisecond))
	r.assertHeld(r.was)
	r.judge()
	now, _ := r.control[0].dump()
	for _, key := range changed(r.store, now) {
		judge.Broken(r, "%s: %s was, at %d, %s\nand is, at %d, %s", what, key, r.store[key].Mod, r.store[key].Value, now[key].Mod, now[key].Value)
	}
	for _, name := range slices.Sorted(maps.Keys(r.was)) {
		r.people.waitReady(name, nil)
	}
}
