package dispatch

import (
	"testing"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/records/moves"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/store"
)

// SAFETY S12: a target is told of an abort when the source has the volumes, not before, and the source may break its seal when it has said that.
func TestATargetIsToldOfAnAbortWhenTheSourceHasTheVolumes(t *testing.T) {
	r := newStill(t)
	r.begin()
	target := r.hand(hello{node: "n2", uid: "uid2", boot: "b2", cluster: "c1", moves: true})
	target.tells()
	source := r.hand(mover)
	source.tells()
	sums := []moves.MoveSum{{Claim: "data", Sum: sum}}
	m := r.move(moves.MoveAborting, func(m *moves.Move) { m.Sums = sums })
	volume := records.Volume{ID: m.ID, Claim: "data", UID: "v", Number: 1, Class: "local", Node: "n1", Fate: records.FateKeep}
	r.Record(store.VolumeKey(m.ID, "data"), volume)
	var phase moves.MovePhase // as told last
	unseal := false
	want := func(what string, told moves.MovePhase, unseals bool) {
		t.Helper()
		if list, sent := target.moves(); sent && len(list) == 1 {
			phase = list[0].Phase
		}
		if list, sent := source.moves(); sent && len(list) == 1 {
			unseal = list[0].Unseal
		}
		if phase != told || unseal != unseals {
			t.Errorf("%s: the target is told %s, and the source that it may break its seal: %v; want %s, %v", what, phase, unseal, told, unseals)
		}
	}
	says := func(state moves.MoveState, absent ...spec.ClaimName) {
		t.Helper()
		source.Receive(movesSaid(t, moves.MoveReport{ID: m.ID, Move: "m", Role: moves.MoveSource, State: state, Absent: absent}))
		source.tells()
	}
	want("at first", moves.MoveSealing, false)
	says(moves.MoveSealed, "data")
	want("it has it not", moves.MoveSealing, false)
	says(moves.MoveSealed)
	want("it has it, sealed", moves.MoveSealing, true)
	says(moves.MoveUnsealed)
	want("it can be used", moves.MoveAborting, true)
	says(moves.MoveUnsealed, "data")
	want("it is gone since", moves.MoveSealing, false)
	volume.Fate = records.FateLost
	r.Record(store.VolumeKey(m.ID, "data"), volume)
	want("a person said that it is lost", moves.MoveAborting, true)
}
