package sim

import (
	"context"
	"maps"

	"github.com/stead-project/stead/agent/files"
	"github.com/stead-project/stead/agent/worker"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
)

// tmpfs is what outlives an agent and ends with a boot: what its workers keep and show. A
// file is there whole or not at all; the agent may die before and after each is written.
type tmpfs struct {
	n      *node
	docs   documents
	lives  map[spec.Identity]records.Life
	states map[spec.Identity]worker.State
}

var _ worker.HostFiles = (*tmpfs)(nil)

func newTmpfs(n *node) *tmpfs {
	return &tmpfs{n: n, docs: documents{}, lives: map[spec.Identity]records.Life{}, states: map[spec.Identity]worker.State{}}
}

func (f *tmpfs) LoadLife(id spec.Identity) (records.Life, bool) {
	life, ok := f.lives[id]
	return life, ok
}

func (f *tmpfs) LoadState(id spec.Identity) (worker.State, bool) {
	s, ok := f.states[id]
	s.Containers = maps.Clone(s.Containers)
	return s, ok
}

func (f *tmpfs) SaveLife(life *records.Life) error {
	if had, ok := f.lives[life.Member.ID]; ok && had.Member.Token == life.Member.Token && had.Member.Goal == life.Member.Goal {
		return nil // the same content is not written again
	}
	return f.n.act(life.Member.ID, "SaveLife", func() error { f.lives[life.Member.ID] = *life; return nil })
}

func (f *tmpfs) SaveState(id spec.Identity, s *worker.State) error {
	return f.n.act(id, "SaveState", func() error {
		kept := *s
		kept.Containers = maps.Clone(s.Containers)
		f.states[id] = kept
		return nil
	})
}

func (f *tmpfs) Forget(id spec.Identity) error {
	return f.n.act(id, "Forget", func() error {
		delete(f.lives, id)
		f.n.mayCrash("between two files")
		delete(f.states, id)
		return nil
	})
}

func (f *tmpfs) ShowMember(life *records.Life, _ files.Node) error {
	return f.n.act(life.Member.ID, "ShowMember", func() error { return nil })
}

func (f *tmpfs) ShowSet(id spec.Identity, _ *records.Snapshot, _ []records.Change, _ files.Uptime) error {
	return f.n.act(id, "ShowSet", func() error { return nil })
}

func (f *tmpfs) ShowConfirmed(spec.Identity, files.Uptime) error { return nil }

func (f *tmpfs) ShowVolumeNew(spec.Identity, []byte) error { return nil }

func (f *tmpfs) ShowTermination(spec.Identity, records.Reason) error { return nil }

func (f *tmpfs) ShowMedia(spec.Identity, files.Media, *int64) error { return nil }

func (f *tmpfs) MakeLogDir(spec.Identity, string) (string, error) { return "logs", nil }

func (f *tmpfs) LoggerDead(id spec.Identity, _, _ string) bool {
	return f.n.place(id).logger.IsZero()
}

func (f *tmpfs) LastLine(context.Context, spec.Identity, string, string) string { return "" }
