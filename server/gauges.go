package server

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/server/cache"
	"github.com/stead-project/stead/server/dispatch"
	"github.com/stead-project/stead/server/engine"
	"github.com/stead-project/stead/server/plan"
	"github.com/stead-project/stead/server/proof"
)

var (
	setsGauge     = prometheus.NewDesc("stead_sets", "Sets.", nil, nil)
	membersGauge  = prometheus.NewDesc("stead_members", "Members that have a life, by its phase.", []string{"phase"}, nil)
	wantedGauge   = prometheus.NewDesc("stead_members_wanted", "Members that sets ask for: the sum of their replicas.", nil, nil)
	readyGauge    = prometheus.NewDesc("stead_members_ready", "Members that are ready, on a node with a session.", nil, nil)
	blockedGauge  = prometheus.NewDesc("stead_members_blocked", "Members that wait, by reason; only at the leader.", []string{"reason"}, nil)
	restartsGauge = prometheus.NewDesc("stead_member_restarts", "Restarts in place of the containers of the lives that are there now.", nil, nil)
	nodesGauge    = prometheus.NewDesc("stead_nodes", "Nodes by whether they have a session: live, silent, lost, when nothing of theirs can run any more, or enrolled, when they have not said hello yet.", []string{"state"}, nil)
	sessionsGauge = prometheus.NewDesc("stead_sessions", "Nodes with a session at this server.", nil, nil)
	leaderGauge   = prometheus.NewDesc("stead_leader", "1 where this server leads.", nil, nil)
	bytesGauge    = prometheus.NewDesc("stead_store_bytes", "Size of the store.", nil, nil)
	quotaGauge    = prometheus.NewDesc("stead_store_quota_bytes", "Size at which the store refuses writes; absent when it is not known.", nil, nil)
	alarmGauge    = prometheus.NewDesc("stead_store_alarm", "1 while the store complains, as NOSPACE.", nil, nil)
	answerGauge   = prometheus.NewDesc("stead_store_answer_seconds", "How long the store took to answer this scrape; absent when it did not.", nil, nil)
	votersGauge   = prometheus.NewDesc("stead_store_voters", "Servers that vote in the embedded store, as this one knows; absent where it has no peers.", nil, nil)
	quorumGauge   = prometheus.NewDesc("stead_store_quorum", "1 while the embedded store has a leader that this server knows, 0 while most servers are away; absent where it has no peers.", nil, nil)
	indexGauge    = prometheus.NewDesc("stead_store_index", "The last write that this server's member of the embedded store has applied; absent where it has no peers.", nil, nil)
	ignoredCount  = prometheus.NewDesc("stead_ignored_total", "What nodes and strangers said that this server did not take, by the limit that it broke.", []string{"limit"}, nil)
	backupAge     = prometheus.NewDesc("stead_backup_age_seconds", "How old this server's newest good backup of the store is; absent when it has none, or makes none on time.", nil, nil)
	backupFailing = prometheus.NewDesc("stead_backup_failing", "1 while this server cannot make its backups; absent when it makes none on time.", nil, nil)
	auditLost     = prometheus.NewDesc("stead_audit_lost_total", "Entries of the audit log that this server could not write; absent where it keeps none.", nil, nil)
	planTime      = prometheus.NewDesc("stead_plan_seconds", "How long it took to decide about one set.", nil, nil)
	commitTime    = prometheus.NewDesc("stead_commit_seconds", "How long the store took for the decisions about one set.", nil, nil)
)

// gauges looks at the world when it is asked.
type gauges struct {
	s *Server
	d *dispatch.Server
	// ctx ends with the server; a Collector is given none.
	ctx context.Context
}

// Describe implements prometheus.Collector.
func (g *gauges) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{
		setsGauge, wantedGauge, membersGauge, readyGauge, blockedGauge, restartsGauge, nodesGauge, sessionsGauge, leaderGauge,
		bytesGauge, quotaGauge, alarmGauge, answerGauge, votersGauge, quorumGauge, indexGauge, ignoredCount, backupAge, backupFailing, auditLost, planTime, commitTime, quotaUsedGauge, quotaHardGauge,
	} {
		out <- d
	}
}

