package move_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/stead-project/stead/agent/runtime"
	"github.com/stead-project/stead/agent/volume"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/records/moves"
	"github.com/stead-project/stead/spec/scalar"
)

// sizedNode is a node that may enforce the sizes of volumes, with real loop devices.
func sizedNode(t *testing.T, sized bool) *node {
	t.Helper()
	if os.Getenv("STEAD_ROOT_TESTS") != "1" {
		t.Skip("needs STEAD_ROOT_TESTS=1 and root: it mounts")
	}
	n := newNode(t, sized)
	t.Cleanup(func() {
		if err := volume.UnmountAll(filepath.Join(n.dir, "run")); err != nil {
			t.Error(err)
		}
		if left := loopsOf(t, n.dir); len(left) > 0 {
			t.Errorf("loop devices are left: %q", left)
		}
	})
	return n
}

// loopsOf are the files below a directory that are behind loop devices.
func loopsOf(t *testing.T, dir string) (files []string) {
	t.Helper()
	paths, err := filepath.Glob("/sys/block/loop*/loop/backing_file")
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range paths {
		if name, err := os.ReadFile(p); err == nil && strings.HasPrefix(string(name), dir) {
			files = append(files, strings.TrimSpace(string(name)))
		}
	}
	return files
}

// limited reports whether a volume is a file system of its own, by the device that it is on.
func (n *node) limited(path string) bool {
	n.t.Helper()
	var at, root unix.Stat_t
	if err := errors.Join(unix.Stat(path, &at), unix.Stat(n.dir, &root)); err != nil {
		n.t.Fatal(err)
	}
	return at.Dev != root.Dev
}

// A volume is at the target of the kind that its class has there, whatever it was: with what is in it, while its member runs, and
// when agents restart; the sealed one goes to the trash.
func TestAVolumeMovesBetweenClassesWithSizesAndWithout(t *testing.T) {
	for _, c := range []struct{ from, to, restarts bool }{{true, true, false}, {true, false, true}, {false, true, true}} {
		t.Run(fmt.Sprintf("sized %v to %v, agents restart %v", c.from, c.to, c.restarts), func(t *testing.T) {
			j := journeyOf(t, sizedNode(t, c.from), sizedNode(t, c.to))
			again := func() {
				if c.restarts {
					j.from.start()
					j.to.start()
				}
			}
			s, d := j.both(moves.MoveCopying)
			j.want("source", s, moves.MoveOffered)
			j.want("target", d, moves.MoveWarm)
			again()
			running, err := j.from.ensure(claim.Old, false)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(running, "written while it runs"), []byte("x"), 0o640); err != nil {
				t.Fatal(err)
			}
			if err := j.from.volumes.RemoveScratch(t.Context(), db0); err != nil { // the life ends
				t.Fatal(err)
			}
			s, d = j.both(moves.MoveSealing)
			j.want("source", s, moves.MoveSealed)
			j.want("target", d, moves.MoveCopied)
			again()
			s, d = j.both(moves.MoveFlipped)
			j.want("source", s, moves.MoveSealed)
			j.want("target", d, moves.MoveArrived)
			if left := append(loopsOf(t, j.from.dir), loopsOf(t, j.to.dir)...); len(left) > 0 {
				t.Errorf("mounted for a move that is done: %q", left)
			}
			again()
			path, err := j.to.ensure(claim.New, false)
			if err != nil {
				t.Fatal(err)
			}
			if got, err := os.ReadFile(filepath.Join(path, "file")); err != nil || string(got) != "precious" || j.to.limited(path) != c.to {
				t.Errorf("%q, with a size of its own %v, %v", got, j.to.limited(path), err)
			}
			if _, err := os.Stat(filepath.Join(path, "written while it runs")); err != nil {
				t.Error(err)
			}
			if _, err := j.from.ensure(claim.Old, false); !errors.Is(err, runtime.ErrSealed) {
				t.Errorf("the source starts a life: %v", err)
			}
			left := records.VolumeOrder{
				ID: db0, Claim: claim.Claim, Volume: records.VolumeID(claim.Old), Number: claim.Number, Class: claim.Class,
				Fate: records.FateReclaiming, Trash: scalar.Duration{Duration: time.Hour},
			}
			if err := j.from.volumes.Reclaim(t.Context(), left); err != nil {
				t.Error(err)
			}
		})
	}
}

// What does not fit into the size of the claim is said while the member runs; nothing is left of it, and the member is as before.
func TestAVolumeThatDoesNotFitStaysWhereItIs(t *testing.T) {
	j := journeyOf(t, sizedNode(t, false), sizedNode(t, true))
	path, err := j.from.ensure(claim.Old, false)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(path, "large"), make([]byte, claim.SizeBytes), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(filepath.Join(path, "large"), os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteAt([]byte("end"), claim.SizeBytes-3); err != nil {
		t.Fatal(err)
	}
	f.Close()
	_, d := j.both(moves.MoveCopying)
	j.want("target", d, moves.MoveFailed)
	if !strings.Contains(d.Error, "does not fit into 33554432 bytes") {
		t.Errorf("said is %q", d.Error)
	}
	_, d = j.both(moves.MoveAborting)
	j.want("target", d, moves.MoveDiscarded)
	if left := loopsOf(t, j.to.dir); len(left) > 0 {
		t.Errorf("left: %q", left)
	}
	if _, err := j.from.ensure(claim.Old, false); err != nil {
		t.Error(err)
	}
}
