package volume

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/stead-project/stead/agent/runtime"
	"github.com/stead-project/stead/internal/deeptree"
	"github.com/stead-project/stead/internal/wrap"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/records/moves"
)

const (
	// movesDir is below the agent's root and holds a record for each part in a move that is not over.
	movesDir = "moves"
	// movingDir is in the directory of each storage class: a volume that arrives is one rename. No namespace has such a name.
	movingDir = ".moving"
)

// Moves is the body of runtime.MoveVolumes on directories of this host.
type Moves struct{ v *Volumes }

var _ runtime.MoveVolumes = (*Moves)(nil)

// NewMoves returns the moves of these volumes.
func NewMoves(v *Volumes) *Moves { return &Moves{v} }

func partName(p runtime.MovePart) string {
	return string(p.Move) + "." + strings.ToLower(string(p.Role))
}

// stagingOf is the staging of a move in the directory of a class.
func stagingOf(p runtime.MovePart) string { return filepath.Join(movingDir, string(p.Move)) }

// checkPart refuses names that are not a single path element.
func checkPart(p runtime.MovePart) error {
	if len(p.Claims) == 0 || p.Role != moves.MoveSource && p.Role != moves.MoveTarget {
		return fmt.Errorf("invalid move of %s", p.ID)
	}
	names := []string{string(p.Move)}
	for _, c := range p.Claims {
		names = append(names, string(c.Claim), c.Old, c.New)
	}
	return checkIdentity(p.ID, names...)
}

// inClass calls do with the directory of a claim's class, open, and the volume's place there.
func (m *Moves) inClass(p runtime.MovePart, c moves.MoveClaim, do func(root *os.Root, place string) error) error {
	if err := checkPart(p); err != nil {
		return err
	}
	root, err := m.v.open(c.Class)
	if err != nil {
		return err
	}
	defer root.Close()
	return do(root, placeOf(p.ID, c.Claim))
}

// Parts implements runtime.MoveVolumes.
func (m *Moves) Parts(context.Context) (parts []runtime.MovePart, err error) {
	defer wrap.Error(&err, "list moves")
	names, err := m.v.records.names(movesDir)
	errs := []error{err}
	for _, name := range names {
		var p runtime.MovePart
		there, err := m.v.records.read(movesDir, name, &p)
		if err == nil && there {
			err = checkPart(p)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("record %s: %w", name, err))
		} else if there {
			parts = append(parts, p)
		}
	}
	slices.SortFunc(parts, func(a, b runtime.MovePart) int {
		return cmp.Or(cmp.Compare(a.Move, b.Move), cmp.Compare(a.Role, b.Role))
	})
	return parts, errors.Join(errs...)
}

// Note implements runtime.MoveVolumes.
func (m *Moves) Note(_ context.Context, p runtime.MovePart) (err error) {
	defer wrap.Error(&err, "note the move of %s", p.ID)
	if err := checkPart(p); err != nil {
		return err
	}
	return m.v.do("note", func() error { return m.v.records.write(movesDir, partName(p), p) })
}

// Forget implements runtime.MoveVolumes.
func (m *Moves) Forget(_ context.Context, p runtime.MovePart) (err error) {
	defer wrap.Error(&err, "forget the move of %s", p.ID)
	if err := checkPart(p); err != nil {
		return err
	}
	return m.v.do("forget", func() error { return m.v.records.remove(movesDir, partName(p)) })
}

// Look implements runtime.MoveVolumes.
func (m *Moves) Look(ctx context.Context, p runtime.MovePart) (d runtime.MoveDisk, err error) {
	defer wrap.Error(&err, "look at the move of %s", p.ID)
	if p.Role == moves.MoveSource {
		err := m.lookSource(ctx, p, &d)
		return d, err
	}
	d.AllArrived = true
	for _, c := range p.Claims {
		// The ids are made for the move: who has one as made had it arrive, wherever it is since.
		_, made, err := m.v.wasMade(records.VolumeID(c.New))
		if err != nil {
			return d, err
		}
		d.Arrived, d.AllArrived = d.Arrived || made, d.AllArrived && made
		if made {
			continue
		}
		if err := m.inClass(p, c, func(root *os.Root, place string) error {
			have, err := readOwner(root, place)
			here := err == nil && have == m.newOwner(p, c)
			_, staged := root.Lstat(filepath.Join(stagingOf(p), string(c.Claim)))
			d.Arrived, d.Staged, d.Missing = d.Arrived || here, d.Staged || staged == nil, d.Missing || !here && staged != nil
			return except(staged, fs.ErrNotExist)
		}); err != nil {
			return d, err
		}
	}
	return d, nil
}