// Collect implements prometheus.Collector.
func (g *gauges) Collect(out chan<- prometheus.Metric) {
	tell := func(d *prometheus.Desc, v float64, labels ...string) {
		out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	c := g.count()
	tell(setsGauge, float64(c.sets))
	tell(wantedGauge, float64(c.wanted))
	for phase, n := range c.phases {
		tell(membersGauge, float64(n), string(phase))
	}
	tell(readyGauge, float64(c.ready))
	tell(restartsGauge, float64(c.restarts))
	for state, label := range nodeLabels {
		tell(nodesGauge, float64(c.nodes[state]), label)
	}
	tell(sessionsGauge, float64(g.d.Sessions()))
	tell(leaderGauge, float64(c.leads))
	stats := g.s.engine.Stats()
	for reason, n := range stats.Blocked {
		tell(blockedGauge, float64(n), string(reason))
	}
	for d, h := range map[*prometheus.Desc]engine.Histogram{planTime: stats.Plan, commitTime: stats.Commit} {
		out <- prometheus.MustNewConstHistogram(d, h.Count, h.Seconds, h.Buckets)
	}
	for limit, n := range g.d.Refusals() {
		out <- prometheus.MustNewConstMetric(ignoredCount, prometheus.CounterValue, float64(n), string(limit))
	}
	for limit, n := range g.s.refused.Counts() {
		out <- prometheus.MustNewConstMetric(ignoredCount, prometheus.CounterValue, float64(n), limit)
	}
	if g.s.audit != nil {
		out <- prometheus.MustNewConstMetric(auditLost, prometheus.CounterValue, float64(g.s.audit.Lost()))
	}
	g.quotas(tell)
	g.backups(tell)
	g.peers(tell)
	g.store(tell)
}

func (g *gauges) backups(tell func(*prometheus.Desc, float64, ...string)) {
	if g.s.backups == nil {
		return
	}
	st, failing := g.s.backups.State(), 0.0
	if st.Trouble != "" {
		failing = 1
	}
	tell(backupFailing, failing)
	if !st.LastGood.IsZero() {
		tell(backupAge, max(0, time.Since(st.LastGood).Seconds()))
	}
}

// counted is what a look at the world finds.
type counted struct {
	sets, wanted, ready, restarts, leads int
	phases                               map[records.Phase]int
	nodes                                map[string]int // by cache.NodeState.State
}

// nodeLabels are the states of nodes as nodesGauge has them.
var nodeLabels = map[string]string{
	cache.NodeReady: "live", cache.NodeSilent: "silent", cache.NodeLost: "lost", cache.NodeEnrolled: "enrolled",
}

func (g *gauges) count() counted {
	c := counted{phases: map[records.Phase]int{}, nodes: map[string]int{}}
	g.s.cache.Look(func(v cache.View) {
		judge := proof.NewJudge(v.Nodes(), v.Epoch())
		for _, ref := range v.Sets() {
			w := v.World(ref)
			c.sets++
			if !w.Set.Deleting {
				c.wanted += w.Set.Replicas()
			}
			for _, slot := range w.Slots {
				c.member(&slot)
				if judge.EffectiveReady(slot.Member, slot.Report) {
					c.ready++
				}
			}
		}
		for _, n := range cache.NodeStates(v, g.s.engine.Nodes(v)) {
			c.nodes[n.State]++
		}
		if v.Leader().Value == g.s.cfg.Name {
			c.leads = 1
		}
	})
	return c
}

// member counts one that has a life; without a report it is assigned.
func (c *counted) member(slot *plan.Slot) {
	switch {
	case slot.Member == nil:
		return
	case slot.Report == nil:
		c.phases[records.PhaseAssigned]++
		return
	}
	c.phases[slot.Report.Phase]++
	for _, box := range slot.Report.Containers {
		c.restarts += box.Restarts
	}
}

func (g *gauges) peers(tell func(*prometheus.Desc, float64, ...string)) {
	m := g.s.cfg.Members
	if m == nil {
		return
	}
	voters, quorum := 0, 0.0
	for _, one := range m.Known() {
		if !one.Learner {
			voters++
		}
	}
	if m.Leader() != "" {
		quorum = 1
	}
	tell(votersGauge, float64(voters))
	tell(quorumGauge, quorum)
	tell(indexGauge, float64(m.Health().Index))
}

func (g *gauges) store(tell func(*prometheus.Desc, float64, ...string)) {
	ctx, cancel := context.WithTimeout(g.ctx, lookTime)
	defer cancel()
	began := time.Now()
	st, err := g.s.cfg.Store.Status(ctx)
	if err != nil {
		return
	}
	tell(answerGauge, time.Since(began).Seconds())
	tell(bytesGauge, float64(st.SizeBytes))
	if st.QuotaBytes > 0 {
		tell(quotaGauge, float64(st.QuotaBytes))
	}
	alarm := 0.0
	if st.Alarm != "" {
		alarm = 1
	}
	tell(alarmGauge, alarm)
}
