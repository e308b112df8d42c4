package dispatch

import (
	"log/slog"
	"maps"
	"sync"

	"github.com/stead-project/stead/spec"
)

// Limit names what a node said in vain; it is the label of a metric.
type Limit string

// The limits.
const (
	// LimitOwner: it spoke of a volume that is not its own.
	LimitOwner Limit = "volume-owner"
)

// refusals counts what nodes said in vain, and logs each kind once for each node.
type refusals struct {
	log *slog.Logger

	mu     sync.Mutex
	counts map[Limit]int64
	told   map[refusal]bool // bounded: nodes that have a session, times kinds
}

type refusal struct {
	node  spec.NodeName
	limit Limit
}

func newRefusals(log *slog.Logger) *refusals {
	return &refusals{log: log, counts: map[Limit]int64{}, told: map[refusal]bool{}}
}

// add counts n refusals; why is that of one of them.
func (f *refusals) add(node spec.NodeName, limit Limit, n int, why string) {
	f.mu.Lock()
	f.counts[limit] += int64(n)
	known := f.told[refusal{node, limit}]
	f.told[refusal{node, limit}] = true
	f.mu.Unlock()
	if !known {
		f.log.Warn("what a node said was ignored", "node", node, "reason", string(limit), "err", why)
	}
}

// Refusals are the numbers of what nodes said in vain, since the server started.
func (s *Server) Refusals() map[Limit]int64 {
	s.refusals.mu.Lock()
	defer s.refusals.mu.Unlock()
	return maps.Clone(s.refusals.counts)
}
