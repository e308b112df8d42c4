package volume

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stead-project/stead/agent/runtime"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec/scalar"
)

var bringBack = records.VolumeOrder{
	ID: db0, Claim: data.Claim, Volume: data.ID, Number: data.Number, Class: data.Class, Fate: records.FateRestoring, Turn: 1,
}

// place is where the volume of db-0 stands; bin where it lies in the trash.
func (l *lab) place() string { return filepath.Join(l.agent().classes["local"], "default/db/data-0") }
func (l *lab) bin() string {
	return filepath.Join(l.agent().classes["local"], ".trash", string(data.ID))
}

// trashed gives up the volume of db-0, with something in it.
func (l *lab) trashed() {
	l.t.Helper()
	l.filled()
	if err := l.agent().Reclaim(l.t.Context(), giveUp); err != nil {
		l.t.Fatal(err)
	}
}

// whole checks that the volume stands in its place with what was in it, and only there.
func (l *lab) whole(what string) {
	l.t.Helper()
	path, err := l.agent().Ensure(l.t.Context(), db0, data, false, nil)
	if err != nil {
		l.t.Fatalf("%s: %v", what, err)
	}
	if got, err := os.ReadFile(filepath.Join(path, "file")); err != nil || string(got) != "precious" {
		l.t.Errorf("%s: it holds %q, error %v", what, got, err)
	}
	if found, err := l.agent().Trash(l.t.Context()); err != nil || len(found) != 0 {
		l.t.Errorf("%s: the trash holds %v, error %v", what, found, err)
	}
	if _, err := os.Stat(filepath.Join(l.place(), noteFile)); !errors.Is(err, fs.ErrNotExist) {
		l.t.Errorf("%s: the note of the trash is left in its place: %v", what, err)
	}
}

func TestAVolumeComesBackFromTheTrash(t *testing.T) {
	l := newLab(t)
	l.trashed()
	for range 2 { // the second time without effect
		if err := l.agent().Restore(t.Context(), bringBack); err != nil {
			t.Fatal(err)
		}
	}
	l.whole("brought back")
	l.now += 2 * time.Hour
	if err := l.agent().Erase(t.Context(), "local", data.ID); err != nil {
		t.Fatal(err)
	}
	l.whole("what is not in the trash is not erased")
	again := giveUp
	again.Turn, again.SizeBytes, again.Trash.Duration = 2, 1<<30, 0
	if err := l.agent().Reclaim(t.Context(), again); err != nil {
		t.Fatal(err)
	}
	found, err := l.agent().Trash(t.Context())
	if err != nil || len(found) != 1 || found[0].Turn != 2 || found[0].SizeBytes != 1<<30 || found[0].Left != 0 {
		t.Errorf("the trash holds %+v, error %v; want what the second order said", found, err)
	}
	if err := l.agent().Erase(t.Context(), "local", data.ID); err != nil {
		t.Fatal(err)
	}
	if err := l.agent().Restore(t.Context(), bringBack); !errors.Is(err, runtime.ErrAbsent) {
		t.Errorf("after it was erased: %v", err)
	}
}

// It was called back before its node had heard that it was to go: no trash was made yet.
func TestAVolumeThatNeverLeftIsBack(t *testing.T) {
	l := newLab(t)
	l.filled()
	if err := l.agent().Restore(t.Context(), bringBack); err != nil {
		t.Error(err)
	}
	l.whole("brought back")
}

