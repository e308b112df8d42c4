package volume

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stead-project/stead/agent/runtime"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/spec/causes"
)

// onSSD is a node with a class whose disk can be taken away: an empty directory is there
// then, as where a file system is not mounted.
func onSSD(t *testing.T) (v *Volumes, away, back func()) {
	t.Helper()
	dir := t.TempDir()
	ssd, disk := filepath.Join(dir, "ssd"), filepath.Join(dir, "disk")
	move := func(err ...error) {
		t.Helper()
		if err := errors.Join(err...); err != nil {
			t.Fatal(err)
		}
	}
	move(os.Mkdir(ssd, 0o755))
	v, err := New(Config{Root: filepath.Join(dir, "root"), RunDir: filepath.Join(dir, "run"), ClusterID: "cluster-1",
		Classes: map[string]string{"ssd": ssd}})
	if err != nil {
		t.Fatal(err)
	}
	away = func() { move(os.Rename(ssd, disk), os.Mkdir(ssd, 0o755)) }
	back = func() { move(os.RemoveAll(ssd), os.Rename(disk, ssd)) }
	return v, away, back
}

var (
	fast = records.MemberVolume{Claim: "data", ID: "0123456789abcdef0123456789abcdef", Number: 1, Class: "ssd"}
	next = records.MemberVolume{Claim: "wal", ID: "fedcba9876543210fedcba9876543210", Number: 1, Class: "ssd"}
)

