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

// endsWith judges the end of a life that was reported in the transaction that removes its record: the report
// itself is never stored then.
func (j *judge) endsWith(v cache.View, e store.Event) {
	for _, r := range j.offered {
		old := v.Member(r.Report.ID)
		if e.Key != store.MemberKey(r.Report.ID) || !r.Report.Phase.Over() || old == nil || old.Token != r.Report.Token {
			continue
		}
		if m, _ := store.Decode[records.Member](e.KV); e.Delete || m.Token != old.Token {
			j.said(r.Report)
			j.w.count("end joined")
		}
	}
}
