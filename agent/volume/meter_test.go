package volume

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stead-project/stead/agent/runtime"
)

func meterOf(v *Volumes) *Meter {
	m := NewMeter(v, slog.New(slog.DiscardHandler))
	m.busy = func() bool { return false }
	return m
}

// fill writes so many bytes that are no holes.
func fill(t *testing.T, path string, size int) {
	t.Helper()
	if err := os.WriteFile(path, bytes.Repeat([]byte("x"), size), 0o600); err != nil {
		t.Fatal(err)
	}
}

func useNow(t *testing.T, m *Meter) runtime.VolumeUse {
	t.Helper()
	uses := m.Uses()
	if len(uses) != 1 || uses[0].Volume != data.ID || uses[0].ID != db0 || uses[0].Claim != data.Claim {
		t.Fatalf("got %+v, want one volume", uses)
	}
	return uses[0]
}

func TestWhatAVolumeTakesIsWhatItsFilesTake(t *testing.T) {
	v := begin(t)
	m := meterOf(v)
	path := ensure(t, v, true)
	if u := useNow(t, m); u.UsedBytes != -1 || u.FreeBytes <= 0 || u.TotalBytes < u.FreeBytes {
		t.Errorf("before it was measured: %+v", u)
	}
	if err := os.MkdirAll(filepath.Join(path, "a/b/c"), 0o700); err != nil {
		t.Fatal(err)
	}
	fill(t, filepath.Join(path, "a/b/c/one"), 1<<20)
	fill(t, filepath.Join(path, "two"), 2<<20)
	if err := os.Link(filepath.Join(path, "two"), filepath.Join(path, "a/twice")); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(filepath.Join(path, "a/b/c/one"), 1<<30); err != nil { // a hole takes nothing
		t.Fatal(err)
	}
	if err := os.Symlink("/", filepath.Join(path, "host")); err != nil {
		t.Fatal(err)
	}
	measure := func(what string) {
		t.Helper()
		if err := m.measure(t.Context()); err != nil {
			t.Fatal(err)
		}
		if u := useNow(t, m); u.UsedBytes < 3<<20 || u.UsedBytes > 4<<20 || u.Age < 0 || u.Age > time.Hour {
			t.Errorf("%s: %+v, want some 3 MiB", what, u)
		}
	}
	measure("in its place")
	if err := v.Reclaim(t.Context(), toTrash); err != nil {
		t.Fatal(err)
	}
	measure("in the trash")
	if err := v.Erase(t.Context(), data.Class, data.ID); err != nil {
		t.Fatal(err)
	}
	if err := m.measure(t.Context()); err != nil || len(m.Uses()) != 0 || len(m.measured) != 0 {
		t.Errorf("an erased volume is still known: %+v, error %v", m.measured, err)
	}
}

// A volume that cannot be read keeps the figure that it had, and hides no other.
func TestAVolumeThatCannotBeReadKeepsItsFigure(t *testing.T) {
	v := begin(t)
	m := meterOf(v)
	path := ensure(t, v, true)
	other := data
	other.Claim, other.ID = "log", "fedcba9876543210fedcba9876543210"
	there, err := v.Ensure(t.Context(), db0, other, true, nil)
	if err != nil {
		t.Fatal(err)
	}
	fill(t, filepath.Join(path, "one"), 1<<20)
	if err := m.measure(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path, path+".away"); err != nil {
		t.Fatal(err)
	}
	fill(t, filepath.Join(there, "two"), 2<<20)
	if err := m.measure(t.Context()); err == nil {
		t.Error("nothing is said of a volume that is not there")
	}
	if a, b := m.measured[data.ID].bytes, m.measured[other.ID].bytes; a < 1<<20 || a >= 2<<20 || b < 2<<20 {
		t.Errorf("measured %d and %d bytes", a, b)
	}
}

// Whoever measures rests nine times as long as it works, and waits while the disks are busy.
func TestMeasuringLeavesTheDisksToOthers(t *testing.T) {
	v := begin(t)
	path := ensure(t, v, true)
	for _, name := range []string{"a", "b", "c", "d", "e", "f", "g", "h"} {
		write(t, filepath.Join(path, name))
	}
	m := meterOf(v)
	var now, rested time.Duration
	waits, busy := 0, 3
	m.clock = func() time.Duration { now += 2 * time.Millisecond; return now }
	m.busy = func() bool { busy--; return busy >= 0 }
	m.rest = func(_ context.Context, d time.Duration) bool {
		now += d
		if d == busyRest {
			waits++
		} else {
			rested += d
		}
		return true
	}
	if err := m.measure(t.Context()); err != nil {
		t.Fatal(err)
	}
	if worked := now - rested - 3*busyRest; rested < 4*worked || waits != 3 {
		t.Errorf("rested %s of %s, and waited %d times for the disks; want 3", rested, worked, waits)
	}
}

func TestMeasuringIsSeldom(t *testing.T) {
	v := begin(t)
	ensure(t, v, true)
	m := meterOf(v)
	var waits []time.Duration
	var now time.Duration
	m.clock = func() time.Duration { return now }
	m.busy = func() bool { now += time.Minute; return false } // what a look at a volume takes here
	m.rest = func(_ context.Context, d time.Duration) bool {
		waits = append(waits, d)
		return len(waits) < 3
	}
	m.Run(t.Context())
	// Twice a minute of looking: a tenth of it is work.
	if len(waits) != 3 || waits[0] != firstMeasure || waits[1] < measureEvery || waits[1] < measureShare*time.Minute/(restShare+1) {
		t.Errorf("waited %v", waits)
	}
}

// A file system that hangs holds up nobody for long, and one goroutine waits for it.
func TestADiskThatHangsHoldsUpNobody(t *testing.T) {
	v := begin(t)
	ensure(t, v, true)
	m := meterOf(v)
	synctest.Test(t, func(t *testing.T) {
		m.asking["local"] = make(chan struct{}) // somebody asked, and was not answered
		began := time.Now()
		if u := useNow(t, m); u.FreeBytes != -1 || u.TotalBytes != -1 {
			t.Errorf("got %+v", u)
		}
		if waited := time.Since(began); waited != statTime {
			t.Errorf("waited %s, want %s", waited, statTime)
		}
	})
}

func TestWhatTheKernelSaysOfWaiting(t *testing.T) {
	for text, want := range map[string]float64{
		"some avg10=12.50 avg60=2.36 avg300=2.29 total=2221818373\nfull avg10=0.20 avg60=1 avg300=1 total=3\n": 12.5,
		"": 0, "some avg10=x avg60=1": 0,
	} {
		if got := waitShare(text); got != want {
			t.Errorf("%q: %v, want %v", text, got, want)
		}
	}
}
