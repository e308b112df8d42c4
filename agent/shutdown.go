package agent

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/stead-project/stead/agent/worker"
	"github.com/stead-project/stead/internal/backoff"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
)

const (
	// lookTime is how often it is looked at how far the members are, while the host is being shut down.
	lookTime = 200 * time.Millisecond
	// awayTime is how long the agent waits for a server that is away.
	awayTime = 10 * time.Second
	// clearTime is what is left of the time of a shutdown when all graces are over: for what ends a life after its processes.
	clearTime = 5 * time.Second
	// askTime is how long before the agent stops them itself servers are asked to stop all that are left.
	askTime = 10 * time.Second
	// tellTime is how long the last ends may take to be stored.
	tellTime = 3 * time.Second
)

// shutdown is how far the shutdown of a host is.
type shutdown struct {
	passed, limit time.Duration // since it began, and in all
	away          time.Duration // since there was a session; 0: there is one
	open, untold  int           // lives, and ends that no server has stored yet
	grace         time.Duration // the longest of the open ones
	clear         time.Duration // since none is open
}

// shutdownStage is what is to be done now.
type shutdownStage int

const (
	inOrder shutdownStage = iota // servers have them stop in order
	atOnce                       // and now all that are left
	byAgent                      // the agent stops them
	ended                        // nothing is left, or no time
)

// stage is PURE. Servers have as much of the time as the longest grace leaves.
func (s shutdown) stage() shutdownStage {
	left := s.limit - s.passed - s.grace - clearTime
	switch {
	case s.passed >= s.limit:
		return ended
	case s.open == 0 && (s.untold == 0 || s.away > 0 || s.clear >= tellTime):
		return ended
	case s.away >= awayTime, left <= 0:
		return byAgent
	case left <= askTime:
		return atOnce
	}
	return inOrder
}

// Shutdown has all lives of this node end, for its host is being shut down: servers are told, which have them stop in order (SEMANTICS
// Part 4, Planned absence), and what they do not stop in time the agent stops itself. It returns when none is left, or after
// limit; Run must run, and ends afterwards: members that start in between are not waited for.
func (a *Agent) Shutdown(ctx context.Context, limit time.Duration) {
	begun := time.Now()
	var lost, cleared time.Time
	for before := inOrder; ; {
		now := time.Now()
		s := a.shutdownNow()
		s.passed, s.limit = now.Sub(begun), limit
		s.away, s.clear = since(&lost, s.away > 0, now), since(&cleared, s.open == 0, now)
		stage := s.stage()
		if stage != before || s.passed == 0 {
			a.log.Info("host is being shut down, members stop", "stage", stage.String(), "members", s.open, "left", (limit - s.passed).Round(time.Second))
			before = stage
		}
		switch stage {
		case ended:
			return
		case byAgent:
			by := begun.Add(limit - clearTime)
			a.workers.each(func(_ spec.Identity, w *worker.Worker) { w.StopHere(records.ReasonNodeShutdown, by) })
		}
		a.said.shuttingDown(stage != inOrder)
		if !backoff.Sleep(ctx, lookTime) {
			return
		}
	}
}

// String is for the log.
func (s shutdownStage) String() string {
	return [...]string{"in order", "all at once", "by the agent itself", "ended"}[s]
}

// since is for how long something has been so; at least a moment, if it is so now.
func since(from *time.Time, is bool, now time.Time) time.Duration {
	switch {
	case !is:
		*from = time.Time{}
		return 0
	case from.IsZero():
		*from = now
	}
	return max(now.Sub(*from), 1)
}

// shutdownNow looks at what is open; away is at least a moment, if there is no session.
func (a *Agent) shutdownNow() (s shutdown) {
	select {
	case <-a.running:
	default:
		s.open, s.away = 1, 1 // what is here is not known yet
		return s
	}
	a.workers.each(func(_ spec.Identity, w *worker.Worker) {
		if grace, open := w.Open(); open {
			s.open++
			s.grace = max(s.grace, grace)
		}
	})
	for _, e := range a.ledger.Entries() {
		s.untold += len(e.Ends)
	}
	s.away = 1
	if client := a.client.Load(); client != nil {
		if age, _ := client.Contact(); age > 0 {
			s.away = 0
		}
	}
	return s
}

// said is what the node says of itself: what its host is short of, and that it is being shut down.
type said struct {
	take func([]records.NodeCondition)

	mu   sync.Mutex
	host []records.NodeCondition
	own  []records.NodeCondition
}

func (s *said) set(host []records.NodeCondition) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.host = host
	s.say()
}

func (s *said) shuttingDown(atOnce bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.own) > 0 && s.own[0].AtOnce == atOnce {
		return
	}
	s.own = []records.NodeCondition{{
		Type: records.ShuttingDown, Status: "True", AtOnce: atOnce, LastTransitionTime: time.Now().UTC().Truncate(time.Second),
		Message: "its members stop, and start again after the boot",
	}}
	s.say()
}

// say is called with the lock.
func (s *said) say() {
	all := slices.Concat(s.host, s.own)
	slices.SortStableFunc(all, records.NodeCondition.Compare)
	s.take(all)
}
