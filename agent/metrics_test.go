package agent

import (
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/stead-project/stead/records"
)

// metrics is what a scrape sees, by name and the value of its label.
func (n *node) metrics() map[string]float64 {
	n.t.Helper()
	registry := prometheus.NewRegistry()
	must(n.t, registry.Register(n.agent))
	families, err := registry.Gather()
	must(n.t, err)
	seen := map[string]float64{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			name := f.GetName()
			for _, l := range m.GetLabel() {
				name += " " + l.GetValue()
			}
			seen[name] = m.GetGauge().GetValue()
		}
	}
	return seen
}

func TestMetricsTellMembersAndSession(t *testing.T) {
	boxOf(t, time.Second, func(t *testing.T, n *node) {
		n.script.say(wanted(10, n.life(5, records.GoalRun)))
		n.wantReady(tok(5))
		time.Sleep(time.Minute)
		got := n.metrics()
		for name, want := range map[string]float64{
			"stead_agent_members Running": 1, "stead_agent_members_ready": 1, "stead_agent_restarts": 0,
		} {
			if v, there := got[name]; !there || v != want {
				t.Errorf("%s is %v (there: %v), want %v", name, v, there, want)
			}
		}
		if age := got["stead_agent_session_age_seconds"]; age < 60 {
			t.Errorf("the session is %vs old, want a minute", age)
		}
		if margin := got["stead_agent_session_margin_seconds"]; margin <= 0 || margin > 1 {
			t.Errorf("the margin is %vs, want some of the one second that a session lasts", margin)
		}
		if margin := got["stead_agent_confirmed_margin_seconds"]; margin <= 0 || margin > 1 {
			t.Errorf("what members are told is confirmed for %vs, want some of the one second that a session lasts", margin)
		}
		n.script.say(wanted(11, n.life(5, records.GoalStop)))
		n.wantStopped(tok(5))
		if got := n.metrics(); got["stead_agent_members_ready"] != 0 || got["stead_agent_members Running"] != 0 {
			t.Errorf("a stopped member is counted: %v", got)
		}
		n.kill()
		time.Sleep(time.Minute)
		if margin := n.metrics()["stead_agent_confirmed_margin_seconds"]; margin >= -58 {
			t.Errorf("a minute after the last session what members are told is confirmed for %vs", margin)
		}
		if got := n.metrics(); got["stead_agent_session_age_seconds"] != 0 || got["stead_agent_session_margin_seconds"] != 0 {
			t.Errorf("a session that is over is told: %v", got)
		}
	})
}
