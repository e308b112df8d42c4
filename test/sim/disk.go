package sim

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"maps"
	"slices"
	"strings"

	"github.com/stead-project/stead/agent/files"
	"github.com/stead-project/stead/agent/ledger"
	"github.com/stead-project/stead/agent/session"
	"github.com/stead-project/stead/agent/worker"
	"github.com/stead-project/stead/proto"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
)

// disk holds a ledger. What was not synced may be lost in a crash of the machine,
// whole or in part; a crash of the agent alone loses nothing that was written.
type disk struct {
	node      *node
	now, safe []byte
	closed    bool
	// failIn counts writes down to one that fails; 0: none does.
	failIn int
}

var _ ledger.Disk = (*disk)(nil)

// Name implements ledger.Disk.
func (d *disk) Name() string { return "ledger" }

// Read implements ledger.Disk.
func (d *disk) Read() ([]byte, error) { return append([]byte(nil), d.now...), nil }

// WriteAt implements ledger.Disk.
func (d *disk) WriteAt(p []byte, at int64) (int, error) {
	if d.failIn > 0 {
		d.failIn--
		if d.failIn == 0 {
			d.now = append(d.now[:at:at], p[:len(p)/2]...)
			return len(p) / 2, fmt.Errorf("write: %w", io.ErrShortWrite)
		}
	}
	d.now = append(d.now[:at:at], p...)
	return len(p), nil
}

// Truncate implements ledger.Disk.
func (d *disk) Truncate(size int64) error { d.now = d.now[:size:size]; return nil }

// Sync implements ledger.Disk.
func (d *disk) Sync() error { d.safe = d.now; return nil }

// Replace implements ledger.Disk.
func (d *disk) Replace(content []byte) (bool, error) {
	d.now, d.safe = content, content
	return true, nil
}

// Close implements ledger.Disk.
func (d *disk) Close() error { d.closed = true; return nil }

// powerCut keeps of what was not synced the first n bytes.
func (d *disk) powerCut(n int) {
	common := 0
	for common < len(d.safe) && common < len(d.now) && d.safe[common] == d.now[common] {
		common++
	}
	if common < len(d.safe) {
		d.now = d.safe
		return
	}
	d.now = d.now[:min(len(d.now), common+n)]
	d.safe = d.now
}

// home is what a node's disk says of who it is.
type home struct{ n *node }

var _ session.Home = home{}

func (h home) Name() spec.NodeName { return h.n.name }

func (h home) UID() spec.UID { return h.n.uid }

func (h home) Cluster() string { return clusterID }

func (h home) Belong(*proto.Welcome) error { return nil }

func (h home) Newest() spec.Sequence { return h.n.newest }

func (h home) KeepNewest(seq spec.Sequence) error {
	return h.n.act(spec.Identity{}, "KeepNewest", func() error { h.n.newest = seq; return nil })
}

// documents are small files, each there whole or not at all.
type documents map[string][]byte

var _ session.Dir = documents{}

// Get implements session.Dir.
func (d documents) Get(name string, doc any) error {
	b, ok := d[name]
	if !ok {
		return fs.ErrNotExist
	}
	return json.Unmarshal(b, doc)
}

// Put implements session.Dir.
func (d documents) Put(name string, doc any) (err error) {
	d[name], err = json.Marshal(doc)
	return err
}

// Names implements session.Dir.
func (d documents) Names(folder string) (names []string, err error) {
	for name := range d {
		if below, ok := strings.CutPrefix(name, folder+"/"); ok {
			names = append(names, below)
		}
	}
	slices.Sort(names)
	return names, nil
}

// Remove implements session.Dir.
func (d documents) Remove(name string) error {
	delete(d, name)
	return nil
}

// refusals hears what an agent logs, and judges that it was sent nothing that it must refuse.
type refusals struct{ n *node }

func (r refusals) Enabled(_ context.Context, l slog.Level) bool { return l >= slog.LevelError }

func (r refusals) Handle(_ context.Context, m slog.Record) error {
	switch m.Message {
	case "assignment not decoded; ignored", "assignment for another node ignored", "volume orders not decoded; ignored":
		r.n.w.fail("dispatch", "%s is sent what it cannot take: %s", r.n.name, m.Message)
	}
	return nil
}

func (r refusals) WithAttrs([]slog.Attr) slog.Handler { return r }

func (r refusals) WithGroup(string) slog.Handler { return r }

// tmpfs is what outlives an agent and ends with a boot: what its workers keep and show. A
// file is there whole or not at all; the agent may die before and after each is written.
type tmpfs struct {
	n      *node
	docs   documents
	lives  map[spec.Identity]records.Life
	states map[spec.Identity]worker.State
	sets   *setDisk
}

var _ worker.HostFiles = (*tmpfs)(nil)

func newTmpfs(n *node) *tmpfs {
	return &tmpfs{n: n, docs: documents{}, lives: map[spec.Identity]records.Life{}, states: map[spec.Identity]worker.State{}, sets: newSetDisk(n)}
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
	if had, ok := f.lives[life.Member.ID]; ok && had.Member.Token == life.Member.Token && had.Member.Goal == life.Member.Goal && orderOf(&had) == orderOf(life) && changeOf(&had) == changeOf(life) {
		return nil // the same content is not written again
	}
	return f.n.act(life.Member.ID, "SaveLife", func() error { f.lives[life.Member.ID] = *life; return nil })
}

// orderOf names the hook that a life is ordered; zero: none.
func orderOf(l *records.Life) (id spec.Sequence) {
	if h := l.Member.Hook; h != nil {
		id = h.ID
	}
	return id
}

// changeOf names the change in place that a life has taken; zero: none.
func changeOf(l *records.Life) (id spec.Sequence) {
	if c := l.Member.Change; c != nil {
		id = c.ID
	}
	return id
}

func (f *tmpfs) SaveState(id spec.Identity, s *worker.State) error {
	return f.n.act(id, "SaveState", func() error {
		kept := *s
		kept.Containers = maps.Clone(s.Containers)
		f.n.place(id).kept(s)
		f.n.w.plant.State(&kept)
		f.states[id] = kept
		return nil
	})
}

func (f *tmpfs) Forget(id spec.Identity) error {
	return f.n.act(id, "Forget", func() error {
		delete(f.lives, id)
		f.n.mayCrash("between two files")
		delete(f.states, id)
		delete(f.sets.shown, files.At(runDir, id).Stead)
		return nil
	})
}

func (f *tmpfs) ShowMember(life *records.Life, _ files.Node) error {
	return f.n.act(life.Member.ID, "ShowMember", func() error { return nil })
}

func (f *tmpfs) ShowVolumeNew(spec.Identity, []byte) error { return nil }

// ShowTermination is the first thing that is done to end a life.
func (f *tmpfs) ShowTermination(id spec.Identity, _ records.Reason) error {
	p, token := f.n.place(id), f.n.agent.workers[id].token
	if p.ending.token != token {
		p.ending = ending{token, f.n.now()}
	}
	return nil
}

func (f *tmpfs) ShowMedia(spec.Identity, files.Media, *int64) error { return nil }

func (f *tmpfs) MakeLogDir(spec.Identity, string) (string, error) { return "logs", nil }

func (f *tmpfs) LoggerDead(id spec.Identity, _, _ string) bool {
	return f.n.place(id).logger.IsZero()
}

func (f *tmpfs) LastLine(context.Context, spec.Identity, string, string) string { return "" }
