package containerdrt

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/containerd/containerd/v2/core/mount"
	"github.com/containerd/containerd/v2/pkg/oci"
	rootfs "github.com/containerd/continuity/fs"
	accounts "github.com/moby/sys/user"
	specs "github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"

	"github.com/stead-project/stead/agent/runtime"
)

// rootsDir is where root filesystems are mounted while they are looked into. In the run
// directory, so that what a crash left is known to be ours.
func (r *daemon) rootsDir() string { return filepath.Join(r.cfg.RunDir, "roots") }

// lookInto mounts a container's root filesystem read-only while f looks into it.
func (r *lifecycle) lookInto(id string, mounts []mount.Mount, f func(root string) error) (err error) {
	root := filepath.Join(r.rootsDir(), id)
	if err := dropRoot(root); err != nil { // of a create that a crash cut short
		return fmt.Errorf("root filesystem: %w", err)
	}
	if err := os.MkdirAll(root, 0o700); err != nil {
		return fmt.Errorf("root filesystem: %w", err)
	}
	defer func() { err = errors.Join(err, dropRoot(root)) }()
	if err := mount.All(readOnly(mounts), root); err != nil {
		return fmt.Errorf("root filesystem: %w", err)
	}
	return f(root)
}

// readOnly also lets the kernel unmount without writing back a whole filesystem first.
func readOnly(mounts []mount.Mount) []mount.Mount {
	mounts = slices.Clone(mount.RemoveVolatileOption(mounts))
	for i, m := range mounts {
		rest := slices.DeleteFunc(slices.Clone(m.Options), func(o string) bool { return o == "rw" || o == "ro" })
		mounts[i].Options = append(rest, "ro", "nodev", "nosuid")
	}
	return mounts
}

// dropRoot unmounts and removes a place where a root filesystem was looked into. It
// removes the directory only when it is empty: what is mounted in it is a member's.
func dropRoot(root string) error {
	if err := mount.UnmountAll(root, unix.MNT_DETACH|unix.UMOUNT_NOFOLLOW); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("unmount %s: %w", root, err)
	}
	if err := os.Remove(root); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// purgeRoots clears away what creates left that were cut short.
func (r *Runtime) purgeRoots() error {
	found, err := os.ReadDir(r.rootsDir())
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	errs := []error{err}
	for _, e := range found {
		errs = append(errs, dropRoot(filepath.Join(r.rootsDir(), e.Name())))
	}
	return errors.Join(append(errs, os.Remove(r.rootsDir()))...)
}

// maxAccountsBytes bounds each of an image's two files of accounts.
const maxAccountsBytes = 1 << 20

// user resolves who runs, from the files in the root filesystem.
func user(c runtime.Container, image, root string) (specs.User, error) {
	name := image
	if c.User != nil {
		name = strconv.FormatInt(*c.User, 10)
	}
	var passwd, group []byte
	for file, into := range map[string]*[]byte{"/etc/passwd": &passwd, "/etc/group": &group} {
		text, err := readAccounts(root, file)
		if err != nil {
			return specs.User{}, fmt.Errorf("image %s: %w", c.Image, err)
		}
		*into = text
	}
	u, err := account(name, passwd, group)
	if err != nil {
		return u, fmt.Errorf("no user %q in image %s: %w: %w", name, c.Image, runtime.ErrBadSpec, err)
	}
	if c.NonRoot && u.UID == 0 {
		return u, fmt.Errorf("runAsNonRoot, but image %s runs as root; write runAsUser: %w", c.Image, runtime.ErrBadSpec)
	}
	if c.Group != nil {
		u.GID = uint32(*c.Group)
	}
	if c.StrictGroups {
		u.AdditionalGids = nil
	}
	u.AdditionalGids = append(u.AdditionalGids, u.GID)
	for _, g := range c.SupplementalGroups {
		u.AdditionalGids = append(u.AdditionalGids, uint32(g))
	}
	slices.Sort(u.AdditionalGids)
	u.AdditionalGids = slices.Compact(u.AdditionalGids)
	return u, nil
}

