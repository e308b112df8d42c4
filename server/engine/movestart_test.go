package engine

import (
	"slices"
	"testing"
	"testing/synctest"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/records/moves"
	"github.com/stead-project/stead/server/plan"
	"github.com/stead-project/stead/store"
	"github.com/stead-project/stead/store/memstore"
)

// SAFETY S12: a start compares the move it knows. One that was planned before there was a move is held by what the move
// writes when it begins to hold its member.
func TestAStartThatKnewOfNoMoveIsNotWrittenWhileOneHolds(t *testing.T) {
	for name, holds := range map[string]stage{
		"stopping": {report: records.PhaseStopped, move: &moves.Move{Phase: moves.MoveCopying}, target: moves.MoveWarm},
		"aborting": {report: records.PhaseStopped, move: &moves.Move{Phase: moves.MoveCopying}, target: moves.MoveFailed},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := memstore.New()
				before := holds // all as it will be, but for the move
				before.name, before.without = name, []string{store.MoveKey(member(0))}
				l, start := planned(t, s, before)
				if _, is := start.decisions[0].action.(plan.Start); !is {
					t.Fatalf("%+v is planned, want a start", start.decisions[0].action)
				}
				if _, err := s.Commit(t.Context(), store.Txn{Then: slices.DeleteFunc(base(holds), func(op store.Op) bool { return op.Key != store.MoveKey(member(0)) })}); err != nil {
					t.Fatal(err)
				}
				other, hold := planned(t, s, stage{})
				if a, is := hold.decisions[0].action.(plan.AdvanceMove); !is || a.Move.Phase == moves.MoveCopying {
					t.Fatalf("%+v is planned, want a move that holds its member", hold.decisions[0].action)
				}
				other.commit(t.Context(), &hold)
				l.commit(t.Context(), &start)
				_, after, err := s.Snapshot(t.Context(), "")
				if err != nil {
					t.Fatal(err)
				}
				if !wrote(hold.decisions[0], after) {
					t.Error("the move was not written")
				}
				if wrote(start.decisions[0], after) {
					t.Error("the start was written beside it")
				}
				_ = s.Close()
			})
		})
	}
}
