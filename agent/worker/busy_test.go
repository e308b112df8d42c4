package worker

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stead-project/stead/agent/runtime"
	"github.com/stead-project/stead/records"
)

func TestASpellOfBeingBusyOutlastsShortPauses(t *testing.T) {
	const m = time.Minute
	var s BusySpell
	for i, c := range []struct {
		at   time.Duration
		busy bool
		want time.Duration // reported, if it is busy
	}{
		{0, false, 0}, {10 * m, true, 0}, {12*m + time.Second, true, 2 * m},
		{13 * m, false, 0}, {13*m + time.Second, true, 3 * m}, // the file was away for a moment
		{20 * m, false, 0}, {21 * m, false, 0}, {24 * m, true, 14 * m}, // for four minutes since it was seen to be away
		{30 * m, false, 0}, {35 * m, true, 0}, {36 * m, true, m}, // for as long as ends it
		{36*m + 25*time.Hour, true, busyMost},
	} {
		s = s.next(c.at, c.busy)
		if got := s.lasted(c.at); c.busy && got != c.want {
			t.Errorf("%d, at %s: got %s, want %s", i, c.at, got, c.want)
		}
		if _, grows := s.untilLonger(c.at); grows != (c.busy && c.want < busyMost) {
			t.Errorf("%d, at %s: it grows: %v", i, c.at, grows)
		}
	}
}

// speaker is what a container says to each agent that follows it.
type speaker struct {
	mu     sync.Mutex
	claim  records.Claim
	report func(records.Claim)
}

func (s *speaker) follow(ctx context.Context, _ runtime.ContainerID, report func(records.Claim)) {
	s.mu.Lock()
	s.report = report
	claim := s.claim
	s.mu.Unlock()
	report(claim)
}

func (s *speaker) say(c records.Claim) {
	s.mu.Lock()
	s.claim = c
	report := s.report
	s.mu.Unlock()
	report(c)
}

// speaking is a node on which a container says something of its member.
func speaking(n *node) *speaker {
	s := &speaker{}
	n.change = func(c *Config) { c.Self = s.follow }
	return s
}

// For how long a member is busy is reported each minute, neither a flap of the file nor an agent that is killed begins it anew,
// and nothing is written while it is not.
func TestForHowLongAMemberIsBusyIsReported(t *testing.T) {
	scenario(t, func(t *testing.T, n *node) {
		s := speaking(n)
		n.run()
		n.w.Tell(life(5, records.GoalRun))
		n.wantReady()
		busy := records.Claim{Busy: "feeds db-1"}
		want := func(d time.Duration) {
			t.Helper()
			n.wantLast("busy for "+d.String(), func(r records.Report) bool { return r.Claim.Busy == busy.Busy && r.Claim.BusyFor == d })
		}
		s.say(busy)
		want(0)
		before := len(n.all())
		time.Sleep(3*time.Minute + time.Second)
		want(3 * time.Minute)
		if got := len(n.all()) - before; got != 3 {
			t.Errorf("%d reports in three minutes, want 3", got)
		}
		s.say(records.Claim{})
		n.wantLast("not busy", func(r records.Report) bool { return r.Claim == records.Claim{} })
		s.say(busy)
		want(3 * time.Minute)
		n.kill()
		time.Sleep(10 * time.Minute)
		n.run()
		n.w.Tell(life(5, records.GoalRun))
		want(13 * time.Minute)
		s.say(records.Claim{})
		_ = n.last()
		before = len(n.all())
		time.Sleep(10 * time.Minute)
		if got := len(n.all()) - before; got != 0 {
			t.Errorf("%d reports in ten minutes in which nothing was said, want none", got)
		}
		s.say(busy)
		want(0)
	})
}
