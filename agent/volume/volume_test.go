package volume

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/stead-project/stead/agent/runtime"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
)

var (
	db0  = spec.Identity{Namespace: "default", Set: "db", Ordinal: 0}
	data = records.MemberVolume{Claim: "data", ID: "0123456789abcdef0123456789abcdef", Number: 1, Class: "local"}
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
	if !filepath.IsAbs(path) { // below a volume that was not handed out
		t.Fatalf("%s is nowhere", path)
	}
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

func TestWhoMayEnterHangsOnNoUmask(t *testing.T) {
	before := unix.Umask(0o077)
	t.Cleanup(func() { unix.Umask(before) })
	v := begin(t)
	if _, mode := stat(t, ensure(t, v, true)); mode != 0o755 {
		t.Errorf("a volume has mode %v", mode)
	}
	scratch, err := v.Scratch(t.Context(), runtime.Scratch{ID: db0, Token: spec.Token{Number: 1}, Name: "tmp"})
	if err != nil {
		t.Fatal(err)
	}
	if _, mode := stat(t, scratch); mode != 0o777 {
		t.Errorf("scratch has mode %v", mode)
	}
}

func TestAUsedVolumeThatIsGoneIsNotMadeAnew(t *testing.T) {
	for name, lose := range map[string]func(v *Volumes) string{
		"never seen on this host": func(v *Volumes) string { return "" },
		"all of it gone":          func(v *Volumes) string { return filepath.Join(v.classes["local"], "default") },
		"its place gone":          func(v *Volumes) string { return filepath.Join(v.classes["local"], "default/db/data-0") },
		"its data gone":           func(v *Volumes) string { return filepath.Join(v.classes["local"], "default/db/data-0/data") },
	} {
		t.Run(name, func(t *testing.T) {
			v := begin(t)
			if lost := lose(v); lost != "" {
				ensure(t, v, true)
				if err := os.RemoveAll(lost); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := v.Trash(t.Context()); err != nil { // marks the disk
				t.Fatal(err)
			}
			before := below(t, v.classes["local"])
			_, err := v.Ensure(t.Context(), db0, data, false, nil)
			if !errors.Is(err, runtime.ErrAbsent) {
				t.Errorf("got %v, want %v", err, runtime.ErrAbsent)
			}
			if after := below(t, v.classes["local"]); !slices.Equal(after, before) {
				t.Errorf("there is %v where there was %v", after, before)
			}
		})
	}
}

// below are the paths of all that is in dir.
func below(t *testing.T, dir string) (paths []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		paths = append(paths, path)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return paths
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
		vol records.MemberVolume
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

// A directory of data was there, or nothing is handed out: no file, and no link that leads
// elsewhere.
func TestDataThatAreNoDirectoryAreRefused(t *testing.T) {
	for name, make := range map[string]func(path, outside string) error{
		"a file": func(path, outside string) error { return os.Rename(filepath.Join(outside, "file"), path) },
		"a link": func(path, outside string) error { return os.Symlink(outside, path) },
	} {
		for _, fresh := range []bool{true, false} {
			v, outside := begin(t), t.TempDir()
			path := ensure(t, v, true)
			forget(t, v)
			write(t, filepath.Join(outside, "file"))
			if err := errors.Join(os.Remove(path), make(path, outside)); err != nil {
				t.Fatal(err)
			}
			if got, err := v.Ensure(t.Context(), db0, data, fresh, nil); got != "" || !errors.Is(err, runtime.ErrExists) {
				t.Errorf("%s, fresh %v: got %q, %v, want %v", name, fresh, got, err, runtime.ErrExists)
			}
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
			forget(t, v) // the crash came before it was noted
			if again := ensure(t, v, true); again != path {
				t.Errorf("made at %s, want %s", again, path)
			}
			ensure(t, v, false)
		})
	}
}

// forget takes away all that was noted below the root: as with volumes that an earlier
// version made.
func forget(t *testing.T, v *Volumes) {
	t.Helper()
	for _, kind := range []string{madeDir, disksDir} {
		names, err := v.records.names(kind)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			if err := v.records.remove(kind, name); err != nil {
				t.Fatal(err)
			}
		}
	}
}
