package dispatch

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/stead-project/stead/server/world"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/store"
)

const (
	// maxPending bounds the lives of one session whose reports wait.
	maxPending = 20_000
	// unitsPerTxn keeps guards (two a report at most) and operations below store.MaxOps.
	unitsPerTxn = store.MaxOps / 2
	// attempts bounds how often one report is tried while its member keeps moving.
	attempts = 5
)

// committer writes reports of all sessions: whatever came while one transaction
// was under way goes into the next ones, so an idle server writes at once and a
// busy one in batches. Only the newest report of a life waits.
type committer struct {
	store store.Store
	world world.Reader
	log   *slog.Logger
	wake  chan struct{}
	rev   store.Rev // of the last commit: the world must show it before the next look

	mu      sync.Mutex
	pending map[*session]map[life]spec.Report
}

// unit is one report on its way into the store.
type unit struct {
	se     *session
	report spec.Report
	member store.Rev // mod-revision of the member it was judged by
}

func (u unit) life() life { return life{ID: u.report.ID, Token: u.report.Token} }

func newCommitter(s store.Store, w world.Reader, log *slog.Logger) *committer {
	return &committer{store: s, world: w, log: log, wake: make(chan struct{}, 1), pending: map[*session]map[life]spec.Report{}}
}

// add puts reports in line; it does not block.
func (c *committer) add(se *session, reports []spec.Report) {
	c.mu.Lock()
	mine := c.pending[se]
	if mine == nil {
		mine = map[life]spec.Report{}
		c.pending[se] = mine
	}
	for _, r := range reports {
		l := life{ID: r.ID, Token: r.Token}
		if old, ok := mine[l]; !ok || r.Seq > old.Seq || r.Phase.Over() {
			mine[l] = r
		}
	}
	tooMany := len(mine) > maxPending
	c.mu.Unlock()
	if tooMany {
		se.abort(codes.ResourceExhausted, "too many lives are reported at once")
	}
	c.ring()
}

func (c *committer) ring() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

func (c *committer) run(ctx context.Context) {
	wait := time.Duration(0)
	for {
		select {
		case <-ctx.Done():
			return
		case <-c.wake:
		}
		left := c.round(ctx)
		if len(left) == 0 {
			wait = 0
			continue
		}
		if wait = min(max(2*wait, 50*time.Millisecond), 2*time.Second); wait == 50*time.Millisecond {
			c.log.Warn("reports not stored", "reports", len(left))
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		}
		for _, u := range left {
			c.putBack(u)
		}
		c.ring()
	}
}

// putBack lines up a report again, unless a newer one waits.
func (c *committer) putBack(u unit) {
	c.mu.Lock()
	defer c.mu.Unlock()
	mine := c.pending[u.se]
	if mine == nil {
		mine = map[life]spec.Report{}
		c.pending[u.se] = mine
	}
	if _, ok := mine[u.life()]; !ok {
		mine[u.life()] = u.report
	}
}

// round writes all that waits; it returns what the store could not take now.
func (c *committer) round(ctx context.Context) (left []unit) {
	c.mu.Lock()
	pending := c.pending
	c.pending = map[*session]map[life]spec.Report{}
	c.mu.Unlock()
	if err := c.world.Wait(ctx, c.rev); err != nil {
		return nil // ctx ended
	}
	var units []unit
	c.world.Look(func(v world.View) {
		for se, reports := range pending {
			for l, r := range reports {
				m, rev := v.Member(l.ID)
				if m == nil && rev != 0 {
					continue // unreadable: what it proves must not be answered
				}
				last, _ := v.Report(l.ID)
				if u, ok := c.decide(unit{se, r, rev}, m, last, minReady(v, l.ID)); ok {
					units = append(units, u)
				}
			}
		}
	})
	for len(units) > 0 {
		n := min(len(units), unitsPerTxn)
		left = append(left, c.commit(ctx, units[:n])...)
		units = units[n:]
	}
	return left
}

func minReady(v world.View, id spec.Identity) time.Duration {
	set, _ := v.Set(id.Ref())
	if set == nil {
		return 0
	}
	return time.Duration(set.Spec.MinReadySeconds) * time.Second
}

