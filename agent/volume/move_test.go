package volume

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/stead-project/stead/agent/runtime"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/records/moves"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/spec/causes"
)

const newID = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"

func part(role moves.MoveRole) runtime.MovePart {
	return runtime.MovePart{
		ID: db0, Move: "0000000000000000000000000000000a", Role: role, Peer: "n2", Epoch: 1,
		Claims: []moves.MoveClaim{{Claim: data.Claim, Old: string(data.ID), New: newID, Number: data.Number, Class: data.Class}},
	}
}

// moved is the volume that arrives.
var moved = records.MemberVolume{Claim: data.Claim, ID: newID, Number: data.Number, Class: data.Class}

func lookAt(t *testing.T, v *Volumes, p runtime.MovePart) runtime.MoveDisk {
	t.Helper()
	d, err := NewMoves(v).Look(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// A sealed volume starts no life, of this agent, of the next, and of one that knows no seals; unsealed it is as before.
func TestASealedVolumeIsNotUsed(t *testing.T) {
	l, p := newLab(t), part(moves.MoveSource)
	path := l.filled()
	if err := NewMoves(l.agent()).Seal(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		for _, fresh := range []bool{true, false} {
			got, err := l.agent().Ensure(t.Context(), db0, data, fresh, nil)
			if got != "" || !errors.Is(err, runtime.ErrSealed) || runtime.VolumeCause(err) != causes.VolumeSealed {
				t.Fatalf("a sealed volume is handed out at %q, error %v", got, err)
			}
			for _, word := range []string{"n2", string(p.Move), "stead move db-0 -n default --abort"} {
				if !strings.Contains(err.Error(), word) {
					t.Errorf("%q does not say %q", err, word)
				}
			}
		}
		if err := NewMoves(l.agent()).Seal(t.Context(), p); err != nil {
			t.Error(err)
		}
	}
	if d := lookAt(t, l.agent(), p); !d.Sealed || !d.AllSealed {
		t.Errorf("on disk is %+v", d)
	}
	content, err := os.ReadFile(filepath.Join(l.place(), ownerFile))
	if err != nil || !strings.Contains(string(content), `"claim":"data","volume":""`) {
		t.Errorf("an agent that knows no seals reads %s, error %v", content, err)
	}
	other := p
	other.Move = "0000000000000000000000000000000b"
	if err := NewMoves(l.agent()).Unseal(t.Context(), other); err != nil {
		t.Error(err)
	}
	if _, err := l.agent().Ensure(t.Context(), db0, data, false, nil); !errors.Is(err, runtime.ErrSealed) {
		t.Errorf("the end of another move broke the seal: %v", err)
	}
	if err := NewMoves(l.agent()).Seal(t.Context(), other); !errors.Is(err, runtime.ErrSealed) {
		t.Errorf("another move sealed it, too: %v", err)
	}
	for range 2 {
		if err := NewMoves(l.agent()).Unseal(t.Context(), p); err != nil {
			t.Fatal(err)
		}
	}
	l.whole("unsealed")
	if got, err := os.ReadFile(filepath.Join(path, "file")); err != nil || string(got) != "precious" {
		t.Errorf("%q, %v", got, err)
	}
}

// What a move left behind is given up as any volume, and is the volume again when a person brings it back.
func TestASealedVolumeGoesThroughTheTrash(t *testing.T) {
	l, p := newLab(t), part(moves.MoveSource)
	l.filled()
	if err := NewMoves(l.agent()).Seal(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	if state, err := l.agent().Lost(t.Context(), giveUp); err != nil || state != records.VolumeFound {
		t.Errorf("%v, %v", state, err)
	}
	for range 2 {
		if err := l.agent().Reclaim(t.Context(), giveUp); err != nil {
			t.Fatal(err)
		}
	}
	if left := l.timeLeft(); left != giveUp.Trash.Duration {
		t.Errorf("it stays for %v", left)
	}
	if d := lookAt(t, l.agent(), p); d.Sealed || !d.AllSealed {
		t.Errorf("on disk is %+v", d)
	}
	if err := l.agent().Restore(t.Context(), bringBack); err != nil {
		t.Fatal(err)
	}
	l.whole("brought back")
}

// staged copies the volume by hand.
func staged(t *testing.T, l *lab, p runtime.MovePart) {
	t.Helper()
	trees, err := NewMoves(l.agent()).Stage(t.Context(), p)
	if err != nil || len(trees) != 1 {
		t.Fatal(trees, err)
	}
	write(t, filepath.Join(trees[0].Path, "file"))
}

// A crash before each write, and a disk that fails at each: the next try ends with the volume in one place.
func TestAVolumeArrivesWhateverBreaksOff(t *testing.T) {
	broken := errors.New("died")
	for n := 1; ; n++ {
		l, p := newLab(t), part(moves.MoveTarget)
		staged(t, l, p)
		count := 0
		onDisk := l.onDisk()
		dying := l.agent()
		dying.step = func(string) error {
			count++
			if count == n {
				return broken
			}
			return nil
		}
		flush := func(f *os.File) error {
			count++
			if count == n {
				return broken
			}
			onDisk.flush(t, f)
			return nil
		}
		dying.writer.Sync, dying.records.writer.Sync = flush, flush
		err := NewMoves(dying).Arrive(t.Context(), p)
		if count < n {
			if err != nil {
				t.Error(err)
			}
			if n < 12 {
				t.Errorf("only %d steps", n)
			}
			return
		}
		if !errors.Is(err, broken) {
			t.Fatalf("step %d: %v", n, err)
		}
		if d := lookAt(t, l.agent(), p); !d.Arrived && !d.Staged {
			t.Errorf("step %d: on disk is %+v", n, d)
		}
		again := l.agent()
		flush = func(f *os.File) error { onDisk.flush(t, f); return nil }
		again.writer.Sync, again.records.writer.Sync = flush, flush
		if err := NewMoves(again).Arrive(t.Context(), p); err != nil {
			t.Fatalf("step %d, then: %v", n, err)
		}
		if diff := onDisk.missing(l); len(diff) > 0 {
			t.Errorf("step %d: never put on disk: %q", n, diff)
		}
		if d := lookAt(t, l.agent(), p); !d.AllArrived || d.Staged {
			t.Errorf("step %d: on disk is %+v", n, d)
		}
		path, err := l.agent().Ensure(t.Context(), db0, moved, true, nil)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(filepath.Join(path, "file")); err != nil || string(got) != "precious" {
			t.Errorf("step %d: %q, %v", n, got, err)
		}
	}
}

// What stands where the volume is to come is not touched, and said before anything is copied.
func TestAMoveComesUponNothing(t *testing.T) {
	l, p := newLab(t), part(moves.MoveTarget)
	l.filled()
	if _, err := NewMoves(l.agent()).Stage(t.Context(), p); !errors.Is(err, runtime.ErrForeign) {
		t.Errorf("got %v", err)
	}
	l.whole("after a move that was refused")
	other := newLab(t)
	staged(t, other, p)
	if _, err := other.agent().Ensure(t.Context(), db0, data, true, nil); err != nil {
		t.Fatal(err)
	}
	if err := NewMoves(other.agent()).Arrive(t.Context(), p); !errors.Is(err, runtime.ErrForeign) {
		t.Errorf("got %v", err)
	}
	if d := lookAt(t, other.agent(), p); d.Arrived || !d.Staged {
		t.Errorf("on disk is %+v", d)
	}
}

func TestPartsInMovesAreKept(t *testing.T) {
	l, p := newLab(t), part(moves.MoveTarget)
	staged(t, l, p)
	p.Copied = []moves.MoveSum{{Claim: "data", Sum: "x"}}
	q := part(moves.MoveSource)
	for _, one := range []runtime.MovePart{p, q} {
		if err := NewMoves(l.agent()).Note(t.Context(), one); err != nil {
			t.Fatal(err)
		}
	}
	got, err := NewMoves(l.agent()).Parts(t.Context())
	if err != nil || len(got) != 2 || got[1].Copied[0] != p.Copied[0] {
		t.Errorf("%+v, %v", got, err)
	}
	for range 2 {
		if err := errors.Join(NewMoves(l.agent()).Discard(t.Context(), p), NewMoves(l.agent()).Forget(t.Context(), p)); err != nil {
			t.Fatal(err)
		}
	}
	if d := lookAt(t, l.agent(), p); !reflect.DeepEqual(d, runtime.MoveDisk{Missing: true}) {
		t.Errorf("%+v", d)
	}
	if got, err := NewMoves(l.agent()).Parts(t.Context()); err != nil || len(got) != 1 {
		t.Errorf("%+v, %v", got, err)
	}
	bad := p
	bad.Claims = []moves.MoveClaim{{Claim: "../x", Old: "a", New: "b", Class: "local"}}
	if err := NewMoves(l.agent()).Note(t.Context(), bad); err == nil {
		t.Error("a path as a name is kept")
	}
	bad = p
	bad.ID = spec.Identity{Namespace: "default", Set: "..", Ordinal: 0}
	if _, err := NewMoves(l.agent()).Stage(t.Context(), bad); err == nil {
		t.Error("a path as a name is made")
	}
}
