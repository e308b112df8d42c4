package volume

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/stead-project/stead/agent/runtime"
	"github.com/stead-project/stead/internal/wrap"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/records/moves"
	"github.com/stead-project/stead/spec"
)

// seal is in the owner file of a volume that a move has sealed: its copy on another node may be the volume now, so nobody
// may use this one (SAFETY S12).
type seal struct {
	Move moves.MoveID  `json:"move"`
	To   spec.NodeName `json:"to"`
	// Volume is the id, on disk alone: there it stands in place of the owner's own, so that an agent that knows no seals takes the
	// volume for another's, too.
	Volume records.VolumeID `json:"volume,omitempty"`
}

// unsealed is the same volume without a seal.
func (o owner) unsealed() owner {
	o.Seal = seal{}
	return o
}

// notSealed fails if the volume, which is at path, is sealed.
func (o owner) notSealed(path string) error {
	if o.Seal.Move == "" {
		return nil
	}
	return fmt.Errorf("%w: move %s to node %s sealed %s: the copy there may be the volume, so this one is not used; if no such move is under way, and that node is connected: stead move %s -n %s --abort",
		runtime.ErrSealed, o.Seal.Move, o.Seal.To, path, o.identity().MemberName(), o.Namespace)
}

// breakSeal makes the owner file in dir that of a volume that may be used.
func (v *Volumes) breakSeal(root *os.Root, dir string) error {
	have, err := readOwner(root, dir)
	if err != nil || have.Seal.Move == "" {
		return err
	}
	return v.do("unseal", func() error { return v.writeOwner(root, dir, have.unsealed()) })
}

// eachOld calls do with each volume that goes, in its class, the place, and its owner as it was before the move.
func (m *Moves) eachOld(ctx context.Context, p runtime.MovePart, do func(c moves.MoveClaim, root *os.Root, place string, want owner) error) error {
	for _, c := range p.Claims {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := m.inClass(p, c, func(root *os.Root, place string) error {
			return do(c, root, place, m.v.ownerOf(p.ID, c.Claim, records.VolumeID(c.Old), c.Number))
		}); err != nil {
			return fmt.Errorf("volume %s: %w", records.VolumeName(p.ID, c.Claim), err)
		}
	}
	return nil
}

// Source implements runtime.MoveVolumes.
func (m *Moves) Source(ctx context.Context, p runtime.MovePart) (trees []runtime.MoveTree, err error) {
	err = m.eachOld(ctx, p, func(c moves.MoveClaim, root *os.Root, place string, want owner) error {
		have, there, err := inPlace(root, place, want)
		path := filepath.Join(root.Name(), place)
		switch {
		case err != nil:
			return err
		case !there:
			return fmt.Errorf("%w: %s", runtime.ErrAbsent, path)
		case have.Seal.Move != "" && have.Seal.Move != p.Move:
			return have.notSealed(path)
		}
		if err := unmounted(path); err != nil {
			return err
		}
		t, err := m.treeAt(ctx, root, place, p, c, want.Volume)
		trees = append(trees, t)
		return err
	})
	return trees, err
}

// Seal implements runtime.MoveVolumes.
func (m *Moves) Seal(ctx context.Context, p runtime.MovePart) (err error) {
	defer wrap.Error(&err, "seal the volumes of %s", p.ID)
	if _, err := m.Source(ctx, p); err != nil {
		return err
	}
	return m.eachOld(ctx, p, func(c moves.MoveClaim, root *os.Root, place string, want owner) error {
		want.Seal = seal{Move: p.Move, To: p.Peer}
		if have, err := readOwner(root, place); err == nil && have == want {
			return m.v.writer.SyncDir(root, place) // the try that wrote it may have died before it synced it
		}
		return m.v.do("seal", func() error { return m.v.writeOwner(root, place, want) })
	})
}

// Unseal implements runtime.MoveVolumes. What is another's, or not there, has no seal of this move.
func (m *Moves) Unseal(ctx context.Context, p runtime.MovePart) (err error) {
	defer wrap.Error(&err, "unseal the volumes of %s", p.ID)
	return m.eachOld(ctx, p, func(_ moves.MoveClaim, root *os.Root, place string, want owner) error {
		have, err := readOwner(root, place)
		switch {
		case errors.Is(err, fs.ErrNotExist), err == nil && have.unsealed() != want:
			return nil
		case err != nil:
			return err
		case have.Seal.Move == p.Move:
			return m.v.breakSeal(root, place)
		case have.Seal.Move != "":
			return nil
		}
		return m.v.writer.SyncDir(root, place)
	})
}

// lookSource adds what is sealed, and what is not there: given up, or lost, so that nobody can use it. What may be there, and cannot be
// looked at, is an error.
func (m *Moves) lookSource(ctx context.Context, p runtime.MovePart, d *runtime.MoveDisk) error {
	d.AllSealed = true
	return m.eachOld(ctx, p, func(c moves.MoveClaim, root *os.Root, place string, want owner) error {
		have, err := readOwner(root, place)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			_, _, err = inPlace(root, place, want)
			if err == nil {
				d.Absent = append(d.Absent, c.Claim)
			}
			return err
		case err != nil:
			return err
		case have.unsealed() != want:
			d.Absent = append(d.Absent, c.Claim)
			return nil
		}
		is, err := kindAt(root, place)
		if err != nil {
			return err
		}
		if is == kindNone {
			d.Absent = append(d.Absent, c.Claim)
		}
		d.Sealed = d.Sealed || have.Seal.Move == p.Move
		d.AllSealed = d.AllSealed && have.Seal.Move == p.Move
		return nil
	})
}
