package dispatch

import (
	"time"

	"github.com/stead-project/stead/internal/trace"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/server/cache"
	"github.com/stead-project/stead/spec"
)

// firstReady returns the life if it is traced, and by r it is ready for the first time; last is the report before.
func firstReady(r *records.Report, m *records.Member, last *records.Report) *records.Member {
	if m == nil || m.Trace == "" || !r.Ready || last != nil && last.Token == r.Token && (last.Ready || last.ReadyOnce) {
		return nil
	}
	return m
}

// traceReady tells of a life whose first report as a ready one is stored: its start, and the way of the report.
func (c *reportWriter) traceReady(p pendingReport) {
	if c.trace == nil || p.first == nil {
		return
	}
	m, now := p.first, time.Now()
	parent := ""
	c.cache.Look(func(v cache.View) {
		if set := v.Set(m.ID.Ref()); set != nil {
			parent = trace.Within(m.Trace, set.Trace)
		}
	})
	c.trace.Tell(trace.Span{Name: "report", Parent: m.Trace, Began: p.report.At, Ended: now})
	c.trace.Tell(trace.Span{Name: "start " + m.ID.MemberName(), Self: m.Trace, Parent: parent, Began: m.BeganAt, Ended: now, About: []string{
		"stead.namespace", string(m.ID.Namespace), "stead.set", string(m.ID.Set), "stead.node", string(m.Node),
		"stead.token", m.Token.String(), "stead.reason", string(m.Reason),
	}})
}

// tracedLives are the contexts of lives that were not reported yet.
func (s *Server) tracedLives(v cache.View, lives []records.Life) (all []trace.Context) {
	if s.cfg.Trace == nil {
		return nil
	}
	for i := range lives {
		m := &lives[i].Member
		if r := v.Report(m.ID); m.Trace != "" && m.Goal == records.GoalRun && (r == nil || r.Token != m.Token) {
			all = append(all, m.Trace)
		}
	}
	return all
}

// traceSent tells that lives were sent to a node.
func (s *Server) traceSent(lives []trace.Context, node spec.NodeName, began time.Time) {
	now := time.Now()
	for _, life := range lives {
		s.cfg.Trace.Tell(trace.Span{Name: "send", Parent: life, Began: began, Ended: now, About: []string{"stead.node", string(node)}})
	}
}
