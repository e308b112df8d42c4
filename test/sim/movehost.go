package sim

import (
	"cmp"
	"context"
	"maps"
	"slices"

	"github.com/stead-project/stead/agent/runtime"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/records/moves"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/store"
)

// partKey names a node's part in a move.
type partKey struct {
	move moves.MoveID
	role moves.MoveRole
}

// hostMoves does with the file systems of a node what agent/volume does with directories in moves. At each thing that
// it changes the agent may die, before or after, or the thing fails.
type hostMoves struct{ a *agent }

var _ runtime.MoveVolumes = hostMoves{}

// seldomDone is what few moves come to: an agent dies at it more often.
var seldomDone = map[string]bool{"a volume is sealed": true, "a volume arrives": true, "a copy is discarded": true}

// step does one thing to the host's disks.
func (h hostMoves) step(op string, do func()) error {
	n := h.a.n
	w := n.w
	n.mustRun(h.a)
	how := 0
	if !w.judge.settling {
		how = w.r.IntN(16)
	}
	switch {
	case how == 1 || how == 4 && seldomDone[op]:
		w.count("fault: agent dies before " + op)
		n.crash("before " + op)
	case how == 2:
		return errSlow
	}
	do()
	w.note("%s: %s", n.name, op)
	if how == 3 || how == 5 && seldomDone[op] {
		w.count("fault: agent dies after " + op)
		n.crash("after " + op)
	}
	return nil
}

// each calls do with each volume of a part, the file system of its class and its place there.
func (h hostMoves) each(p runtime.MovePart, do func(c moves.MoveClaim, fs *fileSystem, key volumeKey) error) error {
	for _, c := range p.Claims {
		fs, err := h.a.n.open(c.Class)
		if err != nil {
			return err
		}
		if err := do(c, fs, volumeKey{p.ID, c.Claim}); err != nil {
			return err
		}
	}
	return nil
}

// is: a volume is in its place.
func (d dir) is(id string, number int) bool { return string(d.id) == id && d.number == number }

func (h hostMoves) Parts(context.Context) ([]runtime.MovePart, error) {
	return slices.SortedFunc(maps.Values(h.a.n.parts), func(a, b runtime.MovePart) int {
		return cmp.Or(cmp.Compare(a.Move, b.Move), cmp.Compare(a.Role, b.Role))
	}), nil
}

func (h hostMoves) Note(_ context.Context, p runtime.MovePart) error {
	return h.step("a part in a move is noted", func() {
		h.a.n.parts[partKey{p.Move, p.Role}] = p
		for _, s := range p.Copied {
			if t := h.a.n.treeOf(p, s.Claim); t != nil {
				t.compared = true
			}
		}
	})
}

func (h hostMoves) Forget(_ context.Context, p runtime.MovePart) error {
	return h.step("a part in a move is forgotten", func() { delete(h.a.n.parts, partKey{p.Move, p.Role}) })
}

func (h hostMoves) Look(_ context.Context, p runtime.MovePart) (d runtime.MoveDisk, err error) {
	h.a.n.mustRun(h.a)
	if w := h.a.n.w; w.plant.BreaksSeals && p.Role == moves.MoveSource && w.chance(4) {
		h.a.n.unsealAll()
	}
	d.AllSealed, d.AllArrived = p.Role == moves.MoveSource, p.Role == moves.MoveTarget
	if p.Role == moves.MoveSource {
		return d, h.each(p, func(c moves.MoveClaim, fs *fileSystem, key volumeKey) error {
			have, there := fs.dirs[key]
			if !there || !have.is(c.Old, c.Number) {
				d.Absent = append(d.Absent, c.Claim)
			}
			switch {
			case !there || !have.is(c.Old, c.Number), h.a.n.w.plant.SaysBackSealed && p.Back:
			case have.tree.seal == p.Move, h.a.copier.sealed[p.Move]:
				d.Sealed = true
			default:
				d.AllSealed = false
			}
			return nil
		})
	}
	for _, c := range p.Claims {
		made := h.a.n.made[records.VolumeID(c.New)]
		d.Arrived, d.AllArrived = d.Arrived || made, d.AllArrived && made
		if made {
			continue
		}
		fs, err := h.a.n.open(c.Class)
		if err != nil {
			return d, err
		}
		here, staged := fs.dirs[volumeKey{p.ID, c.Claim}].is(c.New, c.Number), fs.staging[p.Move][records.VolumeID(c.New)] != nil
		d.Arrived, d.Staged, d.Missing = d.Arrived || here, d.Staged || staged, d.Missing || !here && !staged
	}
	d.AllArrived = d.AllArrived || h.a.n.w.plant.ArrivesTooEarly && len(p.Copied) > 0
	return d, nil
}

