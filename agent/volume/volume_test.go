package volume

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"syscall"
	"testing"

	"github.com/stead-project/stead/agent/runtime"
	"github.com/stead-project/stead/spec"
)

var (
	db0  = spec.Identity{Namespace: "default", Set: "db", Ordinal: 0}
	data = spec.MemberVolume{Claim: "data", ID: "0123456789abcdef0123456789abcdef", Number: 1, Class: "local"}
)

func begin(t *testing.T) *Volumes {
	t.Helper()
	return at(t, t.TempDir(), "cluster-1")
}

func at(t *testing.T, dir, cluster string) *Volumes {
	t.Helper()
	v, err := New(Config{Root: filepath.Join(dir, "root"), RunDir: filepath.Join(dir, "run"), ClusterID: cluster})
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func ensure(t *testing.T, v *Volumes, fresh bool) string {
	t.Helper()
	path, err := v.Ensure(t.Context(), db0, data, fresh, nil)
	if err != nil {
		t.Fatal(err)
	}
	return path
}

func write(t *testing.T, path string) {
	t.Helper()
	if err := os.WriteFile(path, []byte("precious"), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestAVolumeIsMadeOnceAndFoundAgain(t *testing.T) {
	dir := t.TempDir()
	path := ensure(t, at(t, dir, "cluster-1"), true)
	if want := "/root/volumes/default/db/data-0/data"; !strings.HasSuffix(path, want) {
		t.Errorf("it is at %s, want …%s", path, want)
	}
	if found, err := os.ReadDir(path); err != nil || len(found) != 0 {
		t.Errorf("a new volume holds %v, error %v", found, err)
	}
	if found, err := os.Stat(path); err != nil || found.Mode() != fs.ModeDir|0o755 {
		t.Errorf("mode %v, error %v", found.Mode(), err)
	}
	write(t, filepath.Join(path, "file"))
	for _, fresh := range []bool{true, false} { // of another agent, also when it never became ready
		if again := ensure(t, at(t, dir, "cluster-1"), fresh); again != path {
			t.Errorf("found again at %s, want %s", again, path)
		}
		if got, err := os.ReadFile(filepath.Join(path, "file")); err != nil || string(got) != "precious" {
			t.Errorf("the file is %q, error %v", got, err)
		}
	}
}

func TestAUsedVolumeThatIsGoneIsNotMadeAnew(t *testing.T) {
	for name, lose := range map[string]func(v *Volumes) string{
		"never seen on this host": func(v *Volumes) string { return "" },
		"all of it gone":          func(v *Volumes) string { return v.volumes },
		"its place gone":          func(v *Volumes) string { return filepath.Join(v.volumes, "default/db/data-0") },
		"its data gone":           func(v *Volumes) string { return filepath.Join(v.volumes, "default/db/data-0/data") },
	} {
		t.Run(name, func(t *testing.T) {
			v := begin(t)
			if lost := lose(v); lost != "" {
				ensure(t, v, true)
				if err := os.RemoveAll(lost); err != nil {
					t.Fatal(err)
				}
				if err := os.MkdirAll(v.volumes, 0o700); err != nil {
					t.Fatal(err)
				}
			}
			_, err := v.Ensure(t.Context(), db0, data, false, nil)
			if !errors.Is(err, runtime.ErrNotFound) {
				t.Errorf("got %v, want %v", err, runtime.ErrNotFound)
			}
			if _, err := os.Stat(filepath.Join(v.volumes, "default/db/data-0/data")); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("a directory was made: %v", err)
			}
		})
	}
}

func TestAVolumeOfAnotherOwnerIsRefusedAndUntouched(t *testing.T) {
	dir := t.TempDir()
	v := at(t, dir, "cluster-1")
	path := ensure(t, v, true)
	write(t, filepath.Join(path, "file"))
	other := data
	other.ID = "ffffffffffffffffffffffffffffffff"
	for name, c := range map[string]struct {
		v   *Volumes
		vol spec.MemberVolume
	}{
		"another cluster": {at(t, dir, "cluster-2"), data},
		"another volume":  {v, other},
	} {
		for _, fresh := range []bool{true, false} {
			_, err := c.v.Ensure(t.Context(), db0, c.vol, fresh, nil)
			if !errors.Is(err, runtime.ErrForeign) {
				t.Errorf("%s: got %v, want %v", name, err, runtime.ErrForeign)
				continue
			}
			for _, word := range []string{filepath.Dir(path), string(data.ID), "cluster-1", string(c.vol.ID), "move"} {
				if !strings.Contains(err.Error(), word) {
					t.Errorf("%s: %q does not say %q", name, err, word)
				}
			}
		}
	}
	// A directory that was copied or renamed to another identity's place.
	db1 := spec.Identity{Namespace: "default", Set: "db", Ordinal: 1}
	if err := os.Rename(filepath.Dir(path), filepath.Join(filepath.Dir(filepath.Dir(path)), "data-1")); err != nil {
		t.Fatal(err)
	}
	if _, err := v.Ensure(t.Context(), db1, data, false, nil); !errors.Is(err, runtime.ErrForeign) {
		t.Errorf("another identity: got %v, want %v", err, runtime.ErrForeign)
	}
}

func TestDataWithoutAnOwnerFileIsRefused(t *testing.T) {
	for _, fresh := range []bool{true, false} {
		v := begin(t)
		path := ensure(t, v, true)
		write(t, filepath.Join(path, "file"))
		if err := os.Remove(filepath.Join(filepath.Dir(path), ownerFile)); err != nil {
			t.Fatal(err)
		}
		if _, err := v.Ensure(t.Context(), db0, data, fresh, nil); !errors.Is(err, runtime.ErrExists) {
			t.Errorf("fresh %v: got %v, want %v", fresh, err, runtime.ErrExists)
		}
		if _, err := os.Stat(filepath.Join(path, "file")); err != nil {
			t.Error(err)
		}
	}
}

func TestABrokenOwnerFileIsRefused(t *testing.T) {
	v := begin(t)
	path := ensure(t, v, true)
	write(t, filepath.Join(filepath.Dir(path), ownerFile))
	if _, err := v.Ensure(t.Context(), db0, data, true, nil); !errors.Is(err, runtime.ErrForeign) {
		t.Errorf("got %v, want %v", err, runtime.ErrForeign)
	}
}

// Every state that a crash can leave while a new volume is made is finished later.
func TestACrashWhileItIsMadeIsFinishedLater(t *testing.T) {
	for name, undo := range map[string]func(place string) error{
		"only directories": func(place string) error {
			return errors.Join(os.Remove(place+"/data"), os.Remove(place+"/owner.json"))
		},
		"an unfinished owner file": func(place string) error {
			return errors.Join(os.Remove(place+"/data"), os.Rename(place+"/owner.json", place+"/owner.json.new"))
		},
		"no data": func(place string) error { return os.Remove(place + "/data") },
	} {
		t.Run(name, func(t *testing.T) {
			v := begin(t)
			path := ensure(t, v, true)
			if err := undo(filepath.Dir(path)); err != nil {
				t.Fatal(err)
			}
			if again := ensure(t, v, true); again != path {
				t.Errorf("made at %s, want %s", again, path)
			}
			ensure(t, v, false)
		})
	}
}

func TestNamesThatAreNoPathElementsAreRefused(t *testing.T) {
	v := begin(t)
	for _, id := range []spec.Identity{
		{Namespace: "..", Set: "db"}, {Namespace: "a/b", Set: "db"}, {Namespace: "", Set: "db"},
		{Namespace: "default", Set: "."}, {Namespace: "default", Set: "db", Ordinal: -1},
	} {
		if _, err := v.Ensure(t.Context(), id, data, true, nil); err == nil {
			t.Errorf("volume of %v was made", id)
		}
		if _, err := v.Scratch(t.Context(), id, spec.Token{Number: 1}, "tmp", false, 0, nil); err == nil {
			t.Errorf("scratch of %v was made", id)
		}
		if err := v.RemoveScratch(t.Context(), id); err == nil {
			t.Errorf("scratch of %v was removed", id)
		}
	}
	if _, err := v.Ensure(t.Context(), db0, spec.MemberVolume{Claim: "../x", ID: "1"}, true, nil); err == nil {
		t.Error("claim ../x was made")
	}
}

// group is one that this process may give files to and that is not its first, if
// there is one.
func group(t *testing.T) int64 {
	t.Helper()
	if os.Geteuid() == 0 {
		return 4711
	}
	groups, err := os.Getgroups()
	if err != nil {
		t.Fatal(err)
	}
	for _, g := range groups {
		if g != os.Getegid() {
			return int64(g)
		}
	}
	return int64(os.Getegid())
}

func stat(t *testing.T, path string) (int64, fs.FileMode) {
	t.Helper()
	found, err := os.Lstat(path)
	if err != nil {
		t.Fatal(err)
	}
	return int64(found.Sys().(*syscall.Stat_t).Gid), found.Mode() & (fs.ModePerm | fs.ModeSetgid)
}

func TestFSGroupIsGivenTheTreeAndLeavesLinksAlone(t *testing.T) {
	v := begin(t)
	path := ensure(t, v, true)
	outside := filepath.Join(t.TempDir(), "outside")
	write(t, outside)
	outsideGroup, outsideMode := stat(t, outside)
	if err := os.Mkdir(filepath.Join(path, "sub"), 0o700); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(path, "sub", "file"))
	if err := os.Mkdir(filepath.Join(path, "no\xfftext"), 0o700); err != nil {
		t.Fatal(err)
	}
	for link, to := range map[string]string{"out": outside, "sub/up": "../../../../../../..", "loop": "loop"} {
		if err := os.Symlink(to, filepath.Join(path, link)); err != nil {
			t.Fatal(err)
		}
	}
	g := group(t)
	if _, err := v.Ensure(t.Context(), db0, data, false, &g); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]fs.FileMode{"": 0o775 | fs.ModeSetgid, "sub": 0o770 | fs.ModeSetgid, "no\xfftext": 0o770 | fs.ModeSetgid, "sub/file": 0o660} {
		if gotGroup, gotMode := stat(t, filepath.Join(path, name)); gotGroup != g || gotMode != want {
			t.Errorf("%q has group %d mode %v, want %d %v", name, gotGroup, gotMode, g, want)
		}
	}
	if gotGroup, gotMode := stat(t, outside); gotGroup != outsideGroup || gotMode != outsideMode {
		t.Errorf("a link led outside: group %d mode %v", gotGroup, gotMode)
	}
	// The root matches now: what is below is left as it is.
	if err := os.Chmod(filepath.Join(path, "sub", "file"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := v.Ensure(t.Context(), db0, data, false, &g); err != nil {
		t.Fatal(err)
	}
	if _, got := stat(t, filepath.Join(path, "sub", "file")); got != 0o600 {
		t.Errorf("the tree was changed again: mode %v", got)
	}
}

func TestScratchIsOfOneLifeAndGoes(t *testing.T) {
	v := begin(t)
	one, two := spec.Token{Epoch: 1, Number: 7}, spec.Token{Epoch: 1, Number: 9}
	first, err := v.Scratch(t.Context(), db0, one, "tmp", false, 0, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, mode := stat(t, first); mode != 0o777 {
		t.Errorf("mode %v, want 0777", mode)
	}
	write(t, filepath.Join(first, "file"))
	if again, err := v.Scratch(t.Context(), db0, one, "tmp", false, 0, nil); err != nil || again != first {
		t.Errorf("again: %s, error %v", again, err)
	}
	if _, err := os.Stat(filepath.Join(first, "file")); err != nil {
		t.Errorf("the same life lost its file: %v", err)
	}
	second, err := v.Scratch(t.Context(), db0, two, "tmp", false, 0, nil)
	if err != nil || second == first {
		t.Fatalf("the next life got %s, error %v", second, err)
	}
	if found, err := os.ReadDir(second); err != nil || len(found) != 0 {
		t.Errorf("the next life's holds %v, error %v", found, err)
	}
	outside := t.TempDir()
	write(t, filepath.Join(outside, "file"))
	if err := os.Symlink(outside, filepath.Join(second, "link")); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := v.RemoveScratch(t.Context(), db0); err != nil {
			t.Fatal(err)
		}
	}
	for _, path := range []string{first, second} {
		if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s is left: %v", path, err)
		}
	}
	if _, err := os.Stat(filepath.Join(outside, "file")); err != nil {
		t.Errorf("the removal followed a link: %v", err)
	}
	if clean, err := v.Clean(t.Context(), db0); err != nil || !clean {
		t.Errorf("clean: %v, error %v", clean, err)
	}
}

func TestParseMounts(t *testing.T) {
	table := `25 30 0:23 / /sys rw,nosuid shared:7 - sysfs sysfs rw
60 30 0:50 / /run/a rw - tmpfs tmpfs rw
61 60 0:51 / /run/a/b\040c rw - tmpfs tmpfs rw
62 60 0:52 / /run/a/b\040c rw - tmpfs tmpfs rw
63 30 0:53 / /run/ab rw - tmpfs tmpfs rw
`
	got, err := parseMounts(table, "/run/a")
	if want := []string{"/run/a/b c", "/run/a/b c", "/run/a"}; err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %q, error %v, want %q", got, err, want)
	}
	if _, err := parseMounts("what is this\n", "/"); err == nil {
		t.Error("an unknown table was read as one without mounts")
	}
}
