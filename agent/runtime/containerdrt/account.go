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

	rootfs "github.com/containerd/continuity/fs"
	accounts "github.com/moby/sys/user"
	specs "github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"

	"github.com/stead-project/stead/agent/runtime"
)

// maxAccountsBytes bounds each of an image's two files of accounts.
const maxAccountsBytes = 1 << 20

// user resolves who runs, from the files in the root filesystem.
func user(c runtime.Container, image, root string) (specs.User, error) {
	name := image
	if c.User != nil {
		name = strconv.FormatInt(*c.User, 10)
	}
	passwd, err := readAccounts(root, "/etc/passwd")
	if err != nil {
		return specs.User{}, fmt.Errorf("image %s: %w", c.Image, err)
	}
	group, err := readAccounts(root, "/etc/group")
	if err != nil {
		return specs.User{}, fmt.Errorf("image %s: %w", c.Image, err)
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
