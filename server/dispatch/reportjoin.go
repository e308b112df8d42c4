package dispatch

import (
	"context"
	"slices"
	"time"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/server/cache"
	"github.com/stead-project/stead/store"
)

// Offer stores reports of as many identities in one transaction with what the leader decides
// because of them, where it leads on this server: see engine.Engine.Offer. It returns the revision at which each was
// stored; 0: that is not known, and the report is still to be stored; nil: all are.
type Offer func(ctx context.Context, reports []cache.JudgedReport) []store.Rev

// join has those of units stored with what is decided because of them of which something may
// follow, and returns what is still to be stored. A report is answered when it is stored, by whichever way;
// what was offered and not stored goes its own way at once.
func (c *reportWriter) join(ctx context.Context, units []pendingReport) (rest []pendingReport) {
	if c.offer == nil {
		return units
	}
	var offered []pendingReport
	var reports []cache.JudgedReport
	taken := map[string]bool{}
	for _, p := range units {
		key := store.ReportKey(p.report.ID)
		if taken[key] || !p.mayDecide() {
			rest = append(rest, p)
			continue
		}
		taken[key] = true
		offered = append(offered, p)
		reports = append(reports, cache.JudgedReport{Report: &p.report, If: p.txn().If})
	}
	if len(reports) == 0 {
		return rest
	}
	stored := c.offer(ctx, reports)
	for i, p := range offered {
		if len(stored) > i && stored[i] > 0 {
			c.stored(p, stored[i])
		} else {
			rest = append(rest, p)
		}
	}
	return rest
}

// mayDecide: the report may be what another member, or its own next life, waits for.
func (p *pendingReport) mayDecide() bool { return p.report.Ready || p.report.Phase.Over() }

// gatherTime is how long reports for which nobody waits may wait for others to be written with. Mostly a
// newer one of the same life takes their place before, and they are never written.
const gatherTime = 100 * time.Millisecond

// isMinor: the report r of the life m says only how far a life is on its way up, or down after it
// was asked to end, and nothing is wrong. last is the report before it.
func isMinor(r records.Report, m *records.Member, last *records.Report) bool {
	if m == nil || r.Ready || r.Phase.Over() || r.Cause != "" || r.Message != "" {
		return false
	}
	if last == nil || last.Token != r.Token {
		return true
	}
	return last.Session == r.Session && last.Cause == "" && (!last.Ready || m.Goal == records.GoalStop)
}

// gather puts minor reports off while there is no other to be written with them, for gatherTime at most.
func (c *reportWriter) gather(units []pendingReport) []pendingReport {
	if len(units) == 0 {
		return nil
	}
	if !slices.ContainsFunc(units, func(p pendingReport) bool { return !p.minor }) {
		if c.gathering.IsZero() {
			c.gathering = time.Now()
			time.AfterFunc(gatherTime, c.added.Notify)
		}
		if time.Since(c.gathering) < gatherTime {
			for _, p := range units {
				c.requeue(p)
			}
			return nil
		}
	}
	c.gathering = time.Time{}
	return units
}

// Of many reports that nothing was decided about, as of a Parallel set that comes up, more are under way while they are written:
// after manyReports at once the next wait restHops times as long as the write took, restMost at most. Fewer wait for nothing.
const (
	manyReports = 10
	restHops    = 4
	restMost    = 10 * time.Millisecond
)

// restAfter is how long the next reports wait after so many were written by themselves, in such a time.
func restAfter(reports int, took time.Duration) time.Duration {
	if reports < manyReports {
		return 0
	}
	return min(restHops*took, restMost)
}