func TestNothingIsMovedOverWhatStandsInItsPlace(t *testing.T) {
	for name, c := range map[string]struct {
		spoil func(t *testing.T, l *lab)
		want  error
	}{
		"another volume": {want: runtime.ErrForeign, spoil: func(t *testing.T, l *lab) {
			next := data
			next.ID, next.Number = "fedcba9876543210fedcba9876543210", 2
			if _, err := l.agent().Ensure(t.Context(), db0, next, true, nil); err != nil {
				t.Fatal(err)
			}
		}},
		"files of nobody": {want: runtime.ErrExists, spoil: func(t *testing.T, l *lab) {
			if err := os.MkdirAll(l.place(), 0o700); err != nil {
				t.Fatal(err)
			}
			write(t, filepath.Join(l.place(), "file"))
		}},
		"an owner file that cannot be read": {want: runtime.ErrForeign, spoil: func(t *testing.T, l *lab) {
			if err := os.MkdirAll(l.place(), 0o700); err != nil {
				t.Fatal(err)
			}
			write(t, filepath.Join(l.place(), ownerFile))
		}},
		"another's under its id": {want: runtime.ErrForeign, spoil: func(t *testing.T, l *lab) {
			root, err := l.agent().open("local")
			if err != nil {
				t.Fatal(err)
			}
			defer root.Close()
			if err := l.agent().writeOwner(root, filepath.Join(trashDir, string(data.ID)), owner{Cluster: "another"}); err != nil {
				t.Fatal(err)
			}
		}},
		"half erased": {want: runtime.ErrAbsent, spoil: func(t *testing.T, l *lab) {
			rename(l.bin(), filepath.Join(filepath.Dir(l.bin()), erasing+string(data.ID)))(t)
		}},
		"no disk": {want: runtime.ErrNotFound, spoil: func(t *testing.T, l *lab) {
			v := l.agent()
			rename(v.classes["local"], l.dir+"/x")(t)
			l.vol = v
		}},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t)
			l.trashed()
			c.spoil(t, l)
			v := l.vol
			if v == nil {
				v = l.agent()
			}
			if err := v.Restore(t.Context(), bringBack); !errors.Is(err, c.want) {
				t.Errorf("got %v, want %v", err, c.want)
			}
			if _, err := os.Stat(filepath.Join(l.bin(), "data/file")); c.want == runtime.ErrExists && err != nil {
				t.Errorf("it lies in the trash no more: %v", err)
			}
		})
	}
}

// An empty directory in its place, as an unfinished attempt leaves it, is no obstacle.
func TestAnEmptyPlaceIsTaken(t *testing.T) {
	l := newLab(t)
	l.trashed()
	if err := os.MkdirAll(l.place(), 0o700); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(l.place(), ownerDraft))
	if err := l.agent().Restore(t.Context(), bringBack); err != nil {
		t.Fatal(err)
	}
	l.whole("into an empty directory")
}

// TestACrashBetweenAnyTwoStepsOfBringingBack lets the agent die at its nth step; the next
// one finishes, and gives up again what came back.
func TestACrashBetweenAnyTwoStepsOfBringingBack(t *testing.T) {
	steps := 0
	for n := 1; ; n++ {
		l := newLab(t)
		l.trashed()
		died, count := false, 0
		l.step = func(what string) error {
			count++
			if count == n {
				died = true
				return fmt.Errorf("dies before %s", what)
			}
			return nil
		}
		v := l.agent()
		err := v.Restore(t.Context(), bringBack)
		l.step = nil // the next agents live
		if died == (err == nil) {
			t.Fatalf("crash %d: %v", n, err)
		}
		if died { // it is in one of the two places, whole
			_, inPlace := os.Stat(filepath.Join(l.place(), "data/file"))
			_, inBin := os.Stat(filepath.Join(l.bin(), "data/file"))
			if (inPlace == nil) == (inBin == nil) {
				t.Fatalf("crash %d: in its place: %v, in the trash: %v", n, inPlace, inBin)
			}
			if found, err := l.agent().Trash(t.Context()); err != nil || (len(found) == 1) != (inBin == nil) {
				t.Errorf("crash %d: the trash lists %v, error %v", n, found, err)
			}
			if err := l.agent().Restore(t.Context(), bringBack); err != nil {
				t.Fatalf("crash %d: the next agent: %v", n, err)
			}
		}
		l.whole(fmt.Sprint("crash ", n))
		if err := l.agent().Reclaim(t.Context(), giveUp); err != nil {
			t.Errorf("crash %d: given up again: %v", n, err)
		}
		if got := l.timeLeft(); got != time.Hour {
			t.Errorf("crash %d: given up again it has %s", n, got)
		}
		if !died {
			break
		}
		steps++
	}
	if steps < 3 {
		t.Errorf("only %d steps; the test shows little", steps)
	}
}

