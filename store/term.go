package store

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/stead-project/stead/internal/backoff"
)

// serve calls lead for one term, keeps the lease meanwhile, and gives it up after.
func (c *Candidate) serve(ctx context.Context, t term, lead func(context.Context, Leadership) error) error {
	leading, end := context.WithCancelCause(ctx)
	var keepers sync.WaitGroup
	keepers.Go(func() { end(c.keep(leading, t, end)) })
	keepers.Go(func() { end(c.heed(leading, t)) })
	c.log.Info("leadership won", "revision", t.Created)
	err := lead(leading, t.Leadership)
	lost := leading.Err() != nil
	end(nil)
	keepers.Wait()
	c.resign(ctx, t.lease)
	if !lost {
		return err
	}
	if ctx.Err() == nil {
		c.log.Warn("leadership lost", "revision", t.Created, "err", context.Cause(leading))
	}
	return nil
}

// keep renews the lease every third of its ttl and returns why that ended. A timer
// of its own ends the term when the lease may be over, also while a renewal hangs.
func (c *Candidate) keep(ctx context.Context, t term, end context.CancelCauseFunc) error {
	overdue := fmt.Errorf("%w: no renewal succeeded in %v", errLost, c.ttl)
	limit := time.AfterFunc(time.Until(t.ends), func() { end(overdue) })
	defer limit.Stop()
	pause := c.ttl / 3
	for {
		backoff.Sleep(ctx, pause)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		asked := time.Now()
		try, cancel := context.WithDeadline(ctx, t.ends)
		err := c.store.Renew(try, t.lease)
		cancel()
		switch {
		case errors.Is(err, ErrLeaseGone):
			return fmt.Errorf("%w: %w", errLost, err)
		case err != nil:
			pause = min(c.ttl/10, mostPause)
		case !limit.Stop():
			return overdue // the limit came first: what it ended stays ended
		default:
			t.ends = asked.Add(c.ttl)
			limit.Reset(time.Until(t.ends))
			pause = c.ttl / 3
		}
	}
}

// heed returns when the leader key is no longer the term's.
func (c *Candidate) heed(ctx context.Context, t term) error {
	from := t.Created
	for {
		err := c.watchLeader(ctx, from, func(e Event) bool { return e.Delete || e.Create != t.Created })
		if err == nil {
			return fmt.Errorf("%w: the leader key is gone", errLost)
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		rev, kvs, err := c.store.Get(ctx, LeaderKey)
		if err != nil { // the lease's own limit ends the term if this goes on
			backoff.Sleep(ctx, leastPause)
			continue
		}
		if kvs[LeaderKey].Create != t.Created {
			return fmt.Errorf("%w: the leader key is gone", errLost)
		}
		from = rev
	}
}
