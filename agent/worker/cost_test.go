package worker

import (
	"maps"
	"sync"
	"testing"
	"time"

	"github.com/stead-project/stead/agent/files"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
)

// counted counts what is kept and shown.
type counted struct {
	HostFiles

	mu    sync.Mutex
	calls map[string]int
}

func (c *counted) note(what string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.calls[what]++
}

// take returns what was counted since it was called last.
func (c *counted) take() map[string]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := c.calls
	c.calls = map[string]int{}
	return out
}

func (c *counted) SaveLife(l *records.Life) error { c.note("life"); return c.HostFiles.SaveLife(l) }

func (c *counted) SaveState(id spec.Identity, s *State) error {
	c.note("state")
	return c.HostFiles.SaveState(id, s)
}

func (c *counted) ShowMember(l *records.Life, n files.Node) error {
	c.note("member")
	return c.HostFiles.ShowMember(l, n)
}

// countFiles has the node count what it keeps and shows.
func (n *node) countFiles() *counted {
	c := &counted{calls: map[string]int{}}
	change := n.change
	n.change = func(cfg *Config) {
		if change != nil {
			change(cfg)
		}
		c.HostFiles, cfg.Files = cfg.Files, c
	}
	return c
}

// What is kept on tmpfs is kept when it moved: the description when the life is opened and
// when it is to stop, the state once for each report that shows another one.
func TestWhatALifeKeepsAndShowsIsCounted(t *testing.T) {
	scenario(t, func(t *testing.T, n *node) {
		c := n.countFiles()
		n.apply("one")
		n.run()
		want := func(when string, want map[string]int) {
			t.Helper()
			n.all()
			if got := c.take(); !maps.Equal(got, want) {
				t.Errorf("%s: got %v, want %v", when, got, want)
			}
		}
		n.w.Tell(with(life(5, records.GoalRun), configured))
		n.wantReady()
		want("from the order to ready", map[string]int{"life": 1, "state": 4, "member": 1})
		n.w.SourcesChanged(func(s files.FileSource) bool { return s.Name != "etc" })
		time.Sleep(time.Minute)
		want("another ConfigMap was changed", map[string]int{})
		n.w.Tell(with(life(5, records.GoalStop), configured))
		n.wantStopped(tok(5))
		want("from the order to stopped", map[string]int{"life": 1, "state": 2})
	})
}