// account finds a user, uid, user:group or any mixture of both ("": root) and the groups
// that list the user's name. A number needs no line.
func account(name string, passwd, group []byte) (specs.User, error) {
	if name == "" {
		name = "0:0"
	}
	found, err := accounts.GetExecUser(name, nil, bytes.NewReader(passwd), bytes.NewReader(group))
	if err != nil {
		return specs.User{}, err
	}
	u := specs.User{UID: uint32(found.Uid), GID: uint32(found.Gid)}
	users, err := accounts.ParsePasswdFilter(bytes.NewReader(passwd), func(a accounts.User) bool { return a.Uid == found.Uid })
	if err != nil || len(users) == 0 {
		return u, err
	}
	groups, err := accounts.ParseGroupFilter(bytes.NewReader(group), func(g accounts.Group) bool {
		return g.Name != users[0].Name && slices.Contains(g.List, users[0].Name)
	})
	for _, g := range groups {
		u.AdditionalGids = append(u.AdditionalGids, uint32(g.Gid))
	}
	return u, err
}

// readAccounts reads a file of an image, links followed inside of it; none is an empty
// one. Whoever built the image may have put anything there: to open a named pipe would
// wait for good, and to open a device would do what the device does.
func readAccounts(root, name string) ([]byte, error) {
	path, err := rootfs.RootPath(root, name)
	if err != nil {
		return nil, fmt.Errorf("%s: %w: %w", name, runtime.ErrBadSpec, err)
	}
	inside, err := os.OpenRoot(root)
	if err != nil {
		return nil, err
	}
	defer inside.Close()
	rel, err := filepath.Rel(root, path)
	if err != nil {
		return nil, err
	}
	st, err := inside.Lstat(rel)
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, unix.ENOTDIR):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("%s: %w", name, err)
	case !st.Mode().IsRegular():
		return nil, fmt.Errorf("%s is not a regular file (%s); build the image with one: %w", name, st.Mode().Type(), runtime.ErrBadSpec)
	case st.Size() > maxAccountsBytes:
		return nil, fmt.Errorf("%s has %d bytes, more than %d: %w", name, st.Size(), maxAccountsBytes, runtime.ErrBadSpec)
	}
	f, err := inside.OpenFile(rel, os.O_RDONLY|unix.O_NONBLOCK|unix.O_NOFOLLOW, 0)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, maxAccountsBytes))
}

// checkCommand looks for the program before anything is started, so that the user
// reads what is wrong and not what runc says. What may lie below a mount is left
// to runc.
func checkCommand(s *oci.Spec, c runtime.Container, root string) error {
	name := s.Process.Args[0]
	var places []string
	switch {
	case filepath.IsAbs(name):
		places = []string{name}
	case strings.Contains(name, "/"):
		places = []string{filepath.Join(s.Process.Cwd, name)}
	default:
		for _, dir := range filepath.SplitList(lookupPath(s.Process.Env)) {
			places = append(places, filepath.Join("/", dir, name))
		}
	}
	problem := "not found"
	for _, place := range places {
		if mounted(c.Mounts, place) {
			return nil
		}
		path, err := rootfs.RootPath(root, place)
		if err != nil {
			continue
		}
		st, err := os.Stat(path)
		switch {
		case err != nil:
		case st.IsDir():
			problem = "is a directory"
		case st.Mode()&0o111 == 0:
			problem = "is not executable"
		default:
			return nil
		}
	}
	if problem == "not found" {
		return fmt.Errorf("command %q not found in image %s: %w", name, c.Image, runtime.ErrBadSpec)
	}
	return fmt.Errorf("command %q in image %s %s: %w", name, c.Image, problem, runtime.ErrBadSpec)
}

func lookupPath(env []string) string {
	for _, e := range env {
		if v, ok := strings.CutPrefix(e, "PATH="); ok {
			return v
		}
	}
	return ""
}

// mounted reports whether a path lies at or below a mount of the container.
func mounted(mounts []runtime.Mount, path string) bool {
	for _, m := range mounts {
		if t := filepath.Clean(m.Target); path == t || t == "/" || strings.HasPrefix(path, t+"/") {
			return true
		}
	}
	return false
}
