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
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/spec/scalar"
)

// lab is a root that outlives its agents and boots, and its clock.
type lab struct {
	t    *testing.T
	dir  string
	boot spec.BootID
	now  time.Duration
	step func(string) error
	vol  *Volumes // of a host whose disk is away, where another could not be made
}

func newLab(t *testing.T) *lab { return &lab{t: t, dir: t.TempDir(), boot: "b1", now: time.Hour} }

// agent is the volumes as the next agent has them.
func (l *lab) agent() *Volumes {
	l.t.Helper()
	v, err := New(Config{
		Root: filepath.Join(l.dir, "root"), RunDir: filepath.Join(l.dir, "run"), ClusterID: "cluster-1",
		Boot: l.boot, Clock: func() time.Duration { return l.now },
	})
	if err != nil {
		l.t.Fatal(err)
	}
	if l.step != nil {
		v.step = l.step
	}
	return v
}

// filled makes the volume of db-0 with something in it.
func (l *lab) filled() string {
	l.t.Helper()
	path := ensure(l.t, l.agent(), true)
	write(l.t, filepath.Join(path, "file"))
	return path
}

var giveUp = records.VolumeOrder{
	ID: db0, Claim: data.Claim, Volume: data.ID, Number: data.Number, Class: data.Class,
	Fate: records.FateReclaiming, Trash: scalar.Duration{Duration: time.Hour},
}

// timeLeft is how long the only volume in the trash has.
func (l *lab) timeLeft() time.Duration {
	l.t.Helper()
	found, err := l.agent().Trash(l.t.Context())
	if err != nil || len(found) != 1 || found[0].Volume != data.ID || found[0].ID != db0 {
		l.t.Fatalf("the trash holds %+v, error %v", found, err)
	}
	return found[0].Left
}

func TestAVolumeGoesThroughTheTrash(t *testing.T) {
	l := newLab(t)
	path := l.filled()
	for range 2 { // the second time without effect
		if err := l.agent().Reclaim(t.Context(), giveUp); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("it stands in its place still: %v", err)
	}
	kept := filepath.Join(l.agent().classes["local"], ".trash", string(data.ID), "data/file")
	if got, err := os.ReadFile(kept); err != nil || string(got) != "precious" {
		t.Fatalf("in the trash: %q, error %v", got, err)
	}
	next := data
	next.ID, next.Number = "fedcba9876543210fedcba9876543210", 2
	if _, err := l.agent().Ensure(t.Context(), db0, next, true, nil); err != nil {
		t.Errorf("the next volume is not made: %v", err)
	}
	if err := l.agent().Erase(t.Context(), "local", data.ID); !errors.Is(err, runtime.ErrExists) {
		t.Fatalf("erased before its time: %v", err)
	}
	l.now += time.Hour
	for range 2 {
		if err := l.agent().Erase(t.Context(), "local", data.ID); err != nil {
			t.Fatal(err)
		}
	}
	if found, err := os.ReadDir(filepath.Join(l.agent().classes["local"], ".trash")); err != nil || len(found) != 0 {
		t.Errorf("left in the trash: %v, error %v", found, err)
	}
	if err := l.agent().Reclaim(t.Context(), giveUp); !errors.Is(err, runtime.ErrForeign) {
		t.Errorf("an old order reached the next volume: %v", err)
	}
}

// The time in the trash is counted on the clock since boot: what a wall clock says is
// read nowhere, and time that nobody counted has not passed.
func TestNoClockErasesEarly(t *testing.T) {
	l := newLab(t)
	l.filled()
	if err := l.agent().Reclaim(t.Context(), giveUp); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(l.agent().classes["local"], ".trash", string(data.ID), noteFile)
	ahead := time.Now().Add(-48 * time.Hour) // as if written by a clock two days behind
	if err := os.Chtimes(file, ahead, ahead); err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct {
		what string
		do   func()
		want time.Duration
	}{
		{"at once", func() {}, time.Hour},
		{"the same boot counts", func() { l.now += 15 * time.Minute }, 45 * time.Minute},
		{"a reboot takes nothing", func() { l.boot, l.now = "b2", 0 }, 45 * time.Minute},
		{"nor does a clock that begins high", func() { l.boot, l.now = "b3", 1000*time.Hour }, 45 * time.Minute},
		{"less than a note's time is lost by a reboot", func() { l.now += 9 * time.Minute; l.timeLeft(); l.boot, l.now = "b4", 0 }, 45 * time.Minute},
		{"all that came before is not", func() { l.now += 10 * time.Minute; l.timeLeft(); l.boot, l.now = "b5", 0 }, 35 * time.Minute},
		{"a clock that went back takes nothing", func() { l.now = -time.Hour }, 35 * time.Minute},
		{"and it comes to its end", func() { l.now = time.Hour }, 0},
	} {
		step.do()
		if got := l.timeLeft(); got != step.want {
			t.Errorf("%s: %s left, want %s", step.what, got, step.want)
		}
	}
}

