package dispatch

import (
	"log/slog"
	"maps"
	"sync"

	"github.com/stead-project/stead/spec"
)

// Limit names why something that a node said was refused; it is the label of a metric.
type Limit string

// The limits.
const (
	// LimitOwner: it reported a volume that is not its own.
	LimitOwner Limit = "volume-owner"
)

// refusals counts what was refused of nodes, and logs each kind once for each node.
type refusals struct {
	log *slog.Logger

	mu     sync.Mutex
	counts map[Limit]int64
	logged map[refusal]bool // bounded: nodes that have a session, times kinds
}

type refusal struct {
	node  spec.NodeName
	limit Limit
}

func newRefusals(log *slog.Logger) *refusals {
	return &refusals{log: log, counts: map[Limit]int64{}, logged: map[refusal]bool{}}
}

// add counts n refusals; why is that of one of them.
func (f *refusals) add(node spec.NodeName, limit Limit, n int, why string) {
	f.mu.Lock()
	f.counts[limit] += int64(n)
	known := f.logged[refusal{node, limit}]
	f.logged[refusal{node, limit}] = true
	f.mu.Unlock()
	if !known {
		f.log.Warn("message of a node refused", "node", node, "reason", string(limit), "err", why)
	}
}

// Refusals counts what was refused of nodes since the server started.
func (s *Server) Refusals() map[Limit]int64 {
	s.refusals.mu.Lock()
	defer s.refusals.mu.Unlock()
	return maps.Clone(s.refusals.counts)
}
