package dispatch

import (
	"log/slog"
	"maps"
	"strings"
	"testing"

	"github.com/stead-project/stead/spec"

	"github.com/stead-project/stead/server/servertest"
)

// What nodes say in vain is counted each time, and logged once a node and kind: who says it
// without end fills no disk.
func TestRefusalsAreCountedAndLoggedOnce(t *testing.T) {
	logs := &servertest.Logs{}
	f := newRefusals(slog.New(slog.NewTextHandler(logs, nil)))
	for _, step := range []struct {
		node  string
		limit Limit
		lines int // in all
	}{{"n1", LimitOwner, 1}, {"n1", LimitOwner, 1}, {"n1", LimitRate, 2}, {"n2", LimitOwner, 3}, {"n2", LimitOwner, 3}} {
		f.add(spec.NodeName(step.node), step.limit, 2, "why")
		if got := strings.Count(logs.String(), "err=why"); got != step.lines {
			t.Errorf("%s, %s: %d lines, want %d", step.node, step.limit, got, step.lines)
		}
	}
	s := &Server{refusals: f}
	if got, want := s.Refusals(), map[Limit]int64{LimitOwner: 8, LimitRate: 2}; !maps.Equal(got, want) {
		t.Errorf("counted %v, want %v", got, want)
	}
}
