package volume

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/stead-project/stead/agent/runtime"
	"github.com/stead-project/stead/internal/wrap"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/records/moves"
)

// A move copies what is in a volume, whatever holds it at either end. An image is mounted for that below the run directory, beside
// the mounts of members, until the part in the move is over.

// mountsOf is where the images of a move are mounted.
func (m *Moves) mountsOf(p runtime.MovePart) string {
	return filepath.Join(m.v.images, movingDir, string(p.Move))
}

// treeAt is the tree of the volume at place, which is mounted if it is an image. ErrAbsent: there is none.
func (m *Moves) treeAt(ctx context.Context, root *os.Root, place string, p runtime.MovePart, c moves.MoveClaim, id records.VolumeID) (runtime.MoveTree, error) {
	lock := m.v.lock(id)
	lock.Lock()
	defer lock.Unlock()
	t := runtime.MoveTree{Claim: c.Claim, Path: filepath.Join(root.Name(), place, dataDir)}
	is, err := kindAt(root, place)
	switch {
	case err != nil:
		return t, err
	case is == kindNone:
		return t, fmt.Errorf("%w: %s is not there", runtime.ErrAbsent, t.Path)
	case is == kindDir:
		return t, nil
	}
	t.SizeBytes = sizeOf(c.SizeBytes)
	t.Path, err = m.v.mountAt(ctx, root, place, id, filepath.Join(m.mountsOf(p), string(id)))
	return t, err
}

// stageVolume makes what a volume is copied into, of the kind that its class has here, if there is none yet.
func (m *Moves) stageVolume(ctx context.Context, root *os.Root, staging string, c moves.MoveClaim) error {
	is, err := kindAt(root, staging)
	switch {
	case err != nil:
		return err
	case is == kindImage || is == kindNone && slices.Contains(m.v.sized, c.Class):
		if err := m.v.writer.MakeDirs(root, staging); err != nil || is == kindImage {
			return err
		}
		return m.v.makeImage(ctx, root, staging, records.VolumeID(c.New), c.SizeBytes)
	}
	return m.v.writer.MakeDirs(root, filepath.Join(staging, dataDir))
}

// Release implements runtime.MoveVolumes.
func (m *Moves) Release(_ context.Context, p runtime.MovePart) (err error) {
	defer wrap.Error(&err, "unmount the volumes of %s", p.ID)
	if err := checkPart(p); err != nil {
		return err
	}
	return removeMounts(filepath.Split(m.mountsOf(p)))
}

// syncImage puts an image that is staged on disk, which nothing has mounted any more.
func (m *Moves) syncImage(root *os.Root, staging string) error {
	f, err := root.OpenFile(filepath.Join(staging, imageFile), os.O_RDWR, 0)
	if err != nil {
		return err
	}
	return errors.Join(m.v.writer.Sync(f), f.Close())
}
