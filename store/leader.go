package store

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/stead-project/stead/internal/backoff"
)

// Leadership is one term of one candidate.
type Leadership struct {
	Value   string // the candidate's id
	Created Rev    // create-revision of the leader key: names this very term
}

// Compare is what every transaction of a leader compares (SAFETY S7): it fails for
// good once another term began, also one of the same candidate.
func (l Leadership) Compare() Compare { return Created(LeaderKey, l.Created) }

// Candidate runs for the leader key. Leadership is never believed: it only tells
// when to work; that a deposed leader writes nothing is kept by Leadership.Compare.
type Candidate struct {
	store Store
	id    string
	ttl   time.Duration
	log   *slog.Logger
}

// NewCandidate makes a candidate; id says who leads (for people, not necessarily
// unique), ttl how long the leader key outlives a leader that fell silent (whole
// seconds, at least 1s).
func NewCandidate(s Store, id string, ttl time.Duration, log *slog.Logger) *Candidate {
	return &Candidate{store: s, id: id, ttl: max(ttl.Truncate(time.Second), time.Second), log: log}
}

// The pauses after a failed campaign or renewal.
const (
	leastPause = 50 * time.Millisecond
	mostPause  = 2 * time.Second
)

// errLost ends the context of a leadership that is over.
var errLost = errors.New("leadership is lost")

// Run campaigns until ctx ends, and calls lead for each term it wins, one at a
// time. The context given to lead ends when the lease may be over (ttl after the
// last successful renewal was asked), when the leader key is gone or another's, or
// with ctx. When lead returns the term is given up at once; with nil, or after its
// context ended, Run campaigns again. Run returns nil when ctx ends, and the error
// of lead if it returned one while it still led.
func (c *Candidate) Run(ctx context.Context, lead func(context.Context, Leadership) error) error {
	failures := 0
	for ctx.Err() == nil {
		t, err := c.campaign(ctx)
		if err != nil {
			failures++
			if failures == 1 && ctx.Err() == nil && !errors.Is(err, ErrConflict) {
				c.log.Warn("campaign failed, trying again", "err", err)
			}
			backoff.Sleep(ctx, backoff.After(leastPause, mostPause, failures))
			continue
		}
		failures = 0
		if err := c.serve(ctx, t, lead); err != nil {
			return err
		}
	}
	return nil
}

// term is a won campaign: its leadership, its lease and the time to which the
// lease is known to live.
type term struct {
	Leadership
	lease LeaseID
	ends  time.Time
}

// campaign waits until no server leads and tries once to become leader.
func (c *Candidate) campaign(ctx context.Context) (term, error) {
	if err := c.vacant(ctx); err != nil {
		return term{}, err
	}
	asked := time.Now()
	lease, err := c.store.Grant(ctx, c.ttl)
	if err != nil {
		return term{}, err
	}
	t := term{lease: lease, ends: asked.Add(c.ttl)}
	t.Value = c.id
	t.Created, err = c.take(ctx, t)
	if err != nil {
		c.resign(ctx, lease)
		return term{}, fmt.Errorf("take leadership: %w", err)
	}
	return t, nil
}

// vacant blocks while the leader key exists.
func (c *Candidate) vacant(ctx context.Context) error {
	rev, kvs, err := c.store.Get(ctx, LeaderKey)
	if err != nil {
		return err
	}
	if _, led := kvs[LeaderKey]; !led {
		return nil
	}
	return c.watchLeader(ctx, rev, func(e Event) bool { return e.Delete })
}

// watchLeader returns nil after the first event of the leader key after from for
// which over holds.
func (c *Candidate) watchLeader(ctx context.Context, from Rev, over func(Event) bool) error {
	w, err := c.store.Watch(ctx, LeaderKey, from)
	if err != nil {
		return err
	}
	defer w.Close()
	for {
		batch, err := w.Next(ctx)
		if err != nil {
			return err
		}
		for _, e := range batch.Events {
			if e.Key == LeaderKey && over(e) {
				return nil
			}
		}
	}
}

// take writes the leader key if there is none, and returns its create-revision. An
// unknown outcome is read again: our lease on the key tells that it is ours.
func (c *Candidate) take(ctx context.Context, t term) (Rev, error) {
	ctx, cancel := context.WithDeadline(ctx, t.ends)
	defer cancel()
	rev, err := c.store.Commit(ctx, Txn{
		If:   []Compare{Absent(LeaderKey)},
		Then: []Op{PutLeased(LeaderKey, []byte(c.id), t.lease)},
	})
	if !errors.Is(err, ErrUnknown) {
		return rev, err
	}
	_, kvs, again := c.store.Get(ctx, LeaderKey)
	if again != nil {
		return 0, again
	}
	if kv, ok := kvs[LeaderKey]; ok && kv.Lease == t.lease {
		return kv.Create, nil
	}
	return 0, err
}

// resign ends the lease and with it the leader key. It works after ctx ended too,
// for at most a third of the ttl; when it cannot, the lease runs out by itself.
func (c *Candidate) resign(ctx context.Context, lease LeaseID) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), c.ttl/3)
	defer cancel()
	if err := c.store.Revoke(ctx, lease); err != nil {
		c.log.Debug("leader lease left to run out", "err", err)
	}
}

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
		if err != nil { // the lease's own limit ends the term if this continues
			backoff.Sleep(ctx, leastPause)
			continue
		}
		if kvs[LeaderKey].Create != t.Created {
			return fmt.Errorf("%w: the leader key is gone", errLost)
		}
		from = rev
	}
}
