package volume

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/stead-project/stead/agent/runtime"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/spec/scalar"
)

// ClassNames are the storage classes of a node that declares these, ascending:
// spec.LocalClass is always one of them.
func ClassNames(declared map[string]string) []string {
	names := slices.AppendSeq([]string{spec.LocalClass}, maps.Keys(declared))
	slices.Sort(names)
	return slices.Compact(names)
}

// classes checks the declared classes and adds that in local, an existing path
// without symbolic links. No directory may hold another: the names in one would be
// taken for volumes of the other.
func classes(declared map[string]string, local string) (map[string]string, error) {
	all := map[string]string{spec.LocalClass: local}
	for name, dir := range declared {
		if !scalar.ValidSubdomain(name) {
			return nil, fmt.Errorf("invalid storage class name %q", name)
		}
		if !filepath.IsAbs(dir) {
			return nil, fmt.Errorf("storage class %s: %q must be an absolute path", name, dir)
		}
		dir = filepath.Clean(dir)
		if real, err := filepath.EvalSymlinks(dir); err == nil {
			dir = real
		} else if !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("storage class %s: %w", name, err)
		}
		all[name] = dir
	}
	names := slices.Sorted(maps.Keys(all))
	for i, a := range names {
		for _, b := range names[i+1:] {
			if inside(all[a], all[b]) || inside(all[b], all[a]) {
				return nil, fmt.Errorf("storage classes %s (%s) and %s (%s): one must not be inside the other", a, all[a], b, all[b])
			}
		}
	}
	return all, nil
}

// inside reports whether path is dir or below it.
func inside(path, dir string) bool {
	return path == dir || strings.HasPrefix(path, strings.TrimSuffix(dir, "/")+"/")
}

// open opens the directory of a storage class, if it lies on the disk of that; the caller
// closes it.
func (d *disks) open(class string) (*os.Root, error) {
	dir, known := d.classes[class]
	if !known {
		return nil, fmt.Errorf("%w: this node has no storage class %q, only %s; declare it with --storage-class",
			runtime.ErrNotFound, class, strings.Join(slices.Sorted(maps.Keys(d.classes)), ", "))
	}
	root, err := os.OpenRoot(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w: the directory %s of storage class %s is not there; is its filesystem mounted?",
			runtime.ErrNotFound, dir, class)
	}
	if err != nil {
		return nil, err
	}
	if err := d.checkDisk(class, root); err != nil {
		return nil, errors.Join(err, root.Close())
	}
	return root, nil
}