func TestAClassOnAnotherDiskIsRefusedWhateverIsAskedOfIt(t *testing.T) {
	v, away, back := onSSD(t)
	path, err := v.Ensure(t.Context(), db0, fast, true, nil)
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(path, "file"))
	away()
	order := records.VolumeOrder{ID: db0, Claim: fast.Claim, Volume: fast.ID, Number: fast.Number, Class: fast.Class}
	for what, do := range map[string]func() error{
		"use":           func() error { _, err := v.Ensure(t.Context(), db0, fast, false, nil); return err },
		"use, if fresh": func() error { _, err := v.Ensure(t.Context(), db0, fast, true, nil); return err },
		"make another":  func() error { _, err := v.Ensure(t.Context(), db0, next, true, nil); return err },
		"give up":       func() error { return v.Reclaim(t.Context(), order) },
		"bring back":    func() error { return v.Restore(t.Context(), order) },
		"look for":      func() error { _, err := v.Lost(t.Context(), order); return err },
		"erase":         func() error { return v.Erase(t.Context(), fast.Class, fast.ID) },
	} {
		err := do()
		if runtime.VolumeCause(err) != causes.DiskMissing {
			t.Errorf("%s: got %v, want %s", what, err, causes.DiskMissing)
		} else if !strings.Contains(err.Error(), "mounted at ") || !strings.Contains(err.Error(), "stead agent accept-disk ssd") {
			t.Errorf("%s: it does not say what to do: %v", what, err)
		} else if strings.Contains(err.Error(), "then at") {
			t.Errorf("%s: its directory was this one before: %v", what, err)
		}
	}
	elsewhere, err := New(Config{Root: v.records.root, RunDir: t.TempDir(), ClusterID: "cluster-1", Classes: map[string]string{"ssd": t.TempDir()}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := elsewhere.Ensure(t.Context(), db0, fast, true, nil); err == nil || !strings.Contains(err.Error(), "then at "+v.classes["ssd"]+";") {
		t.Errorf("it does not say where the disk was: %v", err)
	}
	if found, err := os.ReadDir(v.classes["ssd"]); err != nil || len(found) > 0 {
		t.Errorf("%v was made where the disk is away, error %v", found, err)
	}
	back()
	if again, err := v.Ensure(t.Context(), db0, fast, true, nil); err != nil || again != path {
		t.Errorf("it is at %s, error %v", again, err)
	}
	if _, err := os.Stat(filepath.Join(path, "file")); err != nil {
		t.Error(err)
	}
	if _, err := v.Ensure(t.Context(), db0, next, true, nil); err != nil {
		t.Error(err)
	}
}

// What lies in the trash of a disk that is away is not known; that of others is.
func TestTheTrashOfADiskThatIsAwayIsNotKnown(t *testing.T) {
	v, away, back := onSSD(t)
	ensure(t, v, true)
	if _, err := v.Ensure(t.Context(), db0, next, true, nil); err != nil {
		t.Fatal(err)
	}
	local := records.VolumeOrder{ID: db0, Claim: data.Claim, Volume: data.ID, Number: data.Number, Class: data.Class}
	ssd := records.VolumeOrder{ID: db0, Claim: next.Claim, Volume: next.ID, Number: next.Number, Class: next.Class}
	if err := errors.Join(v.Reclaim(t.Context(), local), v.Reclaim(t.Context(), ssd)); err != nil {
		t.Fatal(err)
	}
	want := func(complete bool, ids ...records.VolumeID) {
		t.Helper()
		var got []records.VolumeID
		found, err := v.Trash(t.Context())
		for _, f := range found {
			got = append(got, f.Volume)
		}
		if !slices.Equal(got, ids) || (err == nil) != complete {
			t.Errorf("got %v, error %v; want %v, all of it: %v", got, err, ids, complete)
		}
	}
	both := []records.VolumeID{data.ID, next.ID}
	slices.Sort(both)
	want(true, both...)
	away()
	want(false, data.ID)
	if err := v.Erase(t.Context(), ssd.Class, ssd.Volume); !errors.Is(err, runtime.ErrNotFound) {
		t.Errorf("it counts as erased while its disk is away: %v", err)
	}
	back()
	want(true, both...)
	delete(v.classes, "ssd") // no longer declared
	want(false, data.ID)
}

// The disk is known from when the class was declared, before its first volume.
func TestNoFirstVolumeIsMadeUnderAMountPoint(t *testing.T) {
	v, away, _ := onSSD(t)
	if _, err := v.Trash(t.Context()); err != nil { // what an agent asks when it starts
		t.Fatal(err)
	}
	away()
	if path, err := v.Ensure(t.Context(), db0, fast, true, nil); runtime.VolumeCause(err) != causes.DiskMissing {
		t.Errorf("it was made at %q, error %v", path, err)
	}
}

func TestADiskThatWasReplacedIsTakenWhenAPersonSaysSo(t *testing.T) {
	v, away, back := onSSD(t)
	if _, err := v.Ensure(t.Context(), db0, fast, true, nil); err != nil {
		t.Fatal(err)
	}
	away()
	if says, err := AcceptDisk(v.records.root, "gold", ""); err == nil {
		t.Errorf("a class that was never used: %q", says)
	}
	if says, err := AcceptDisk(v.classes["ssd"], "ssd", ""); err == nil {
		t.Errorf("a root of no agent: %q", says)
	}
	says, err := AcceptDisk(v.records.root, "ssd", "")
	if err != nil || !strings.Contains(says, v.classes["ssd"]+" (") {
		t.Fatalf("got %q, %v", says, err)
	}
	if _, err := v.Ensure(t.Context(), db0, next, true, nil); err != nil {
		t.Errorf("a new volume on the new disk: %v", err)
	}
	if _, err := v.Ensure(t.Context(), db0, fast, true, nil); !errors.Is(err, runtime.ErrAbsent) {
		t.Errorf("the volume of the disk before: %v, want %v", err, runtime.ErrAbsent)
	}
	back()
	if _, err := v.Ensure(t.Context(), db0, fast, true, nil); !errors.Is(err, runtime.ErrNotFound) {
		t.Errorf("the disk before is back: %v, want %v", err, runtime.ErrNotFound)
	}
	long := time.Unix(1e9, 0)
	if err := os.Chtimes(v.classes["ssd"], long, long); err != nil {
		t.Fatal(err)
	}
	if _, err := AcceptDisk(v.records.root, "ssd", v.classes["ssd"]); err != nil {
		t.Fatal(err)
	}
	if found, err := os.Stat(v.classes["ssd"]); err != nil || !found.ModTime().Equal(long) {
		t.Errorf("it has a mark, but was written to, as a full one cannot be; error %v", err)
	}
	if _, err := v.Ensure(t.Context(), db0, fast, true, nil); err != nil {
		t.Errorf("it was accepted again: %v", err)
	}
	write(t, filepath.Join(v.classes["ssd"], markFile))
	if err := os.Chtimes(v.classes["ssd"], long, long); err != nil {
		t.Fatal(err)
	}
	if says, err := AcceptDisk(v.records.root, "ssd", ""); err == nil {
		t.Errorf("its mark cannot be read: %q", says)
	}
	if found, err := os.Stat(v.classes["ssd"]); err != nil || !found.ModTime().Equal(long) {
		t.Errorf("its mark cannot be read, but it was written to; error %v", err)
	}
}

func TestNodesThatShareADiskMarkItOnce(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "nfs"), 0o755); err != nil {
		t.Fatal(err)
	}
	var group sync.WaitGroup
	nodes := make([]*Volumes, 8)
	for i := range nodes {
		name := string(rune('a' + i))
		v, err := New(Config{Root: filepath.Join(dir, name), RunDir: filepath.Join(dir, name), ClusterID: "cluster-1",
			Classes: map[string]string{"nfs": filepath.Join(dir, "nfs")}, Shared: []string{"nfs"}, Node: spec.NodeName(name)})
		if err != nil {
			t.Fatal(err)
		}
		nodes[i] = v
		group.Go(func() {
			if _, err := v.Trash(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	for _, v := range nodes {
		if _, err := v.Trash(t.Context()); err != nil {
			t.Errorf("%s: %v", v.node, err)
		}
	}
	found, err := os.ReadDir(filepath.Join(dir, "nfs"))
	if err != nil || len(found) != 1 || found[0].Name() != markFile {
		t.Errorf("there is %v, error %v; want one mark", found, err)
	}
}

// atMark calls do when the first volume of the class is about to be given its mark: that is
// on the disk, by a name of its own.
func atMark(v *Volumes, do func(temp string)) {
	v.writer.Sync = func(f *os.File) error {
		if strings.HasPrefix(filepath.Base(f.Name()), markFile+".") {
			do(f.Name())
		}
		return f.Sync()
	}
}

func TestOfTwoNodesThatMarkADiskAtOnceOneDoes(t *testing.T) {
	v, _, _ := onSSD(t)
	other, err := New(Config{Root: t.TempDir(), RunDir: t.TempDir(), ClusterID: "cluster-1", Classes: map[string]string{"nfs": v.classes["ssd"]}})
	if err != nil {
		t.Fatal(err)
	}
	atMark(v, func(string) {
		if _, err := other.Trash(t.Context()); err != nil {
			t.Error(err)
		}
	})
	for range 2 {
		if _, err := v.Trash(t.Context()); err != nil {
			t.Errorf("the second: %v", err)
		}
		if _, err := other.Trash(t.Context()); err != nil {
			t.Errorf("the first: %v", err)
		}
	}
}

// A class whose disk could not be marked is noted as on none: any disk would be that.
func TestADiskThatCannotBeMarkedIsNotNoted(t *testing.T) {
	v, _, _ := onSSD(t)
	atMark(v, func(temp string) {
		if err := os.Remove(temp); err != nil { // no other name can be given to it
			t.Error(err)
		}
	})
	if path, err := v.Ensure(t.Context(), db0, fast, true, nil); err == nil {
		t.Errorf("it was made at %s", path)
	}
	if known, err := v.records.read(disksDir, "ssd", &disk{}); known || err != nil {
		t.Errorf("the disk is noted: %v, error %v", known, err)
	}
	if found, err := os.ReadDir(v.classes["ssd"]); err != nil || len(found) > 0 {
		t.Errorf("left: %v, error %v", found, err)
	}
}

func TestAMarkThatCannotBeReadIsRefused(t *testing.T) {
	v, _, _ := onSSD(t)
	for _, content := range []string{"", "{}", "x"} {
		if err := os.WriteFile(filepath.Join(v.classes["ssd"], markFile), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if path, err := v.Ensure(t.Context(), db0, fast, true, nil); err == nil {
			t.Errorf("mark %q: made at %s", content, path)
		}
	}
}

// The first uses of a class come at once: of the workers of several members, and of who reads the trash.
func TestTheFirstUsesOfAClassMayComeAtOnce(t *testing.T) {
	v, _, _ := onSSD(t)
	root, err := os.OpenRoot(v.classes["ssd"])
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	var begun, all sync.WaitGroup
	errs := make([]error, 20)
	begun.Add(1)
	for i := range errs {
		all.Go(func() {
			begun.Wait()
			errs[i] = v.checkDisk("ssd", root)
		})
	}
	begun.Done()
	all.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Error(err)
	}
}
