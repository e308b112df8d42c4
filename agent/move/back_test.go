package move_test

import (
	"errors"
	"testing"

	"github.com/stead-project/stead/agent/runtime"
	"github.com/stead-project/stead/agent/volume"
	"github.com/stead-project/stead/records/moves"
)

// TestAMoveGoesBack: wherever the source's agent is killed the volume can be used only when it is noted that it went back; and
// that is said to any store that knows the move, for good.
func TestAMoveGoesBack(t *testing.T) {
	j := newJourney(t)
	j.both(moves.MoveCopying)
	j.both(moves.MoveSealing)
	s, d := j.both(moves.MoveFlipped)
	j.want("source", s, moves.MoveSealed)
	j.want("target", d, moves.MoveArrived)
	back := j.order(moves.MoveSource, moves.MoveBack)
	for round := 0; ; round++ {
		j.from.start()
		j.from.mover.Take([]moves.MoveOrder{back}, 1)
		j.from.mover.Round(t.Context(), func(work func()) { work() })
		_, used := j.from.ensure(claim.Old, false)
		said := j.from.said
		if len(said) == 1 && said[0].State == moves.MoveIsBack {
			if used != nil {
				t.Errorf("it is said to be back: %v", used)
			}
			break
		}
		j.from.start()
		if used == nil && !j.from.noted(t) {
			t.Error("the seal is broken, and it is not noted that it went back")
		}
		if used != nil && !errors.Is(used, runtime.ErrSealed) || round > 5 {
			t.Fatalf("round %d: said is %+v, %v", round, said, used)
		}
	}
	for _, again := range []bool{false, true} {
		if again {
			j.from.start()
		}
		if got := j.from.take(); got.State != "" {
			t.Errorf("of what is over is said %+v", got)
		}
		for _, phase := range []moves.MovePhase{moves.MoveFlipped, moves.MoveSealing, moves.MoveCopying, moves.MoveAborting} {
			j.want("the store went back to "+string(phase), j.from.take(j.order(moves.MoveSource, phase)), moves.MoveIsBack)
		}
	}
	if _, err := j.from.ensure(claim.Old, false); err != nil {
		t.Error(err)
	}
}

// noted: the node's disk says that its part went back.
func (n *node) noted(t *testing.T) bool {
	t.Helper()
	parts, err := volume.NewMoves(n.volumes).Parts(t.Context())
	if err != nil || len(parts) != 1 {
		t.Fatalf("parts %+v, %v", parts, err)
	}
	return parts[0].Back
}
