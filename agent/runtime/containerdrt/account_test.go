package containerdrt

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	specs "github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"

	"github.com/stead-project/stead/agent/runtime"
)

const (
	passwdFile = "root:x:0:0:root:/:/sh\napp:x:1000:1001::/:/sh\nlone:x:7:7::/:/sh\n"
	groupFile  = "root:x:0:\napp:x:1001:app\nextra:x:2000:app,other\nmore:x:2001:root,app\n"
)

func TestUsersAreFoundAsInDocker(t *testing.T) {
	for _, c := range []struct {
		name string
		want specs.User
	}{
		{"", specs.User{AdditionalGids: []uint32{2001}}},
		{"root", specs.User{AdditionalGids: []uint32{2001}}},
		{"app", specs.User{UID: 1000, GID: 1001, AdditionalGids: []uint32{2000, 2001}}},
		{"1000", specs.User{UID: 1000, GID: 1001, AdditionalGids: []uint32{2000, 2001}}},
		{"app:extra", specs.User{UID: 1000, GID: 2000, AdditionalGids: []uint32{2000, 2001}}},
		{"app:55", specs.User{UID: 1000, GID: 55, AdditionalGids: []uint32{2000, 2001}}},
		{"7:extra", specs.User{UID: 7, GID: 2000}},
		{"44", specs.User{UID: 44}},
		{"44:45", specs.User{UID: 44, GID: 45}},
	} {
		got, err := account(c.name, []byte(passwdFile), []byte(groupFile))
		if err != nil || !reflect.DeepEqual(got, c.want) {
			t.Errorf("%q: got %+v, %v; want %+v", c.name, got, err, c.want)
		}
	}
	for _, bad := range []string{"nobody", "app:nobody", "-1", "4294967296", "0:-1"} {
		if got, err := account(bad, []byte(passwdFile), []byte(groupFile)); err == nil {
			t.Errorf("%q: got %+v, want an error", bad, got)
		}
	}
	if got, err := account("44", nil, nil); err != nil || got.UID != 44 {
		t.Errorf("a number in an image without accounts: %+v, %v", got, err)
	}
}

func TestWhatAnImageHasInPlaceOfItsAccountsHarmsNobody(t *testing.T) {
	for _, c := range []struct {
		name string
		make func(root, path string) error
		want string // "": it is read as far as it is there
	}{
		{"a file", func(_, path string) error { return os.WriteFile(path, []byte(passwdFile), 0o644) }, ""},
		{"nothing", func(_, path string) error { return nil }, ""},
		{"no directory either", func(_, path string) error { return os.Remove(filepath.Dir(path)) }, ""},
		{"a link within", func(root, path string) error {
			return errors.Join(os.WriteFile(filepath.Join(root, "there"), []byte(passwdFile), 0o644), os.Symlink("/there", path))
		}, ""},
		{"a link that leads out", func(_, path string) error { return os.Symlink("../../../../../../../etc/hostname", path) }, ""},
		{"a link to itself", func(_, path string) error { return os.Symlink("passwd", path) }, "/etc/passwd"},
		{"a named pipe", func(_, path string) error { return unix.Mkfifo(path, 0o644) }, "not a regular file"},
		{"a link to a named pipe", func(root, path string) error {
			return errors.Join(unix.Mkfifo(filepath.Join(root, "pipe"), 0o644), os.Symlink("../pipe", path))
		}, "not a regular file"},
		{"a directory", func(_, path string) error { return os.Mkdir(path, 0o755) }, "not a regular file"},
		{"a socket", func(_, path string) error { return unix.Mknod(path, unix.S_IFSOCK|0o644, 0) }, "not a regular file"},
		{"a file without an end", func(_, path string) error {
			return errors.Join(os.WriteFile(path, nil, 0o644), os.Truncate(path, 1<<40))
		}, "more than 1048576"},
	} {
		t.Run(c.name, func(t *testing.T) {
			root := t.TempDir()
			path := filepath.Join(root, "etc/passwd")
			if err := errors.Join(os.Mkdir(filepath.Dir(path), 0o755), c.make(root, path)); err != nil {
				t.Fatal(err)
			}
			done := make(chan error, 1)
			go func() {
				_, err := user(runtime.Container{Image: "box:1"}, "0", root)
				done <- err
			}()
			select {
			case err := <-done:
				if c.want == "" && err != nil {
					t.Errorf("got %v, want it read", err)
				}
				if c.want != "" && (!errors.Is(err, runtime.ErrBadSpec) || !strings.Contains(err.Error(), c.want)) {
					t.Errorf("got %v, want a bad spec: %s", err, c.want)
				}
			case <-time.After(time.Minute):
				t.Error("it blocks")
			}
		})
	}
}
