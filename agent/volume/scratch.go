package volume

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/stead-project/stead/spec"
)

// Scratch implements runtime.Volumes: an emptyDir, mode 0777 as in Kubernetes. In
// memory it is a tmpfs of its own (nosuid, nodev).
func (v *Volumes) Scratch(ctx context.Context, id spec.Identity, token spec.Token, name string, memory bool, sizeBytes int64, fsGroup *int64) (string, error) {
	path, err := v.makeScratch(ctx, id, token, name, memory, sizeBytes, fsGroup)
	if err != nil {
		return "", fmt.Errorf("make scratch %s of %s: %w", name, id, err)
	}
	return path, nil
}

func (v *Volumes) makeScratch(ctx context.Context, id spec.Identity, token spec.Token, name string, memory bool, sizeBytes int64, fsGroup *int64) (string, error) {
	if err := checkIdentity(id, name); err != nil {
		return "", err
	}
	if token.IsZero() {
		return "", errors.New("there is no life without a token")
	}
	top := v.scratch
	if memory {
		top = v.memory
	}
	root, err := os.OpenRoot(top)
	if err != nil {
		return "", err
	}
	defer root.Close()
	life := filepath.Join(scratchOf(id), token.String())
	if err := root.MkdirAll(life, 0o700); err != nil {
		return "", err
	}
	place := filepath.Join(life, name)
	err = root.Mkdir(place, 0o777)
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return "", err
	}
	path := filepath.Join(top, place)
	made := err == nil
	if memory {
		if made, err = mountMemory(path, sizeBytes); err != nil {
			return "", err
		}
	}
	if made {
		if err := root.Chmod(place, 0o777); err != nil { // whatever the umask
			return "", err
		}
	}
	if fsGroup != nil {
		if err := giveTo(ctx, root, place, *fsGroup); err != nil {
			return "", err
		}
	}
	return path, nil
}

// scratchOf is the place of all scratch of an identity, of all its lives.
func scratchOf(id spec.Identity) string {
	return filepath.Join(string(id.Namespace), id.MemberName())
}

// mountMemory mounts a tmpfs at path unless one is there, and tells whether it did.
func mountMemory(path string, sizeBytes int64) (bool, error) {
	there, err := mountsAt(path)
	if err != nil || len(there) > 0 {
		return false, err
	}
	options := "mode=0777"
	if sizeBytes > 0 {
		options += fmt.Sprintf(",size=%d", sizeBytes)
	}
	if err := unix.Mount("tmpfs", path, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, options); err != nil {
		return false, fmt.Errorf("mount tmpfs at %s: %w", path, err)
	}
	return true, nil
}

// RemoveScratch implements runtime.Volumes. It fails while something is in use (a
// shell that stands in it, say) and may be repeated.
func (v *Volumes) RemoveScratch(ctx context.Context, id spec.Identity) error {
	if err := checkIdentity(id); err != nil {
		return fmt.Errorf("remove scratch of %s: %w", id, err)
	}
	if err := v.removeSubPaths(id); err != nil { // first: they show what is in the others
		return fmt.Errorf("remove subPath mounts of %s: %w", id, err)
	}
	for _, top := range []string{v.memory, v.scratch} {
		if err := removeTree(ctx, top, scratchOf(id)); err != nil {
			return fmt.Errorf("remove scratch of %s: %w", id, err)
		}
	}
	return nil
}

// removeTree unmounts all at and below place, and deletes it once nothing is mounted
// there: a deletion must not reach into what is.
func removeTree(ctx context.Context, top, place string) error {
	if err := unmountAll(filepath.Join(top, place)); err != nil {
		return err
	}
	root, err := os.OpenRoot(top)
	if err != nil {
		return err
	}
	defer root.Close()
	return eraseTree(ctx, root, place)
}

// Clean implements runtime.Volumes, by the kernel's own list of mounts.
func (v *Volumes) Clean(_ context.Context, id spec.Identity) (bool, error) {
	if err := checkIdentity(id); err != nil {
		return false, fmt.Errorf("look for mounts of %s: %w", id, err)
	}
	for _, top := range []string{v.subpaths, v.memory, v.scratch} {
		there, err := mountsAt(filepath.Join(top, scratchOf(id)))
		if err != nil {
			return false, fmt.Errorf("look for mounts of %s: %w", id, err)
		}
		if len(there) > 0 {
			return false, nil
		}
	}
	return true, nil
}
