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

// beginMoves takes up the node's parts in moves, before the first session: it says at once which volumes are sealed. A record that
// cannot be read holds up no other member: seals, and what has arrived, are known from the volumes themselves when an order comes.
func (a *Agent) beginMoves(ctx context.Context) {
	if a.c.Moves == nil {
		return
	}
	a.moved = session.NewMoveReports(a.outbox.Notify)
	a.mover = move.New(move.Config{
		Volumes: a.c.Moves, Copier: a.c.Copier,
		Open: func(id spec.Identity) spec.Token { return a.ledger.Look(id).Open }, Empty: a.c.Runtime.Empty,
		Reported: a.moved.Set, RetryFirst: a.c.Tuning.Worker.RetryFirst, RetryMost: a.c.Tuning.Worker.RetryMost,
		Between: betweenRounds, Now: time.Now, Logger: a.log,
	})
	if err := a.mover.Begin(ctx); err != nil {
		a.log.Warn("records of moves not all read; what is sealed stays sealed", "err", err)
	}
}

func (a *Agent) takeMoves() func([]moves.MoveOrder, int64) {
	if a.mover == nil {
		return nil
	}
	return a.mover.Take
}
