package dispatch

import (
	"bytes"
	"cmp"
	"encoding/hex"
	"fmt"
	"slices"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/stead-project/stead/proto"
	"github.com/stead-project/stead/proto/wire"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/records/moves"
	"github.com/stead-project/stead/server/cache"
	"github.com/stead-project/stead/server/plan"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/store"
)

// What nodes are told of moves, and what they say of them (SAFETY S12, S21).

const (
	// moveBytes bounds what a node says of each move that holds it up.
	moveBytes = 512
	// progressTime is the least time between two changes that are stored of how much is copied; all else is stored at once.
	progressTime = 10 * time.Second
	// sumBytes is the size of sums and keys, SHA-256.
	sumBytes = 32
)

// nextMoves are all moves in which the machine has a part, as they are to be told now, and whether that differs from what was
// sent. Nothing is told while a restore waits for nodes.
func (s *sentState) nextMoves(v cache.View) (orders []moves.MoveOrder, moved bool) {
	for _, m := range cache.MovesOn(v, s.node) {
		volume := func(c spec.ClaimName) *records.Volume { return v.Volume(m.ID, c) }
		if m.From.Node == s.node && m.From.UID == s.uid {
			orders = append(orders, plan.MoveOrder(m, moves.MoveSource, v.Nodes(), v.Epoch(), volume))
		}
		if m.To.Node == s.node && m.To.UID == s.uid {
			orders = append(orders, plan.MoveOrder(m, moves.MoveTarget, v.Nodes(), v.Epoch(), volume))
		}
	}
	now := noMoves
	if len(orders) > 0 {
		now = store.Encode(orders)
	}
	moved = s.moves == nil || !bytes.Equal(now, s.moves)
	s.moves = now
	return orders, moved
}

// noMoves is sentState.moves of a node that was told that it has a part in none.
var noMoves = []byte{}

// movesMessage is all that the node is told of moves; nil: as before.
func movesMessage(orders []moves.MoveOrder, moved bool) (*proto.MoveOrders, error) {
	if !moved {
		return nil, nil
	}
	docs, err := wire.Documents(orders)
	return &proto.MoveOrders{OrdersJson: docs}, err
}

// receiveMoves takes what the node says of its moves now. It does not block.
func (se *session) receiveMoves(m *proto.MoveReports) {
	size := 0
	for _, doc := range m.GetReportsJson() {
		size += len(doc)
	}
	if size > factsBytes {
		se.abortOverLimit(LimitHello, "what it says of moves is too long")
		return
	}
	said, err := wire.ToDocuments[moves.MoveReport](m.GetReportsJson())
	if err != nil {
		se.abort(codes.InvalidArgument, fmt.Sprintf("decode what is said of moves: %v", err))
		return
	}
	se.mu.Lock()
	se.moves, se.changed = saneMoves(said), true
	se.mu.Unlock()
	se.out.filled.Notify()
}

// saneMoves is what a node said of moves, in order, each part once, of what this version knows, and safe to show.
func saneMoves(said []moves.MoveReport) []moves.MoveReport {
	out := slices.DeleteFunc(slices.Clone(said), func(r moves.MoveReport) bool {
		return !canBeMember(r.ID) || !stateOf(r.Role, r.State) || len(r.Move) > wordBytes || r.Key != "" && !isSum(r.Key) ||
			len(r.Sums) > maxContainers || !saneClaims(&r) || slices.ContainsFunc(r.Sums, func(s moves.MoveSum) bool { return !isSum(s.Sum) }) ||
			len(r.Absent) > maxContainers || slices.ContainsFunc(r.Absent, func(c spec.ClaimName) bool { return len(c) > wordBytes })
	})
	for i := range out {
		r := &out[i]
		sanitize(&r.Error, moveBytes)
		r.DoneBytes, r.TotalBytes, r.BytesPerSecond = max(r.DoneBytes, 0), max(r.TotalBytes, 0), max(r.BytesPerSecond, 0)
		r.Sums, r.Absent = slices.Clone(r.Sums), slices.Clone(r.Absent)
		slices.SortFunc(r.Sums, func(a, b moves.MoveSum) int { return cmp.Compare(a.Claim, b.Claim) })
	}
	slices.SortStableFunc(out, func(a, b moves.MoveReport) int { return a.Compare(&b) })
	out = slices.CompactFunc(out, func(a, b moves.MoveReport) bool { return a.Compare(&b) == 0 })
	return slices.Clip(out[:min(len(out), 2*moves.MaxMoves)])
}

