package volume

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
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
	ctx context.Context, member spec.Identity, vol records.MemberVolume, fresh bool, group *runtime.Group,
) (path string, err error) {
	id := vol.Owner(member)
	defer wrap.Error(&err, "ensure volume %s of %s", vol.Claim, id)
	for _, who := range []spec.Identity{id, member} {
		names := []string{string(vol.Claim)}
		if _, is := who.Ref().ClaimName(); vol.Object && !is {
			names = nil // a claim's name may have dots
		}
		if err := checkIdentity(who, names...); err != nil {
			return "", err
		}
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
	path, err = v.ensureOnce(ctx, root, member, vol, fresh)
	if err == nil && group != nil { // outside of the lock: a large tree takes long
		err = giveAt(ctx, path, *group)
	}
	if errors.Is(err, syscall.ENOSPC) {
		err = fmt.Errorf("the disk of %s is full: %w", root.Name(), err)
	}
	if err != nil {
		return "", err
	}
	return path, nil
}

// giveAt gives the directory at path to the group, with all in it.
func giveAt(ctx context.Context, path string, g runtime.Group) error {
	above, err := os.OpenRoot(filepath.Dir(path))
	if err != nil {
		return err
	}
	defer above.Close()
	return giveTo(ctx, above, filepath.Base(path), g)
}

// lock is held by who makes, mounts or grows a volume: the workers of several members may have one.
func (v *Volumes) lock(volume records.VolumeID) *sync.Mutex {
	lock, _ := v.making.LoadOrStore(volume, &sync.Mutex{})
	return lock.(*sync.Mutex)
}

// ensureOnce checks the volume, or makes it and notes that, for one at a time, and returns where its data are.
func (v *Volumes) ensureOnce(
	ctx context.Context, root *os.Root, member spec.Identity, vol records.MemberVolume, fresh bool,
) (path string, err error) {
	lock := v.lock(vol.ID)
	lock.Lock()
	defer lock.Unlock()
	noted, known, err := v.wasMade(vol.ID)
	if err != nil {
		return "", err
	}
	elsewhere := false
	if !known {
		if elsewhere, err = v.inSomeTrash(root, vol.Class, vol.ID); err != nil {
			return "", err
		}
	}
	id := vol.Owner(member)
	place := placeOf(id, vol.Claim)
	want := made{Class: vol.Class, owner: v.ownerOf(id, vol.Claim, vol.ID, vol.Number)}
	is, err := v.ensureIn(ctx, root, want, vol.SizeBytes, fresh && !known && !elsewhere)
	if err != nil {
		return "", err
	}
	want.Image = is == kindImage
	switch {
	case known && noted.Image != want.Image:
		return "", fmt.Errorf("%w: what is in %s is not what was made there; nothing was touched; bring the %s back",
			runtime.ErrAbsent, filepath.Join(root.Name(), place), filepath.Base(want.other()))
	case !known && !elsewhere:
		// An earlier try may have died, or failed to sync: only what is on disk is noted as made.
		if err := v.writer.SyncDir(root, place); err != nil {
			return "", err
		}
		if err := v.noteMade(want); err != nil {
			return "", err
		}
	}
	if want.Image {
		return v.mountImage(ctx, root, place, member, vol.ID)
	}
	return filepath.Join(root.Name(), place, dataDir), nil
}

// other is the name of what a volume of the other kind is in.
func (m made) other() string {
	if m.Image {
		return dataDir
	}
	return imageFile
}

// ensureIn checks the volume, or makes it if it is fresh and not there, and says of which kind it is. The owner
// file is always written first, so one without data is an unfinished new volume, or a lost one.
func (v *Volumes) ensureIn(ctx context.Context, root *os.Root, want made, size int64, fresh bool) (kind, error) {
	place := placeOf(want.identity(), want.Claim)
	if err := v.claim(root, place, want.owner, fresh); err != nil {
		return kindNone, err
	}
	is, err := kindAt(root, place)
	switch {
	case err != nil || is != kindNone:
		return is, err
	case !fresh:
		return kindNone, fmt.Errorf("%w: %s was made before and is not there; an empty one is not made in its place",
			runtime.ErrAbsent, filepath.Join(root.Name(), place, dataDir))
	case slices.Contains(v.sized, want.Class):
		return kindImage, v.makeImage(ctx, root, place, want.Volume, size)
	}
	data := filepath.Join(place, dataDir)
	if err := root.Mkdir(data, 0o755); err != nil {
		return kindNone, err
	}
	return kindDir, root.Chmod(data, 0o755) // whatever the umask
}

// claim makes sure that the owner file at place is want, writing it only where
// there is nothing yet and the volume is fresh.
func (v *Volumes) claim(root *os.Root, place string, want owner, fresh bool) error {
	have, there, err := inPlace(root, place, want)
	if err == nil && there {
		err = have.notSealed(filepath.Join(root.Name(), place))
	}
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

// isInPlace reports whether the volume is in its place, sealed or not; an error says what else is.
func isInPlace(root *os.Root, place string, want owner) (bool, error) {
	_, there, err := inPlace(root, place, want)
	return there, err
}

// inPlace is isInPlace, and what the owner file says.
func inPlace(root *os.Root, place string, want owner) (owner, bool, error) {
	path := filepath.Join(root.Name(), place)
	have, err := readOwner(root, place)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		found, err := contents(root, place)
		if len(found) > 0 {
			err = fmt.Errorf("%w: %s holds %q and no owner file; nothing was touched; move it away if it may go",
				runtime.ErrExists, path, found[0])
		}
		return have, false, err
	case err != nil:
		return have, false, fmt.Errorf("%w: the owner file in %s cannot be read (%w); nothing was touched; restore it, or move the directory away",
			runtime.ErrForeign, path, err)
	case have.unsealed() != want:
		return have, false, fmt.Errorf("%w: %s holds %s, wanted is %s; nothing was touched; move that directory away if it may go",
			runtime.ErrForeign, path, have, want)
	}
	return have, true, nil
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