// unsealAll has no volume on the node's disks be sealed, as plants do.
func (n *node) unsealAll() {
	for _, name := range allClasses {
		if disk := n.classes[name].disk; disk != nil {
			for _, key := range disk.places() {
				disk.dirs[key].tree.seal = ""
			}
		}
	}
}

// forgetSeals has no volume be sealed, and the agent go on as if all were, as a plant does.
func (n *node) forgetSeals(a *agent) {
	for key, p := range n.parts {
		for _, c := range p.Claims {
			t := n.treeOf(p, c.Claim)
			a.copier.sealed[p.Move] = a.copier.sealed[p.Move] || key.role == moves.MoveSource && t != nil && t.seal == p.Move
		}
	}
	n.unsealAll()
}

// keepReports has the facts of a hello say of moves what those of the session before did, as a plant says.
func (w *Cluster) keepReports(t store.Txn) store.Txn {
	if !w.plant.KeepsOldReports || !slices.ContainsFunc(t.Then, func(op store.Op) bool { return op.Key == store.HellosKey }) {
		return t
	}
	t.Then = slices.Clone(t.Then)
	for _, n := range w.view().Nodes() {
		for i, op := range t.Then {
			facts, err := store.Decode[records.NodeFacts](store.KV{Key: op.Key, Value: op.Value})
			if op.Key == store.FactsKey(n.Node.Name) && err == nil && n.Facts != nil && len(n.Facts.MoveReports) > 0 {
				facts.MoveReports = n.Facts.MoveReports
				t.Then[i] = store.Put(op.Key, store.Encode(facts))
			}
		}
	}
	return t
}

func (h hostMoves) Source(_ context.Context, p runtime.MovePart) (trees []runtime.MoveTree, err error) {
	return trees, h.each(p, func(c moves.MoveClaim, fs *fileSystem, key volumeKey) error {
		have, there := fs.dirs[key]
		switch {
		case !there:
			return runtime.ErrAbsent
		case !have.is(c.Old, c.Number):
			return runtime.ErrForeign
		case have.tree.seal != "" && have.tree.seal != p.Move:
			return runtime.ErrSealed
		}
		trees = append(trees, runtime.MoveTree{Claim: c.Claim, Path: c.Old})
		return nil
	})
}

func (h hostMoves) Seal(ctx context.Context, p runtime.MovePart) error {
	if _, err := h.Source(ctx, p); err != nil {
		return err
	}
	return h.each(p, func(_ moves.MoveClaim, fs *fileSystem, key volumeKey) error {
		h.a.meanwhile()
		return h.step("a volume is sealed", func() {
			if h.a.n.w.plant.SealsNothing {
				h.a.copier.sealed[p.Move] = true
				return
			}
			fs.dirs[key].tree.seal = p.Move
		})
	})
}

func (h hostMoves) Unseal(_ context.Context, p runtime.MovePart) error {
	return h.each(p, func(c moves.MoveClaim, fs *fileSystem, key volumeKey) error {
		have, there := fs.dirs[key]
		if !there || !have.is(c.Old, c.Number) || have.tree.seal != p.Move {
			return nil
		}
		return h.step("a seal is broken", func() {
			h.a.n.w.judge.unseals(h.a.n, p, c)
			have.tree.seal = ""
		})
	})
}

