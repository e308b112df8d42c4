package dispatch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/server/cache"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/store"
)

const (
	// maxPending bounds the lives of one session whose reports wait.
	maxPending = 20_000
	// attempts bounds how often one report is tried while its member keeps moving.
	attempts = 5
)

// committer writes reports of all sessions: whatever came while one transaction
// was under way goes into the next ones, so an idle server writes at once and a
// busy one in batches. Only the newest report of a life waits.
type committer struct {
	store store.Store
	cache cache.Reader
	log   *slog.Logger
	wake  chan struct{}
	// writes is what each node may have written, refusals who wants more.
	writes   *allowance
	refusals *refusals
	rev      store.Rev // of the last commit: the world must show it before the next look

	mu      sync.Mutex
	pending map[*session]map[life]records.Report
	bytes   map[*session]int // that wait; what was replaced counts until the next round
}

// unit is one report on its way into the store.
type unit struct {
	se     *session
	report records.Report
	member store.Rev // mod-revision of the member it was judged by
}

func (u unit) life() life { return life{ID: u.report.ID, Token: u.report.Token} }

func newCommitter(s store.Store, w cache.Reader, writes *allowance, f *refusals, log *slog.Logger) *committer {
	return &committer{
		store: s, cache: w, log: log, wake: make(chan struct{}, 1), writes: writes, refusals: f,
		pending: map[*session]map[life]records.Report{}, bytes: map[*session]int{},
	}
}

// add puts reports of so many bytes in line; it does not block.
func (c *committer) add(se *session, reports []records.Report, bytes int) {
	c.mu.Lock()
	mine := c.pending[se]
	if mine == nil {
		mine = map[life]records.Report{}
		c.pending[se] = mine
	}
	for _, r := range reports {
		l := life{ID: r.ID, Token: r.Token}
		if old, ok := mine[l]; !ok || r.Seq > old.Seq || r.Phase.Over() {
			mine[l] = r
		}
	}
	c.bytes[se] += bytes
	tooMuch := len(mine) > maxPending || c.bytes[se] > pendingBytes
	c.mu.Unlock()
	if tooMuch {
		why := fmt.Sprintf("reports of more than %d lives, or %d bytes, wait at once", maxPending, pendingBytes)
		c.refusals.add(se.node, LimitReports, 1, why)
		se.abort(codes.ResourceExhausted, why)
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
		mine = map[life]records.Report{}
		c.pending[u.se] = mine
	}
	if _, ok := mine[u.life()]; !ok {
		mine[u.life()] = u.report
		c.bytes[u.se] += len(store.Encode(u.report))
	}
}

// round writes all that waits; it returns what the store could not take now.
func (c *committer) round(ctx context.Context) (left []unit) {
	c.mu.Lock()
	pending := c.pending
	c.pending, c.bytes = map[*session]map[life]records.Report{}, map[*session]int{}
	c.mu.Unlock()
	c.hold(pending)
	if err := c.cache.Wait(ctx, c.rev); err != nil {
		return nil // ctx ended
	}
	var units []unit
	held := false
	c.cache.Look(func(v cache.View) {
		held = v.Hold() != nil
		for se, reports := range pending {
			if held && se.ctx.Err() != nil {
				continue // a hold ends with a restore, and with that its session is another
			}
			for l, r := range reports {
				m, rev := v.Member(l.ID)
				if m == nil && rev != 0 {
					continue // unreadable: what it proves must not be answered
				}
				if held {
					units = append(units, unit{se: se, report: r})
					continue
				}
				last, _ := v.Report(l.ID)
				if u, ok := c.decide(unit{se, r, rev}, m, last, minReady(v, l.ID)); ok {
					units = append(units, u)
				}
			}
		}
	})
	if held {
		return units // by a store that may be wrong none is judged
	}
	slices.SortFunc(units, func(a, b unit) int { // in one order, so that a simulation can be repeated
		return cmp.Or(cmp.Compare(a.se.node, b.se.node), compareLives(a.life(), b.life()))
	})
	return c.commit(ctx, units)
}

// rateTime is how long what a node may not have written now waits.
const rateTime = time.Second

