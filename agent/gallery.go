package agent

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/stead-project/stead/agent/files"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
)

// gallery holds the newest picture of every set and the histories that were told, and
// keeps them on tmpfs so that DNS answers, and members are shown the same, after a
// restart of the agent while no server is there.
type gallery struct {
	path string
	log  *slog.Logger

	mu       sync.Mutex
	pictures map[spec.SetRef]records.Snapshot
	changes  map[spec.SetRef][]records.Change // ascending; replaced whole
	hosts    []netip.Addr                     // of all nodes, ascending; nil: never told; replaced whole
	newest   spec.Sequence                    // of a full telling
	moved    chan struct{}
}

// newGallery reads what an agent before this one kept.
func newGallery(runDir string, log *slog.Logger) *gallery {
	g := &gallery{
		path: filepath.Join(runDir, "pictures.json"), log: log, changes: map[spec.SetRef][]records.Change{},
		pictures: map[spec.SetRef]records.Snapshot{}, moved: make(chan struct{}, 1),
	}
	var histories []records.History
	if err := readJSON(g.historiesPath(), &histories); err == nil {
		for _, h := range histories {
			g.changes[h.Ref] = h.Changes
		}
	}
	if err := readJSON(g.hostsPath(), &g.hosts); err != nil {
		g.hosts = nil
	}
	b, err := os.ReadFile(g.path)
	if err != nil {
		return g
	}
	var kept []records.Snapshot
	if err := json.Unmarshal(b, &kept); err != nil {
		log.Warn("kept pictures not read", "err", err)
		return g
	}
	for _, p := range kept {
		g.pictures[p.Ref] = p
	}
	return g
}

// put takes pictures told at seq; full replaces all. It never goes back: neither
// with a picture nor with a full telling. It returns the sets that changed.
func (g *gallery) put(seq spec.Sequence, full bool, told []records.Snapshot) []spec.SetRef {
	g.mu.Lock()
	defer g.mu.Unlock()
	if seq.Compare(g.newest) < 0 {
		return nil
	}
	g.newest = seq
	var changed []spec.SetRef
	named := map[spec.SetRef]bool{}
	for _, p := range told {
		named[p.Ref] = true
		had, ok := g.pictures[p.Ref]
		if ok && had.Sequence.Compare(p.Sequence) > 0 {
			continue
		}
		changed = append(changed, p.Ref)
		if p.Gone {
			delete(g.pictures, p.Ref)
			delete(g.changes, p.Ref)
			continue
		}
		g.pictures[p.Ref] = p
	}
	if full {
		for ref := range g.pictures {
			if !named[ref] {
				delete(g.pictures, ref)
				delete(g.changes, ref)
				changed = append(changed, ref)
			}
		}
	}
	select {
	case g.moved <- struct{}{}:
	default:
	}
	return changed
}

// add takes what was told of histories and returns the sets of which something was
// new. Numbers only grow; what was told before is left out.
func (g *gallery) add(told []records.History) []spec.SetRef {
	g.mu.Lock()
	defer g.mu.Unlock()
	var changed []spec.SetRef
	for _, h := range told {
		had := g.changes[h.Ref]
		fresh := records.ChangesAfter(h.Changes, records.LastChange(had))
		if len(fresh) == 0 {
			continue
		}
		all := append(slices.Clip(had), fresh...)
		g.changes[h.Ref] = slices.Clone(all[max(0, len(all)-records.HistoryWindow):])
		changed = append(changed, h.Ref)
	}
	return changed
}

// admit takes the addresses of all nodes, if any were told, and returns them when they
// differ from those known.
func (g *gallery) admit(told []string) (hosts []netip.Addr, moved bool) {
	for _, text := range told {
		if a, err := netip.ParseAddr(text); err == nil {
			hosts = append(hosts, a)
		}
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(hosts) == 0 || slices.Equal(hosts, g.hosts) {
		return nil, false
	}
	g.hosts = hosts
	select {
	case g.moved <- struct{}{}:
	default:
	}
	return hosts, true
}

func (g *gallery) nodes() []netip.Addr {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.hosts
}

func (g *gallery) history(ref spec.SetRef) []records.Change {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.changes[ref]
}

func (g *gallery) find(ref spec.SetRef) (records.Snapshot, bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	p, ok := g.pictures[ref]
	return p, ok
}

func (g *gallery) all() []records.Snapshot {
	g.mu.Lock()
	defer g.mu.Unlock()
	out := make([]records.Snapshot, 0, len(g.pictures))
	for _, p := range g.pictures {
		out = append(out, p)
	}
	slices.SortFunc(out, func(a, b records.Snapshot) int { return strings.Compare(a.Ref.String(), b.Ref.String()) })
	return out
}

// keep writes changes down, at most once every so often, until ctx ends.
func (g *gallery) keep(ctx context.Context, every time.Duration) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-g.moved:
		}
		if err := g.save(); err != nil && !errors.Is(err, context.Canceled) {
			g.log.Warn("pictures not kept", "err", err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(every):
		}
	}
}

func (g *gallery) historiesPath() string {
	return filepath.Join(filepath.Dir(g.path), "histories.json")
}

func (g *gallery) hostsPath() string { return filepath.Join(filepath.Dir(g.path), "hosts.json") }

// save writes histories first, so that they are never behind the pictures.
func (g *gallery) save() error {
	pictures := g.all()
	g.mu.Lock()
	histories := make([]records.History, 0, len(g.changes))
	for ref, changes := range g.changes {
		histories = append(histories, records.History{Ref: ref, Changes: changes})
	}
	hosts := g.hosts
	g.mu.Unlock()
	if err := keepJSON(g.historiesPath(), histories); err != nil {
		return err
	}
	if err := keepJSON(g.hostsPath(), hosts); err != nil {
		return err
	}
	return keepJSON(g.path, pictures)
}

func keepJSON(path string, list any) error {
	b, err := json.Marshal(list)
	if err != nil {
		return err
	}
	return files.Put(filepath.Dir(path), filepath.Base(path), b, 0o600)
}
