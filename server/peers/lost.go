package peers

import (
	"context"
	"sync"
	"time"

	"github.com/stead-project/stead/internal/backoff"
	"github.com/stead-project/stead/proto"
	"github.com/stead-project/stead/server/quorum"
)

// asked is what was said last of a store without a majority: many calls fail at once.
type asked struct {
	mu   sync.Mutex
	at   time.Time
	text string
}

// askAgain is how long what was said last is said again.
const askAgain = 2 * time.Second

// Lost says, for a call that failed, that the store has no majority, and what to do; "": it is not that.
func (s *Service) Lost(ctx context.Context) string {
	if s.cfg.Members == nil || s.cfg.Members.Leader() != "" {
		return ""
	}
	s.asked.mu.Lock()
	defer s.asked.mu.Unlock()
	if time.Since(s.asked.at) < askAgain {
		return s.asked.text
	}
	v := s.inside()
	s.ask(ctx, &v)
	s.asked.text, s.asked.at = quorum.Lost(v.members, v.alive), time.Now()
	return s.asked.text
}

// quorumEvery is how often it is looked for callers who are told of a lost majority.
const quorumEvery = time.Second

// Quorum implements proto.ServersServer.
func (s *Service) Quorum(_ *proto.QuorumRequest, stream proto.Servers_QuorumServer) error {
	if s.cfg.Members == nil {
		return errNoPeers
	}
	ctx := stream.Context()
	for told, first := "", true; ; first = false {
		text := s.Lost(ctx)
		if first || text != told {
			if err := stream.Send(&proto.QuorumState{Lost: text}); err != nil {
				return err
			}
			told = text
		}
		if !backoff.Sleep(ctx, quorumEvery) {
			return nil
		}
	}
}