func (h hostMoves) Stage(_ context.Context, p runtime.MovePart) (trees []runtime.MoveTree, err error) {
	return trees, h.each(p, func(c moves.MoveClaim, fs *fileSystem, key volumeKey) error {
		switch have, there := fs.dirs[key]; {
		case there && have.is(c.New, c.Number):
			return runtime.ErrExists
		case there:
			return runtime.ErrForeign
		}
		trees = append(trees, runtime.MoveTree{Claim: c.Claim, Path: c.New})
		if fs.staging[p.Move][records.VolumeID(c.New)] != nil {
			return nil
		}
		return h.step("a directory is staged", func() {
			if fs.staging[p.Move] == nil {
				fs.staging[p.Move] = map[records.VolumeID]*tree{}
			}
			fs.staging[p.Move][records.VolumeID(c.New)] = &tree{}
		})
	})
}

func (h hostMoves) Arrive(ctx context.Context, p runtime.MovePart) error {
	n := h.a.n
	for _, c := range p.Claims {
		if n.made[records.VolumeID(c.New)] {
			continue
		}
		fs, err := n.open(c.Class)
		if err == nil {
			err = h.arrive(fs, p, c)
		}
		if err == nil {
			err = h.step("a volume that arrived is noted", func() { n.made[records.VolumeID(c.New)] = true })
		}
		if err != nil {
			return err
		}
	}
	return h.Discard(ctx, p)
}

// arrive renames one volume from staging into its place, unless it is there.
func (h hostMoves) arrive(fs *fileSystem, p runtime.MovePart, c moves.MoveClaim) error {
	key := volumeKey{p.ID, c.Claim}
	have, there := fs.dirs[key]
	copied := fs.staging[p.Move][records.VolumeID(c.New)]
	switch {
	case there && have.is(c.New, c.Number):
		return nil
	case there:
		return runtime.ErrForeign
	case copied == nil:
		return runtime.ErrAbsent
	}
	return h.step("a volume arrives", func() {
		h.a.n.w.judge.arrives(h.a.n, p, c, copied)
		fs.dirs[key] = dir{records.VolumeID(c.New), c.Number, c.Class, copied}
		delete(fs.staging[p.Move], records.VolumeID(c.New))
	})
}

func (h hostMoves) Release(context.Context, runtime.MovePart) error { return nil } // nothing is mounted here

func (h hostMoves) Discard(_ context.Context, p runtime.MovePart) error {
	return h.each(p, func(c moves.MoveClaim, fs *fileSystem, _ volumeKey) error {
		copied := fs.staging[p.Move][records.VolumeID(c.New)]
		if copied == nil {
			return nil
		}
		return h.step("a copy is discarded", func() {
			h.a.n.w.judge.discards(h.a.n, p, c, copied)
			delete(fs.staging[p.Move], records.VolumeID(c.New))
		})
	})
}

// treeOf is the directory of a claim as a part in a move has it; nil: it is not there.
func (n *node) treeOf(p runtime.MovePart, claim spec.ClaimName) *tree {
	for _, c := range p.Claims {
		fs, err := n.open(c.Class)
		if c.Claim != claim || err != nil {
			continue
		}
		if p.Role == moves.MoveTarget {
			return fs.staging[p.Move][records.VolumeID(c.New)]
		}
		if have := fs.dirs[volumeKey{p.ID, claim}]; have.is(c.Old, c.Number) {
			return have.tree
		}
	}
	return nil
}

// writer is a container with processes that has a directory as its volume; nil: none.
func (n *node) writer(id spec.Identity, t *tree) *box {
	for _, b := range n.place(id).running() {
		if slices.ContainsFunc(b.mounts, func(m mounted) bool { return m.tree == t }) {
			return b
		}
	}
	return nil
}
