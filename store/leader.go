package store

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
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

// campaign waits until nobody leads and tries once to become leader.
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

// take writes the leader key if nobody has it, and returns its create-revision. An
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
