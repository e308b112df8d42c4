package volume

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stead-project/stead/agent/runtime"
	"github.com/stead-project/stead/records"
)

// absent fails unless Ensure refuses a volume that nobody was ready on, as missing.
func absent(t *testing.T, v *Volumes) {
	t.Helper()
	if path, err := v.Ensure(t.Context(), db0, data, true, nil); !errors.Is(err, runtime.ErrAbsent) {
		t.Errorf("it is at %q, error %v; want %v", path, err, runtime.ErrAbsent)
	}
}

func madeOf(t *testing.T, v *Volumes) []string {
	t.Helper()
	names, err := v.records.names(madeDir)
	if err != nil {
		t.Fatal(err)
	}
	return names
}

// No life was ready on it yet: the server's word that it is new does not make a second one.
func TestAVolumeIsMadeOnce(t *testing.T) {
	dir := t.TempDir()
	v := at(t, dir, "cluster-1")
	path := ensure(t, v, true)
	write(t, filepath.Join(path, "vote"))
	place, away := filepath.Dir(path), filepath.Join(dir, "away")
	if err := os.Rename(place, away); err != nil {
		t.Fatal(err)
	}
	absent(t, v)
	absent(t, at(t, dir, "cluster-1")) // the next agent knows it, too
	if _, err := os.Lstat(place); !errors.Is(err, os.ErrNotExist) {
		t.Fatalf("something was made in its place: %v", err)
	}
	if err := os.Rename(away, place); err != nil {
		t.Fatal(err)
	}
	if again := ensure(t, v, true); again != path {
		t.Errorf("it is at %s, want %s", again, path)
	}
	if _, err := os.Stat(filepath.Join(path, "vote")); err != nil {
		t.Errorf("it goes on without its data: %v", err)
	}
	if err := os.RemoveAll(path); err != nil { // its data alone
		t.Fatal(err)
	}
	absent(t, v)
}

func TestAVolumeIsNotedBeforeItIsHandedOut(t *testing.T) {
	v := begin(t)
	if err := os.Remove(filepath.Join(v.records.root, madeDir)); err != nil {
		t.Fatal(err)
	}
	if path, err := v.Ensure(t.Context(), db0, data, true, nil); err == nil {
		t.Errorf("%s is handed out, and no record of it was written", path)
	}
	if err := os.Mkdir(filepath.Join(v.records.root, madeDir), 0o700); err != nil {
		t.Fatal(err)
	}
	ensure(t, v, true) // as after a crash: nobody had it yet
}

func TestAVolumeOfAnEarlierVersionIsTakenOver(t *testing.T) {
	for _, fresh := range []bool{true, false} {
		v := begin(t)
		path := ensure(t, v, true)
		forget(t, v)
		if err := os.Remove(filepath.Join(v.classes["local"], markFile)); err != nil {
			t.Fatal(err)
		}
		if again := ensure(t, v, fresh); again != path {
			t.Errorf("it is at %s, want %s", again, path)
		}
		if err := os.RemoveAll(filepath.Dir(path)); err != nil {
			t.Fatal(err)
		}
		absent(t, v)
	}
}

func TestTheRecordOfAVolumeGoesWhenItIsErased(t *testing.T) {
	v := begin(t)
	ensure(t, v, true)
	want := []string{string(data.ID)}
	order := records.VolumeOrder{ID: db0, Claim: data.Claim, Volume: data.ID, Number: data.Number, Class: data.Class}
	for _, step := range []struct {
		what string
		do   func() error
	}{
		{"given up", func() error { return v.Reclaim(t.Context(), order) }},
		{"brought back", func() error { return v.Restore(t.Context(), order) }},
		{"given up again", func() error { return v.Reclaim(t.Context(), order) }},
	} {
		if err := step.do(); err != nil {
			t.Fatalf("%s: %v", step.what, err)
		}
		if got := madeOf(t, v); !slices.Equal(got, want) {
			t.Errorf("%s: records %q, want %q", step.what, got, want)
		}
	}
	if err := v.Erase(t.Context(), data.Class, data.ID); err != nil {
		t.Fatal(err)
	}
	if got := madeOf(t, v); len(got) > 0 {
		t.Errorf("erased: records %q", got)
	}
	if err := v.noteMade(made{Class: data.Class, owner: owner{Volume: data.ID}}); err != nil { // as after a crash before it went
		t.Fatal(err)
	}
	if err := v.Erase(t.Context(), data.Class, data.ID); err != nil {
		t.Fatal(err)
	}
	if got := madeOf(t, v); len(got) > 0 {
		t.Errorf("erased again: records %q", got)
	}
}

func TestWhatIsNotTheVolumeIsNotErased(t *testing.T) {
	v := begin(t)
	path := ensure(t, v, true)
	order := records.VolumeOrder{ID: db0, Claim: data.Claim, Volume: data.ID, Number: data.Number, Class: data.Class}
	if err := v.Reclaim(t.Context(), order); err != nil {
		t.Fatal(err)
	}
	bin := filepath.Join(v.classes["local"], trashDir, string(data.ID))
	write(t, filepath.Join(bin, ownerFile))
	if err := v.Erase(t.Context(), data.Class, data.ID); !errors.Is(err, runtime.ErrForeign) {
		t.Errorf("got %v, want %v", err, runtime.ErrForeign)
	}
	if _, err := os.Stat(filepath.Join(bin, dataDir)); err != nil {
		t.Errorf("it was touched: %v", err)
	}
	if got := madeOf(t, v); len(got) != 1 {
		t.Errorf("%s: records %q", path, got)
	}
}