// hold takes out of pending, and puts back in line for later, what is of nodes that have had
// more written than they may.
func (c *committer) hold(pending map[*session]map[life]records.Report) {
	held := false
	for se, reports := range pending {
		if c.writes.may(se.node) {
			continue
		}
		delete(pending, se)
		if se.ctx.Err() != nil {
			continue // it says all again in its next session
		}
		held = true
		c.refusals.add(se.node, LimitRate, len(reports), "it reports more than the store can keep; the newest is stored later")
		for _, r := range reports {
			c.putBack(unit{se: se, report: r})
		}
	}
	if held {
		time.AfterFunc(rateTime, c.ring)
	}
}

func minReady(v cache.View, id spec.Identity) time.Duration {
	set, _ := v.Set(id.Ref())
	if set == nil {
		return 0
	}
	return time.Duration(set.Spec.MinReadySeconds) * time.Second
}

// decide answers a report that need not be stored, or returns it as it is to be.
func (c *committer) decide(u unit, m *records.Member, last *records.Report, minReady time.Duration) (unit, bool) {
	u.report.Session = u.se.id
	r, v := judge(u.report, u.se.seat, m, last, minReady)
	u.report = r
	if v != keep {
		u.se.out.addStored(u.life(), r.Seq, v == stale)
	}
	return u, v == keep
}

// commit writes units in as few transactions as may be, and returns those that
// the store could not take now.
func (c *committer) commit(ctx context.Context, units []unit) (left []unit) {
	txns := make([]store.Txn, len(units))
	for i, u := range units {
		txns[i] = u.txn()
	}
	write, cancel := context.WithTimeout(ctx, storeTime)
	defer cancel()
	for i, o := range store.CommitAll(write, c.store, nil, txns) {
		switch u := units[i]; {
		case o.Err == nil:
			c.wrote(u, o.Rev)
		case ctx.Err() != nil:
			return left
		case errors.Is(o.Err, store.ErrConflict), errors.Is(o.Err, store.ErrUnknown):
			left = append(left, c.settle(ctx, u)...)
		case errors.Is(o.Err, store.ErrTooLarge):
			c.log.Error("report dropped", "node", u.se.node, "member", u.report.ID.String(), "err", o.Err)
		default:
			left = append(left, u)
		}
	}
	return left
}

// txn writes the report, guarded by its member and by the session key as this
// session wrote it: its create-revision would not tell, for another session takes
// the key over by a put.
func (u unit) txn() store.Txn {
	return store.Txn{
		If: []store.Guard{
			store.Seen(store.SessionKey(u.se.node), u.se.rev),
			store.Seen(store.MemberKey(u.report.ID), u.member),
		},
		Then: []store.Op{store.Put(store.ReportKey(u.report.ID), store.Encode(u.report))},
	}
}

func (c *committer) wrote(u unit, rev store.Rev) {
	c.rev = max(c.rev, rev)
	c.writes.spend(u.se.node, len(store.Encode(u.report)))
	u.se.out.addStored(u.life(), u.report.Seq, false)
}

// settle reads what one report depends on from the store itself, and decides anew:
// the session is over, the life is, it was stored after all, or it is tried again.
func (c *committer) settle(ctx context.Context, u unit) (left []unit) {
	id := u.report.ID
	var minimum time.Duration
	c.cache.Look(func(v cache.View) { minimum = minReady(v, id) })
	for range attempts {
		read, cancel := context.WithTimeout(ctx, storeTime)
		_, kvs, err := c.store.Get(read, store.SessionKey(u.se.node), store.MemberKey(id), store.ReportKey(id))
		cancel()
		if err != nil {
			return []unit{u}
		}
		if !u.se.owns(kvs[store.SessionKey(u.se.node)]) {
			u.se.cancel(errOver)
			return nil // the node reports all again in its next session
		}
		last, _ := store.DecodeIn[records.Report](kvs, store.ReportKey(id)) // an unreadable one is written over
		member, err := store.DecodeIn[records.Member](kvs, store.MemberKey(id))
		if err != nil {
			c.log.Error("report dropped", "node", u.se.node, "err", err)
			return nil
		}
		u.member = kvs[store.MemberKey(id)].Mod
		next, ok := c.decide(u, member, last, minimum)
		if !ok {
			return nil
		}
		write, cancel := context.WithTimeout(ctx, storeTime)
		rev, err := c.store.Commit(write, next.txn())
		cancel()
		if err == nil {
			c.wrote(next, rev)
			return nil
		}
		if !errors.Is(err, store.ErrConflict) {
			return []unit{u}
		}
	}
	return []unit{u}
}
