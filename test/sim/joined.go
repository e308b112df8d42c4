package sim

import (
	"context"
	"time"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/server/cache"
	"github.com/stead-project/stead/server/plan"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/store"
)

// trial is a plan of a world in which reports are that are not stored yet. It counts, for
// engine and judge, if it was written with them.
type trial struct {
	world plan.World
	plan  plan.Plan
	at    time.Time
}

// joinReports is storeReports where reports are offered to whoever believes to lead on this server.
func (s *server) joinReports() bool {
	s.joins = true
	defer func() { s.joins = false }()
	return s.storeReports()
}

// offer is dispatch.Offer.
func (s *server) offer(ctx context.Context, reports []cache.JudgedReport) []store.Rev {
	if !s.joins || s.term == nil {
		return nil
	}
	s.trials, s.w.judge.offered = nil, reports
	stored := s.term.Join(ctx, reports)
	s.w.judge.offered = nil
	written := map[spec.SetRef]bool{}
	for i, rev := range stored {
		if rev > 0 {
			written[reports[i].Report.ID.Ref()] = true
			s.w.count("report joined")
			s.checkStored(reports[i], rev)
		}
	}
	for _, t := range s.trials {
		if t.world.Set != nil && written[t.world.Set.Ref] && !s.stale {
			s.w.judge.rules.Plan(s.name, int64(s.lead.Created), t.at, t.world, t.plan)
		}
	}
	return stored
}

// checkStored judges what the engine says to have stored: the report is there, or the record of its life
// went in the same transaction.
func (s *server) checkStored(r cache.JudgedReport, rev store.Rev) {
	w, id := s.w, r.Report.ID
	for _, b := range w.mem.Since(rev - 1) {
		if b.Rev != rev {
			continue
		}
		for _, e := range b.Events {
			if e.Key == store.ReportKey(id) || e.Key == store.MemberKey(id) {
				return
			}
		}
	}
	w.fail("joined", "%s says that it stored %s of %s %s at revision %d", s.name, r.Report.Phase, id, r.Report.Token, rev)
}

// endsIn judges the ends of lives that are stored by b, before anything else of it: the same transaction
// may rely on them, and has no report of a life whose record it removes.
func (j *judge) endsIn(v cache.View, b store.Batch) {
	for _, r := range j.offered {
		id, old := r.Report.ID, v.Member(r.Report.ID)
		if !r.Report.Phase.Over() || old == nil || old.Token != r.Report.Token {
			continue
		}
		for _, e := range b.Events {
			m, _ := store.Decode[records.Member](e.KV)
			removed := e.Key == store.MemberKey(id) && (e.Delete || m.Token != old.Token)
			if removed || e.Key == store.ReportKey(id) && !e.Delete {
				j.said(r.Report)
			}
			if removed {
				j.w.count("end joined")
			}
		}
	}
}
