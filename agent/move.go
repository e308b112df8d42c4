package agent

import (
	"context"
	"time"

	"github.com/stead-project/stead/agent/move"
	"github.com/stead-project/stead/agent/session"
	"github.com/stead-project/stead/records/moves"
	"github.com/stead-project/stead/spec"
)

// betweenRounds is how long a target leaves its source alone after a round.
const betweenRounds = 5 * time.Second

// beginMoves takes up the node's parts in moves, before the first session: it says at once which volumes are sealed.
func (a *Agent) beginMoves(ctx context.Context) error {
	if a.c.Moves == nil {
		return nil
	}
	a.moved = session.NewMoveReports(a.outbox.Notify)
	a.mover = move.New(move.Config{
		Volumes: a.c.Moves, Copier: a.c.Copier,
		Open: func(id spec.Identity) spec.Token { return a.ledger.Look(id).Open }, Empty: a.c.Runtime.Empty,
		Reported: a.moved.Set, RetryFirst: a.c.Tuning.Worker.RetryFirst, RetryMost: a.c.Tuning.Worker.RetryMost,
		Between: betweenRounds, Now: time.Now, Logger: a.log,
	})
	return a.mover.Begin(ctx)
}

func (a *Agent) takeMoves() func([]moves.MoveOrder, int64) {
	if a.mover == nil {
		return nil
	}
	return a.mover.Take
}
