package control

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/stead-project/stead/proto"
	"github.com/stead-project/stead/records/moves"
	"github.com/stead-project/stead/server/cache"
	"github.com/stead-project/stead/server/plan"
	"github.com/stead-project/stead/spec"
)

// Rebalance implements proto.ControlServer. It writes a request for each move, as Move does.
func (s volumes) Rebalance(ctx context.Context, r *proto.RebalanceRequest) (*proto.RebalanceResponse, error) {
	if r.GetMax() < 0 || r.GetAllNamespaces() && len(r.GetSets()) > 0 {
		return nil, invalid("name sets of one namespace, or all namespaces; the number of moves must be 0 or more")
	}
	ns := namespace(r.GetNamespace())
	chosen := func(ref spec.SetRef) bool {
		return r.GetAllNamespaces() || ref.Namespace == ns && (len(r.GetSets()) == 0 || slices.Contains(r.GetSets(), string(ref.Name)))
	}
	worlds, err := s.worldsToSpread(ns, r.GetSets(), chosen)
	if err != nil {
		return nil, err
	}
	found := plan.Rebalance(worlds, chosen, int(r.GetMax()))
	if found.Halted != "" {
		return nil, precondition("%s; nothing was changed", found.Halted)
	}
	out := &proto.RebalanceResponse{}
	for _, w := range worlds {
		if w.Set != nil {
			out.Moves = append(out.Moves, rowsOfMoves(w, found.Moves)...)
		}
	}
	for _, stay := range found.Stays {
		out.Stays = append(out.Stays, &proto.RebalanceRow{
			Namespace: string(stay.ID.Namespace), Member: stay.ID.MemberName(), From: string(stay.Node), Why: stay.Why,
		})
	}
	if r.GetDryRun() {
		return out, nil
	}
	for i, m := range found.Moves {
		q := moves.MoveRequest{ID: m.ID, Verb: moves.MoveBegin, To: m.To, By: user(ctx)}
		if _, err := s.askMove(ctx, q, false, func(cache.View, *plan.Slot, *moves.MoveRequest) error { return nil }); err != nil {
			return nil, fmt.Errorf("%d of %d moves are asked for, and run this again for the others: %w", i, len(found.Moves), err)
		}
	}
	return out, nil
}

// worldsToSpread are the worlds of the chosen sets, and of those whose members move already, of one view.
func (s volumes) worldsToSpread(ns spec.Namespace, names []string, chosen func(spec.SetRef) bool) (worlds []plan.World, err error) {
	s.cfg.Cache.Look(func(v cache.View) {
		for _, name := range names {
			if v.Set(spec.SetRef{Namespace: ns, Name: spec.SetName(name)}) == nil {
				err = notFound(proto.KindSet, ns, name)
				return
			}
		}
		for _, ref := range v.Sets() {
			if chosen(ref) || len(cache.MovingOf(v, ref)) > 0 {
				worlds = append(worlds, s.cfg.Planner.World(v, ref, nil))
			}
		}
	})
	return worlds, err
}

// rowsOfMoves are the moves of one set in the order in which its members stop for them.
func rowsOfMoves(w plan.World, all []plan.SpreadMove) (rows []*proto.RebalanceRow) {
	asked := map[spec.Identity]plan.SpreadMove{}
	w.Slots = slices.Clone(w.Slots)
	for _, m := range all {
		if m.ID.Ref() == w.Set.Ref {
			asked[m.ID] = m
			slotOf(w.Slots, m.ID).MoveAsked = &moves.MoveRequest{ID: m.ID, Verb: moves.MoveBegin, To: m.To}
		}
	}
	if len(asked) == 0 {
		return nil
	}
	row := func(m plan.SpreadMove, after, waits string) {
		delete(asked, m.ID)
		rows = append(rows, &proto.RebalanceRow{
			Namespace: string(m.ID.Namespace), Member: m.ID.MemberName(), From: string(m.From), To: string(m.To.Node), Bytes: m.SizeBytes,
			Why: m.Why, After: after, Waits: waits,
		})
	}
	f := plan.Preview(w)
	atMost := max(f.Budget, 1)
	if w.Set.Spec.PodManagementPolicy != spec.Parallel {
		atMost = 1
	}
	var stops []spec.Identity
	for _, step := range f.Steps {
		stop, is := step.Action.(plan.Stop)
		if !is || stop.Move == nil {
			continue
		}
		stops = append(stops, stop.ID)
		if m, is := asked[stop.ID]; is {
			after := ""
			if before := len(stops) - 1 - atMost; before >= 0 {
				after = stops[before].MemberName()
			}
			row(m, after, strings.Join(waitsFirst(step), "; "))
		}
	}
	for _, m := range all {
		if _, is := asked[m.ID]; is {
			i := slices.IndexFunc(f.Never, func(b plan.Blocked) bool { return b.ID == m.ID })
			waits := ""
			if i >= 0 {
				waits = f.Never[i].Text
			}
			row(m, "", waits)
		}
	}
	return rows
}
