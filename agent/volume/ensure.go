package volume

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"syscall"

	"github.com/stead-project/stead/agent/runtime"
	"github.com/stead-project/stead/internal/wrap"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
)

const dataDir = "data"

// Ensure implements runtime.Volumes. A volume that was used, or made by this node, and
// is not there, or that is not what its owner file should say, is never made again. Without a group the
// directory is root's, mode 0755.
func (v *Volumes) Ensure(
	ctx context.Context, id spec.Identity, vol records.MemberVolume, fresh bool, group *runtime.Group,
) (path string, err error) {
	defer wrap.Error(&err, "ensure volume %s of %s", vol.Claim, id)
	if err := checkIdentity(id, string(vol.Claim)); err != nil {
		return "", err
	}
	if vol.ID == "" {
		return "", errors.New("the volume has no id")
	}
	if err := checkLabel(string(vol.ID)); err != nil {
		return "", err
	}
	root, err := v.open(vol.Class)
	if err != nil {
		return "", err
	}
	defer root.Close()
	path, err = v.ensureOnce(root, id, vol, fresh)
	if err == nil && group != nil { // outside of the lock: a large tree takes long
		err = giveTo(ctx, root, filepath.Join(placeOf(id, vol.Claim), dataDir), *group)
	}
	if errors.Is(err, syscall.ENOSPC) {
		err = fmt.Errorf("the disk of %s is full: %w", root.Name(), err)
	}
	if err != nil {
		return "", err
	}
	return path, nil
}

// ensureOnce checks the volume, or makes it and notes that, for one at a time.
func (v *Volumes) ensureOnce(root *os.Root, id spec.Identity, vol records.MemberVolume, fresh bool) (path string, err error) {
	if vol.Object { // the workers of several members may make it at once
		lock, _ := v.making.LoadOrStore(vol.ID, &sync.Mutex{})
		lock.(*sync.Mutex).Lock()
		defer lock.(*sync.Mutex).Unlock()
	}
	known, err := v.wasMade(vol.ID)
	if err == nil && !known {
		known, err = v.inSomeTrash(root, vol.Class, vol.ID)
	}
	if err != nil {
		return "", err
	}
	want := v.ownerOf(id, vol.Claim, vol.ID, vol.Number)
	path, err = v.ensureIn(root, want, fresh && !known)
	if err != nil || known {
		return path, err
	}
	// An earlier try may have died, or failed to sync: only what is on disk is noted as made.
	if err := v.writer.SyncDir(root, placeOf(id, vol.Claim)); err != nil {
		return "", err
	}
	return path, v.noteMade(vol.Class, want)
}

// ensureIn checks the volume, or makes it if it is fresh and not there.
func (v *Volumes) ensureIn(root *os.Root, want owner, fresh bool) (string, error) {
	place := placeOf(want.identity(), want.Claim)
	if err := v.claim(root, place, want, fresh); err != nil {
		return "", err
	}
	data := filepath.Join(place, dataDir)
	if err := checkData(root, data, fresh); err != nil {
		return "", err
	}
	return filepath.Join(root.Name(), data), nil
}

// claim makes sure that the owner file at place is want, writing it only where
// there is nothing yet and the volume is fresh.
func (v *Volumes) claim(root *os.Root, place string, want owner, fresh bool) error {
	there, err := isInPlace(root, place, want)
	if err != nil || there {
		return err
	}
	if !fresh {
		return fmt.Errorf("%w: %s was made before and is not there; is its filesystem mounted? An empty one is not made in its place; if it is lost for good, say so: stead volume reclaim %s -n %s --lost",
			runtime.ErrAbsent, filepath.Join(root.Name(), place), records.VolumeName(want.identity(), want.Claim), want.Namespace)
	}
	if err := v.writer.MakeDirs(root, place); err != nil {
		return err
	}
	return v.writeOwner(root, place, want)
}

// isInPlace reports whether the volume is in its place; an error says what else is.
func isInPlace(root *os.Root, place string, want owner) (bool, error) {
	path := filepath.Join(root.Name(), place)
	have, err := readOwner(root, place)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		found, err := contents(root, place)
		if len(found) > 0 {
			err = fmt.Errorf("%w: %s holds %q and no owner file; nothing was touched; move it away if it may go",
				runtime.ErrExists, path, found[0])
		}
		return false, err
	case err != nil:
		return false, fmt.Errorf("%w: the owner file in %s cannot be read (%w); nothing was touched; restore it, or move the directory away",
			runtime.ErrForeign, path, err)
	case have != want:
		return false, fmt.Errorf("%w: %s holds %s, wanted is %s; nothing was touched; move that directory away if it may go",
			runtime.ErrForeign, path, have, want)
	}
	return true, nil
}

// contents lists what is at place beside unfinished owner files; an absent
// place holds nothing.
func contents(root *os.Root, place string) ([]string, error) {
	dir, err := root.Open(place)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return nil, err
	}
	var found []string
	for _, name := range names {
		if name != ownerDraft {
			found = append(found, name)
		}
	}
	return found, nil
}

// checkData makes or finds the directory that is mounted. The owner file is always
// written first, so one without data is an unfinished new volume, or a lost one.
func checkData(root *os.Root, data string, fresh bool) error {
	path := filepath.Join(root.Name(), data)
	found, err := root.Lstat(data)
	switch {
	case err == nil && found.IsDir():
		return nil
	case err == nil:
		return fmt.Errorf("%w: %s is not a directory", runtime.ErrExists, path)
	case !errors.Is(err, fs.ErrNotExist):
		return err
	case !fresh:
		return fmt.Errorf("%w: %s was made before and is not there; an empty one is not made in its place",
			runtime.ErrAbsent, path)
	}
	if err := root.Mkdir(data, 0o755); err != nil {
		return err
	}
	return root.Chmod(data, 0o755) // whatever the umask
}
