package server

import (
	"context"
	"fmt"

	"github.com/stead-project/stead/server/cache"
	"github.com/stead-project/stead/store"
)

// followFormat ends the server when another one has stored what this one would pass over.
func (s *Server) followFormat(ctx context.Context) error {
	sub := s.cache.Subscribe()
	defer sub.Close()
	for {
		var why string
		s.cache.Look(func(v cache.View) { why = cache.Format(v).Refusal(store.Format) })
		if why != "" {
			return fmt.Errorf("%w: %s", store.ErrFormat, why)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-sub.C():
			sub.Take()
		}
	}
}