func TestWhatIsSaidToBeLostIsLookedForAndLeft(t *testing.T) {
	look := bringBack
	look.Fate, look.Trash = records.FateLost, scalar.Duration{Duration: time.Hour}
	for name, c := range map[string]struct {
		spoil func(t *testing.T, l *lab)
		want  records.VolumeState
		err   error
		lies  bool // something of it is in the trash then
	}{
		"it is there": {spoil: func(*testing.T, *lab) {}, want: records.VolumeFound},
		"its directory is not there": {want: records.VolumeAbsent, spoil: func(t *testing.T, l *lab) {
			if err := os.RemoveAll(l.place()); err != nil {
				t.Fatal(err)
			}
		}},
		"its data are not there": {want: records.VolumeTrashed, lies: true, spoil: func(t *testing.T, l *lab) {
			if err := os.RemoveAll(filepath.Join(l.place(), dataDir)); err != nil {
				t.Fatal(err)
			}
		}},
		"it lies in the trash": {want: records.VolumeTrashed, lies: true, spoil: func(t *testing.T, l *lab) {
			if err := l.agent().Reclaim(t.Context(), giveUp); err != nil {
				t.Fatal(err)
			}
		}},
		"its owner file is not there": {err: runtime.ErrExists, spoil: func(t *testing.T, l *lab) {
			if err := os.Remove(filepath.Join(l.place(), ownerFile)); err != nil {
				t.Fatal(err)
			}
		}},
		"its owner file cannot be read": {err: runtime.ErrForeign, spoil: func(t *testing.T, l *lab) {
			write(t, filepath.Join(l.place(), ownerFile))
		}},
		"its disk is not there": {err: runtime.ErrNotFound, spoil: func(t *testing.T, l *lab) {
			l.vol = l.agent()
			rename(l.vol.classes["local"], l.dir+"/x")(t)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t)
			path := l.filled()
			c.spoil(t, l)
			v := l.vol
			if v == nil {
				v = l.agent()
			}
			for range 2 { // the second time the same
				got, err := v.Lost(t.Context(), look)
				if got != c.want || !errors.Is(err, c.err) {
					t.Fatalf("said %q, error %v; want %q, %v", got, err, c.want, c.err)
				}
			}
			if _, err := os.Stat(filepath.Join(path, "file")); c.want == records.VolumeFound && err != nil {
				t.Errorf("it was touched: %v", err)
			}
			if l.vol != nil {
				return
			}
			if found, err := l.agent().Trash(t.Context()); err != nil || (len(found) == 1) != c.lies {
				t.Errorf("the trash holds %v, error %v", found, err)
			}
		})
	}
}

// A volume whose return was called off is in the trash whatever took its place meanwhile.
func TestAReturnThatIsCalledOffLeavesItInTheTrash(t *testing.T) {
	l := newLab(t)
	l.trashed()
	next := data
	next.ID, next.Number = "fedcba9876543210fedcba9876543210", 2
	if _, err := l.agent().Ensure(t.Context(), db0, next, true, nil); err != nil {
		t.Fatal(err)
	}
	if err := l.agent().Reclaim(t.Context(), giveUp); err != nil {
		t.Errorf("it lies in the trash, but: %v", err)
	}
	if _, err := l.agent().Ensure(t.Context(), db0, next, false, nil); err != nil {
		t.Errorf("the other one was touched: %v", err)
	}
}