// decide answers a report that need not be stored, or returns it as it is to be.
func (c *committer) decide(u unit, m *spec.Member, last *spec.Report, minReady time.Duration) (unit, bool) {
	r, v := judge(u.report, u.se.seat, m, last, minReady)
	r.Session = u.se.id
	u.report = r
	if v != keep {
		u.se.out.addStored(u.life(), r.Seq, v == stale)
	}
	return u, v == keep
}

// commit writes units in one transaction; when it cannot be, in halves, until one
// is blamed. It returns those that the store could not take now.
func (c *committer) commit(ctx context.Context, units []unit) (left []unit) {
	err := c.write(ctx, units)
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return units
	case errors.Is(err, store.ErrConflict), errors.Is(err, store.ErrUnknown), errors.Is(err, store.ErrTooLarge):
		if len(units) > 1 {
			half := len(units) / 2
			return append(c.commit(ctx, units[:half]), c.commit(ctx, units[half:])...)
		}
		return c.settle(ctx, units[0])
	}
	return units
}

// write stores units and answers them. Each is guarded by its member and by the
// session key as this session wrote it: its create-revision would not tell, for
// another session takes the key over by a put.
func (c *committer) write(ctx context.Context, units []unit) error {
	ctx, cancel := context.WithTimeout(ctx, storeTime)
	defer cancel()
	var txn store.Txn
	guarded := map[*session]bool{}
	for _, u := range units {
		if !guarded[u.se] {
			guarded[u.se] = true
			txn.If = append(txn.If, store.Seen(store.SessionKey(u.se.node), u.se.rev))
		}
		txn.If = append(txn.If, store.Seen(store.MemberKey(u.report.ID), u.member))
		txn.Then = append(txn.Then, store.Put(store.ReportKey(u.report.ID), store.Encode(u.report)))
	}
	rev, err := c.store.Commit(ctx, txn)
	if err != nil {
		return err
	}
	c.rev = max(c.rev, rev)
	for _, u := range units {
		u.se.out.addStored(u.life(), u.report.Seq, false)
	}
	return nil
}

// settle reads what one report depends on from the store itself, and decides anew:
// the session is over, the life is, it was stored after all, or it is tried again.
func (c *committer) settle(ctx context.Context, u unit) (left []unit) {
	id := u.report.ID
	var minimum time.Duration
	c.world.Look(func(v world.View) { minimum = minReady(v, id) })
	for range attempts {
		read, cancel := context.WithTimeout(ctx, storeTime)
		_, kvs, err := c.store.Get(read, store.SessionKey(u.se.node), store.MemberKey(id), store.ReportKey(id))
		cancel()
		if err != nil {
			return []unit{u}
		}
		if kv, ok := kvs[store.SessionKey(u.se.node)]; !ok || !u.se.owns(kv) {
			u.se.cancel(errOver)
			return nil // the node reports all again in its next session
		}
		last, _ := decodeIf[spec.Report](kvs, store.ReportKey(id)) // an unreadable one is written over
		member, err := decodeIf[spec.Member](kvs, store.MemberKey(id))
		if err != nil {
			c.log.Error("report dropped", "node", u.se.node, "err", err)
			return nil
		}
		u.member = kvs[store.MemberKey(id)].Mod
		next, ok := c.decide(u, member, last, minimum)
		if !ok {
			return nil
		}
		switch err := c.write(ctx, []unit{next}); {
		case err == nil:
			return nil
		case errors.Is(err, store.ErrTooLarge):
			c.log.Error("report dropped", "node", u.se.node, "member", id.String(), "err", err)
			return nil
		case !errors.Is(err, store.ErrConflict):
			return []unit{u}
		}
	}
	return []unit{u}
}

// decodeIf reads the record at key; nil when there is none.
func decodeIf[T any](kvs map[string]store.KV, key string) (*T, error) {
	kv, ok := kvs[key]
	if !ok {
		return nil, nil
	}
	record, err := store.Decode[T](kv)
	if err != nil {
		return nil, err
	}
	return &record, nil
}