func (m *Moves) newOwner(p runtime.MovePart, c moves.MoveClaim) owner {
	return m.v.ownerOf(p.ID, c.Claim, records.VolumeID(c.New), c.Number)
}

// Stage implements runtime.MoveVolumes.
func (m *Moves) Stage(ctx context.Context, p runtime.MovePart) (trees []runtime.MoveTree, err error) {
	defer wrap.Error(&err, "make room for the volumes of %s", p.ID)
	for _, c := range p.Claims {
		if err := m.inClass(p, c, func(root *os.Root, place string) error {
			if there, err := isInPlace(root, place, m.newOwner(p, c)); err != nil {
				return err
			} else if there {
				return fmt.Errorf("%w: %s has arrived", runtime.ErrExists, filepath.Join(root.Name(), place))
			}
			staging := filepath.Join(stagingOf(p), string(c.Claim))
			if err := m.stageVolume(ctx, root, staging, c); err != nil {
				return err
			}
			t, err := m.treeAt(ctx, root, staging, p, c, records.VolumeID(c.New))
			trees = append(trees, t)
			return err
		}); err != nil {
			return nil, err
		}
	}
	return trees, ctx.Err()
}

// Arrive implements runtime.MoveVolumes. The owner file is written before the rename, so that none is in its place
// without, and a volume is noted as made after it: what says that the move is done is written last.
func (m *Moves) Arrive(ctx context.Context, p runtime.MovePart) (err error) {
	defer wrap.Error(&err, "put the volumes of %s in their place", p.ID)
	if err := m.Release(ctx, p); err != nil {
		return err
	}
	for _, c := range p.Claims {
		if _, made, err := m.v.wasMade(records.VolumeID(c.New)); err != nil {
			return err
		} else if made {
			continue
		}
		if err := m.inClass(p, c, func(root *os.Root, place string) error { return m.arrive(root, place, p, c) }); err != nil {
			return err
		}
	}
	return errors.Join(m.Discard(ctx, p), ctx.Err())
}

func (m *Moves) arrive(root *os.Root, place string, p runtime.MovePart, c moves.MoveClaim) error {
	v, want, staging := m.v, m.newOwner(p, c), filepath.Join(stagingOf(p), string(c.Claim))
	there, err := isInPlace(root, place, want)
	if err != nil {
		return err
	}
	at := place
	if !there {
		at = staging
	}
	is, err := kindAt(root, at)
	if err == nil && is == kindNone {
		err = fmt.Errorf("%w: %s is not there", runtime.ErrAbsent, filepath.Join(root.Name(), at, dataDir))
	}
	if err == nil && is == kindImage {
		err = m.syncImage(root, at)
	}
	if err != nil {
		return err
	}
	if !there {
		if err := v.do("own", func() error { return v.writeOwner(root, staging, want) }); err != nil {
			return err
		}
		if err := v.makeRoom(root, place); err != nil {
			return err
		}
		if err := v.do("arrive", func() error { return root.Rename(staging, place) }); err != nil {
			return err
		}
	}
	if err := errors.Join(v.writer.SyncDir(root, filepath.Dir(place)), v.writer.SyncDir(root, place), except(v.writer.SyncDir(root, stagingOf(p)), fs.ErrNotExist)); err != nil {
		return err
	}
	return v.do("made", func() error { return v.noteMade(made{Class: c.Class, Image: is == kindImage, owner: want}) })
}

// Discard implements runtime.MoveVolumes.
func (m *Moves) Discard(ctx context.Context, p runtime.MovePart) (err error) {
	defer wrap.Error(&err, "discard what was copied of %s", p.ID)
	if err := m.Release(ctx, p); err != nil {
		return err
	}
	for _, c := range p.Claims {
		if err := m.inClass(p, c, func(root *os.Root, _ string) error {
			if err := m.v.do("discard", func() error { return deeptree.Erase(ctx, root, stagingOf(p)) }); err != nil {
				return err
			}
			return except(m.v.writer.SyncDir(root, movingDir), fs.ErrNotExist)
		}); err != nil {
			return err
		}
	}
	return nil
}
