package server

import (
	"context"
	"strings"
	"time"

	"github.com/stead-project/stead/store"
)

const (
	// lookEvery is the time between two looks at the store's alarm.
	lookEvery = 5 * time.Second
	// shrinkEvery is the least time between two attempts to end it: each makes
	// everybody wait for as long as the store's data is copied.
	shrinkEvery = time.Minute
)

// keepSpace makes a store of our own that refuses writes for want of space give that
// of its history back, until ctx ends. What is stored is never touched: when it alone
// fills the quota the alarm stays, and 'stead status' says what people can do.
func (s *Server) keepSpace(ctx context.Context) error {
	var tried time.Time
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(lookEvery):
		}
		if !s.cfg.StoreOwned || !s.full(ctx) || !tried.IsZero() && time.Since(tried) < shrinkEvery {
			continue
		}
		err := s.cfg.Store.Shrink(ctx)
		tried = time.Now()
		if err != nil {
			s.cfg.Logger.Error("store is full", "err", err)
			continue
		}
		tried = time.Time{}
		s.cfg.Logger.Warn("store was full and gave back its history")
	}
}

// full reports whether the store says so; a store that does not answer does not.
func (s *Server) full(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, lookEvery)
	defer cancel()
	st, err := s.cfg.Store.Status(ctx)
	return err == nil && strings.Contains(st.Alarm, store.NoSpaceAlarm)
}