// saneClaims: what a node says of a move that the store does not know names volumes, each once, and a peer.
func saneClaims(r *moves.MoveReport) bool {
	named := map[spec.ClaimName]bool{}
	for _, c := range r.Claims {
		if named[c.Claim] || c.Claim == "" || c.Old == "" || c.New == "" || c.Old == c.New || c.SizeBytes < 0 ||
			max(len(c.Claim), len(c.Old), len(c.New), len(c.Class)) > wordBytes {
			return false
		}
		named[c.Claim] = true
	}
	return len(r.Peer) <= wordBytes && len(r.Claims) <= maxContainers
}

// stateOf reports whether a node can say that of its part in a role.
func stateOf(role moves.MoveRole, state moves.MoveState) bool {
	switch role {
	case moves.MoveSource:
		return slices.Contains([]moves.MoveState{moves.MoveOffered, moves.MoveSealed, moves.MoveUnsealed, moves.MoveIsBack, moves.MoveFailed}, state)
	case moves.MoveTarget:
		return slices.Contains([]moves.MoveState{moves.MoveCopyingNow, moves.MoveWarm, moves.MoveCopied, moves.MoveArrived, moves.MoveDiscarded, moves.MoveFailed}, state)
	}
	return false
}

func isSum(text string) bool {
	b, err := hex.DecodeString(text)
	return err == nil && len(b) == sumBytes
}

// ownMoves are those of a node's reports in which it has a part by the record of the move; and that it holds a seal of a move
// which the store does not know, about a member with a volume that is recorded there: a person has to resolve that (SAFETY S8).
func ownMoves(v cache.View, at machine, said []moves.MoveReport) []moves.MoveReport {
	return slices.DeleteFunc(slices.Clone(said), func(r moves.MoveReport) bool {
		m := cache.MoveOf(v, r.ID)
		if m == nil || m.Move != r.Move {
			return r.Role != moves.MoveSource || r.State != moves.MoveSealed || !hasVolumeOn(v, at, &r)
		}
		end := m.From
		if r.Role == moves.MoveTarget {
			end = m.To
		}
		return end.Node != at.node || end.UID != at.uid
	})
}

// hasVolumeOn: a volume of the member is recorded on the machine.
func hasVolumeOn(v cache.View, at machine, r *moves.MoveReport) bool {
	return slices.ContainsFunc(v.Volumes(r.ID.Ref()), func(vol *records.Volume) bool {
		return vol.ID == r.ID && vol.Node == at.node && !vol.Shared
	})
}

// nextMoveReports is what is to be stored of what the node says of moves, and whether that is something else than what is
// stored; again: later it may be.
func (se *session) nextMoveReports() (now []moves.MoveReport, changed, again bool) {
	se.mu.Lock()
	said := se.moves
	se.mu.Unlock()
	stored := se.facts.MoveReports
	if len(said)+len(stored) == 0 {
		return stored, false, false
	}
	se.server.cfg.Cache.Look(func(v cache.View) { now = ownMoves(v, se.machine, said) })
	switch {
	case slices.EqualFunc(now, stored, moves.MoveReport.Equal):
		return stored, false, false
	case slices.EqualFunc(now, stored, equalButProgress) && time.Since(se.movesAt) < progressTime:
		return stored, false, true
	}
	return now, true, false
}

// equalButProgress: only how much is copied differs.
func equalButProgress(a, b moves.MoveReport) bool {
	a.DoneBytes, a.TotalBytes, a.BytesPerSecond = b.DoneBytes, b.TotalBytes, b.BytesPerSecond
	return a.Equal(b)
}
