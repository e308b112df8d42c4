package volume

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/stead-project/stead/agent/runtime"
	"github.com/stead-project/stead/internal/deeptree"
	"github.com/stead-project/stead/internal/wrap"
	"github.com/stead-project/stead/spec"
)

// scratchDirs holds what belongs to lives and ends with them.
type scratchDirs struct {
	scratch  string // <root>/scratch
	memory   string // <run>/scratch
	subpaths string // <run>/subpath
	images   string // <run>/images
}

// Scratch implements runtime.Volumes: an emptyDir, mode 0777 as in Kubernetes. In
// memory it is a tmpfs, or a hugetlbfs, of its own (nosuid, nodev).
func (d scratchDirs) Scratch(ctx context.Context, s runtime.Scratch) (path string, err error) {
	defer wrap.Error(&err, "make scratch %s of %s", s.Name, s.ID)
	if err := checkIdentity(s.ID, s.Name); err != nil {
		return "", err
	}
	if s.Token.IsZero() {
		return "", errors.New("the life has no token")
	}
	top := d.scratch
	if s.Memory || s.HugePage > 0 {
		top = d.memory
	}
	root, err := os.OpenRoot(top)
	if err != nil {
		return "", err
	}
	defer root.Close()
	life := filepath.Join(scratchOf(s.ID), s.Token.String())
	if err := root.MkdirAll(life, 0o700); err != nil {
		return "", err
	}
	place := filepath.Join(life, s.Name)
	err = root.Mkdir(place, 0o777)
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return "", err
	}
	path = filepath.Join(top, place)
	made := err == nil
	if s.Memory || s.HugePage > 0 {
		made, err = mountMemory(path, s.SizeBytes, s.HugePage)
		if err != nil {
			return "", err
		}
	}
	if made {
		if err := root.Chmod(place, 0o777); err != nil { // whatever the umask
			return "", err
		}
	}
	if s.FSGroup != nil {
		if err := giveTo(ctx, root, place, runtime.Group{ID: *s.FSGroup}); err != nil {
			return "", err
		}
	}
	return path, nil
}

// scratchOf is the place of all scratch of an identity, of all its lives.
func scratchOf(id spec.Identity) string {
	return filepath.Join(string(id.Namespace), id.MemberName())
}

// mountMemory mounts a tmpfs, or a hugetlbfs with pages of that size, at path unless one is there, and reports
// whether it did.
func mountMemory(path string, sizeBytes, hugePage int64) (bool, error) {
	there, err := mountsAt(path)
	if err != nil || len(there) > 0 {
		return false, err
	}
	options := "mode=0777"
	if sizeBytes > 0 {
		options += fmt.Sprintf(",size=%d", sizeBytes)
	}
	kind := "tmpfs"
	if hugePage > 0 {
		kind, options = "hugetlbfs", options+fmt.Sprintf(",pagesize=%d", hugePage)
	}
	if err := unix.Mount(kind, path, kind, unix.MS_NOSUID|unix.MS_NODEV, options); err != nil {
		return false, fmt.Errorf("mount %s at %s: %w", kind, path, err)
	}
	return true, nil
}

// RemoveScratch implements runtime.Volumes. It fails while something is in use (a
// shell whose directory it is, say) and may be repeated.
func (d scratchDirs) RemoveScratch(ctx context.Context, id spec.Identity) (err error) {
	defer wrap.Error(&err, "remove scratch of %s", id)
	if err := checkIdentity(id); err != nil {
		return err
	}
	if err := removeMounts(d.subpaths, scratchOf(id)); err != nil { // first: they show what is in the others
		return fmt.Errorf("subPath mounts: %w", err)
	}
	if err := removeMounts(d.images, scratchOf(id)); err != nil { // before Stopped: nothing of it is mounted then
		return fmt.Errorf("mounts of volumes: %w", err)
	}
	for _, top := range []string{d.memory, d.scratch} {
		if err := removeTree(ctx, top, scratchOf(id)); err != nil {
			return err
		}
	}
	return nil
}

// removeTree unmounts all at and below place, and deletes it once nothing is mounted
// there: a deletion must not reach into what is.
func removeTree(ctx context.Context, top, place string) error {
	if err := UnmountAll(filepath.Join(top, place)); err != nil {
		return err
	}
	root, err := os.OpenRoot(top)
	if err != nil {
		return err
	}
	defer root.Close()
	return deeptree.Erase(ctx, root, place)
}

// Clean implements runtime.Volumes, by the kernel's own list of mounts.
func (d scratchDirs) Clean(_ context.Context, id spec.Identity) (_ bool, err error) {
	defer wrap.Error(&err, "look for mounts of %s", id)
	if err := checkIdentity(id); err != nil {
		return false, err
	}
	for _, top := range []string{d.subpaths, d.images, d.memory, d.scratch} {
		there, err := mountsAt(filepath.Join(top, scratchOf(id)))
		if err != nil || len(there) > 0 {
			return false, err
		}
	}
	return true, nil
}

// mountsAt lists the mount points at path and below it, innermost first. A path
// under which more than one is stacked is listed as often. Where nothing is, nothing
// is mounted: the table is long where many members are.
func mountsAt(path string) ([]string, error) {
	if _, err := os.Lstat(path); errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	table, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, fmt.Errorf("read mounts: %w", err)
	}
	return parseMounts(string(table), path)
}

// UnmountAll unmounts all at path and below it, and returns when nothing is mounted there.
func UnmountAll(path string) error {
	for {
		there, err := mountsAt(path)
		if len(there) == 0 {
			return err
		}
		for _, at := range there {
			if err := unix.Unmount(at, unix.UMOUNT_NOFOLLOW); err != nil {
				return fmt.Errorf("unmount %s: %w", at, err)
			}
		}
	}
}

// parseMounts lists the mount points at path and below it of a mountinfo table.
func parseMounts(table, path string) ([]string, error) {
	var found []string
	for line := range strings.Lines(table) {
		m, err := parseMount(line)
		if err != nil {
			return nil, fmt.Errorf("read mounts: %w", err)
		}
		if inside(m.point, path) {
			found = append(found, m.point)
		}
	}
	slices.Reverse(found) // the table is in the order of mounting
	return found, nil
}

// mount is what a line of a mountinfo table says.
type mount struct{ point, kind, source string }

func parseMount(line string) (mount, error) {
	before, after, _ := strings.Cut(line, " - ")
	fields := strings.Fields(before)
	if len(fields) < 6 {
		return mount{}, fmt.Errorf("unknown line %q", line)
	}
	kind, rest, _ := strings.Cut(after, " ")
	source, _, _ := strings.Cut(rest, " ") // it may be empty
	return mount{unescaped.Replace(fields[4]), kind, unescaped.Replace(source)}, nil
}

// unescaped undoes what the kernel writes in place of what would end a field.
var unescaped = strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\043`, "#", `\134`, `\`)

// onMount says in a few words where path is mounted, for messages; "" when that cannot
// be seen.
func onMount(path string) string {
	table, _ := os.ReadFile("/proc/self/mountinfo")
	return mountAbove(string(table), path)
}

// mountAbove says what is mounted at the path or nearest above it, and on top there.
func mountAbove(table, path string) string {
	at, says := "", ""
	for line := range strings.Lines(table) {
		m, err := parseMount(line)
		if err == nil && inside(path, m.point) && len(m.point) >= len(at) {
			at, says = m.point, fmt.Sprintf(" (%s %s, mounted at %s)", m.kind, m.source, m.point)
		}
	}
	return says
}