func TestWhatIsNotTheVolumeIsNotTouched(t *testing.T) {
	l := newLab(t)
	path := l.filled()
	place := filepath.Dir(path)
	for name, c := range map[string]struct {
		change func(o *records.VolumeOrder)
		mend   func(t *testing.T)
		spoil  func(t *testing.T)
		want   error
	}{
		"another volume":  {change: func(o *records.VolumeOrder) { o.Volume = "00000000000000000000000000000000" }, want: runtime.ErrForeign},
		"another number":  {change: func(o *records.VolumeOrder) { o.Number = 2 }, want: runtime.ErrForeign},
		"another class":   {change: func(o *records.VolumeOrder) { o.Class = "gold" }, want: runtime.ErrNotFound},
		"another member":  {change: func(o *records.VolumeOrder) { o.ID.Ordinal = 1 }, want: runtime.ErrAbsent},
		"no path at all":  {change: func(o *records.VolumeOrder) { o.Volume = "../../x" }},
		"no owner file":   {spoil: rename(place+"/owner.json", place+"/o"), mend: rename(place+"/o", place+"/owner.json"), want: runtime.ErrExists},
		"no place":        {spoil: rename(place, place+"x"), mend: rename(place+"x", place), want: runtime.ErrAbsent},
		"no class's disk": {spoil: rename(l.agent().classes["local"], l.dir+"/x"), mend: rename(l.dir+"/x", l.agent().classes["local"]), want: runtime.ErrNotFound},
	} {
		t.Run(name, func(t *testing.T) {
			v, o := l.agent(), giveUp
			if c.change != nil {
				c.change(&o)
			}
			if c.spoil != nil {
				c.spoil(t)
				defer c.mend(t)
			}
			if err := v.Reclaim(t.Context(), o); err == nil || c.want != nil && !errors.Is(err, c.want) {
				t.Errorf("got %v, want %v", err, c.want)
			}
		})
		if got, err := os.ReadFile(filepath.Join(path, "file")); err != nil || string(got) != "precious" {
			t.Fatalf("%s: the data is %q, error %v", name, got, err)
		}
	}
	other := at(t, l.dir, "cluster-2")
	if err := other.Reclaim(t.Context(), giveUp); !errors.Is(err, runtime.ErrForeign) {
		t.Errorf("of another cluster: %v", err)
	}
}

func rename(from, to string) func(*testing.T) {
	return func(t *testing.T) {
		t.Helper()
		if err := os.Rename(from, to); err != nil {
			t.Fatal(err)
		}
	}
}

// TestACrashBetweenAnyTwoStepsOfGivingUp lets the agent die at its nth step, and the
// next one finish; the volume beside it is never touched.
func TestACrashBetweenAnyTwoStepsOfGivingUp(t *testing.T) {
	steps := 0
	for n := 1; ; n++ {
		l := newLab(t)
		l.filled()
		other := data
		other.Claim, other.ID = "log", "fedcba9876543210fedcba9876543210"
		beside, err := l.agent().Ensure(t.Context(), db0, other, true, nil)
		if err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(beside, "file"))
		died, count := false, 0
		l.step = func(what string) error {
			count++
			if count == n {
				died = true
				return fmt.Errorf("dies before %s", what)
			}
			return nil
		}
		o := giveUp
		o.Trash.Duration = 0
		v := l.agent()
		for range 3 { // the dead one's order is told again to the next
			err = v.Reclaim(t.Context(), o)
			if err == nil {
				err = v.Erase(t.Context(), "local", o.Volume)
			}
			if err == nil {
				break
			}
			if !died {
				t.Fatalf("crash %d: %v", n, err)
			}
			// The order of a volume that is being erased is told no more.
			if found, terr := l.agent().Trash(t.Context()); terr != nil {
				t.Fatal(terr)
			} else if len(found) == 1 {
				err = l.agent().Erase(t.Context(), "local", o.Volume)
				if err == nil {
					break
				}
			}
			v = l.agent()
		}
		if err != nil {
			t.Fatalf("crash %d: never finished: %v", n, err)
		}
		if found, err := os.ReadDir(filepath.Join(v.classes["local"], ".trash")); err != nil || len(found) != 0 {
			t.Errorf("crash %d: the trash holds %v, error %v", n, found, err)
		}
		if _, err := os.Stat(filepath.Join(v.classes["local"], "default/db/data-0")); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("crash %d: it stands in its place: %v", n, err)
		}
		if got, err := os.ReadFile(filepath.Join(beside, "file")); err != nil || string(got) != "precious" {
			t.Errorf("crash %d: the volume beside it holds %q, error %v", n, got, err)
		}
		if !died {
			break
		}
		steps++
	}
	if steps < 4 {
		t.Errorf("only %d steps; the test shows little", steps)
	}
}

// What was begun to be erased is finished though nobody asks for it by its name.
func TestWhatIsLeftOfAnErasureGoes(t *testing.T) {
	l := newLab(t)
	l.filled()
	if err := l.agent().Reclaim(t.Context(), giveUp); err != nil {
		t.Fatal(err)
	}
	bin := filepath.Join(filepath.Dir(l.bin()), erasing+"0"+string(data.ID)[1:])
	if err := os.MkdirAll(bin, 0o700); err != nil {
		t.Fatal(err)
	}
	if got := l.timeLeft(); got != time.Hour { // the other one is listed all the same
		t.Errorf("the other has %s", got)
	}
	if _, err := os.Stat(bin); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("it is still there: %v", err)
	}
}
