package move_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/stead-project/stead/agent/runtime"
	"github.com/stead-project/stead/records/moves"
)

// kept is the order by which a target keeps what it has of a move that is aborted: to seal, with nobody to copy from.
func (j *journey) kept() moves.MoveOrder {
	o := j.order(moves.MoveTarget, moves.MoveSealing)
	o.PeerKey, o.PeerPort = "", 0
	return o
}

// lose has the disk of the source die, and a new one be there.
func (j *journey) lose() {
	j.t.Helper()
	if err := os.RemoveAll(filepath.Join(j.from.dir, "root", "volumes", string(db0.Namespace))); err != nil {
		j.t.Fatal(err)
	}
}

// TestACopyOutlivesTheAbortOfItsMove: a source says of an abort what it has not, and breaks no seal unasked; meanwhile its target keeps the
// copy, over restarts, and puts it in its place when the move is flipped all the same.
func TestACopyOutlivesTheAbortOfItsMove(t *testing.T) {
	j := newJourney(t)
	j.both(moves.MoveCopying)
	_, d := j.both(moves.MoveSealing)
	j.want("target", d, moves.MoveCopied)
	s := j.from.take(j.order(moves.MoveSource, moves.MoveAborting))
	j.want("source", s, moves.MoveSealed)
	if s.Key != "" || len(s.Absent) != 0 {
		t.Errorf("to an abort it answers %+v", s)
	}
	for range 2 {
		j.want("it is kept", j.to.take(j.kept()), moves.MoveCopied)
		j.to.start()
	}
	j.lose()
	s = j.from.take(j.order(moves.MoveSource, moves.MoveAborting))
	if len(s.Absent) != 1 || s.Absent[0] != claim.Claim || s.Key != "" {
		t.Errorf("a source whose disk died says %+v", s)
	}
	o := j.order(moves.MoveSource, moves.MoveAborting)
	o.Unseal = true
	s = j.from.take(o)
	if s.State != moves.MoveUnsealed || len(s.Absent) != 1 {
		t.Errorf("unsealed, it says %+v", s)
	}
	j.want("flipped", j.to.take(j.order(moves.MoveTarget, moves.MoveFlipped)), moves.MoveArrived)
	path, err := j.to.ensure(claim.New, false)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(filepath.Join(path, "file")); err != nil || string(got) != "precious" {
		t.Errorf("%q, %v", got, err)
	}
	s = j.from.take(j.order(moves.MoveSource, moves.MoveFlipped))
	if s.State != moves.MoveFailed || len(s.Absent) != 1 {
		t.Errorf("of what it has no more it says %+v", s)
	}
}

// TestACopyThatIsKeptIsNotGoneOnWith: what is not whole stays so, and never arrives.
func TestACopyThatIsKeptIsNotGoneOnWith(t *testing.T) {
	j := newJourney(t)
	_, d := j.both(moves.MoveCopying)
	j.want("target", d, moves.MoveWarm)
	for range 2 {
		j.sums = []moves.MoveSum{{Claim: claim.Claim, Sum: "another"}}
		d = j.to.take(j.kept())
		if d.State == moves.MoveCopied || d.State == moves.MoveDiscarded {
			t.Errorf("of half a copy is said %+v", d)
		}
		j.to.start()
	}
	j.want("it never arrives", j.to.take(j.order(moves.MoveTarget, moves.MoveFlipped)), moves.MoveFailed)
}

// TestACopyWhoseDiskDiedIsNotSaidToBeWhole: what was noted of it does not count any more.
func TestACopyWhoseDiskDiedIsNotSaidToBeWhole(t *testing.T) {
	j := newJourney(t)
	j.both(moves.MoveCopying)
	_, d := j.both(moves.MoveSealing)
	j.want("target", d, moves.MoveCopied)
	if err := os.RemoveAll(filepath.Join(j.to.dir, "root", "volumes", ".moving")); err != nil {
		t.Fatal(err)
	}
	j.to.start()
	d = j.to.take(j.kept())
	if d.State != moves.MoveCopyingNow || len(d.Sums) > 0 {
		t.Errorf("of what is gone is said %+v", d)
	}
	j.want("it never arrives", j.to.take(j.order(moves.MoveTarget, moves.MoveFlipped)), moves.MoveFailed)
}

// TestASourceThatHasNotWhatItIsToSealFails: so that the move is aborted, and does not wait for what never comes.
func TestASourceThatHasNotWhatItIsToSealFails(t *testing.T) {
	j := newJourney(t)
	j.both(moves.MoveCopying)
	j.lose()
	s, _ := j.both(moves.MoveSealing)
	j.want("source", s, moves.MoveFailed)
	if len(s.Absent) != 1 || s.Error == "" {
		t.Errorf("it says %+v", s)
	}
	if _, err := j.from.ensure(claim.Old, false); !errors.Is(err, runtime.ErrAbsent) {
		t.Errorf("its volume is made anew: %v", err)
	}
}
