package agent

import (
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/stead-project/stead/agent/ledger"
	"github.com/stead-project/stead/agent/watchdog"
	"github.com/stead-project/stead/agent/worker"
	"github.com/stead-project/stead/spec"
)

// guard keeps the deadlines of this node's guarded lives (SAFETY S3, S5, S6): it records
// the lives, moves the moment their killers count from, and closes the token of each that
// missed its deadline before that moment moves. Safe for concurrent use.
type guard struct {
	dir    watchdog.Dir
	ledger *ledger.Ledger
	clock  func() time.Duration
	cgroup func(spec.Identity) string
	start  func(dir string) error // starts a watchdog
	over   func(spec.Identity)    // told of each life that missed its deadline, without a lock held
	log    *slog.Logger

	mu        sync.Mutex
	confirmed time.Duration // as in the file
	lives     map[spec.Identity]watchdog.Record
	held      bool // no life is begun; open ones go on
	trouble   string
}

var _ worker.Guard = (*guard)(nil)

// newGuard takes up the records of the agent before this one. Those that missed their
// deadline meanwhile are closed before anything else is done.
func newGuard(g *guard) error {
	g.lives = map[spec.Identity]watchdog.Record{}
	if err := g.dir.Make(); err != nil {
		return err
	}
	// What cannot be read is as if it were not there: an open token without a record is
	// over, and so is every guarded life when nothing was confirmed.
	found, err := g.dir.Records()
	g.warn(err)
	g.confirmed, err = g.dir.Confirmed()
	g.warn(err)
	if now := g.clock(); g.confirmed > now { // of an earlier boot: nothing was confirmed in this one
		if err := g.dir.Confirm(0); err != nil {
			return err
		}
		g.confirmed = 0
	}
	for _, r := range found {
		id := spec.Identity{Namespace: spec.Namespace(r.Namespace), Set: spec.SetName(r.Set), Ordinal: r.Ordinal}
		if token, err := spec.ParseToken(r.Token); err == nil && !r.Ended && g.ledger.Look(id).Open != token && g.ledger.Look(id).Spent(token) {
			r.Ended = true // closed by a boot that tmpfs outlived, or just before a crash
			if err := g.dir.Put(memberName(id), r); err != nil {
				return err
			}
		}
		g.lives[id] = r
	}
	g.warn(g.Missed()) // one that cannot be closed now does not begin, and nothing is confirmed before
	return nil
}

func memberName(id spec.Identity) string { return string(id.Namespace) + "." + id.MemberName() }

// Record is the path of the record of an identity's life.
func (g *guard) Record(id spec.Identity) string { return g.dir.Record(memberName(id)) }

// Begin records a life, before its token is opened. It fails when the deadline that it
// would have has passed already.
func (g *guard) Begin(id spec.Identity, token spec.Token, bound time.Duration) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	had, stands := g.lives[id]
	if stands && had.Token == token.String() {
		if had.Ended {
			return fmt.Errorf("guard token %s of %s: it missed its deadline", token, id)
		}
		return nil
	}
	if old, err := spec.ParseToken(had.Token); stands && (err != nil || old.Compare(token) > 0 || g.ledger.Look(id).Open == old) {
		return fmt.Errorf("guard token %s of %s: token %s is guarded", token, id, had.Token)
	}
	if g.held {
		return fmt.Errorf("guard token %s of %s: the store is held", token, id)
	}
	if watchdog.Passed(g.confirmed, bound, g.clock()) {
		return fmt.Errorf("guard token %s of %s: its deadline would have passed", token, id)
	}
	r := watchdog.Record{
		Namespace: string(id.Namespace), Set: string(id.Set), Ordinal: id.Ordinal,
		Token: token.String(), Bound: bound, Cgroup: g.cgroup(id),
	}
	if err := g.dir.Put(memberName(id), r); err != nil {
		return err
	}
	g.lives[id] = r
	return nil
}

// Hold tells whether the store is held: then a server that answers pings has told no list,
// and a life that was ordered before may be over since. None is begun; the deadlines of
// those that are open move on.
func (g *guard) Hold(held bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.held = held
}

// Look says how a life is guarded now.
func (g *guard) Look(id spec.Identity, token spec.Token, bound time.Duration) worker.Guarded {
	g.mu.Lock()
	r, stands := g.lives[id]
	confirmed := g.confirmed
	kept := g.held && g.ledger.Look(id).Open != token // from beginning
	g.mu.Unlock()
	if stands = stands && r.Token == token.String(); !stands {
		return worker.Guarded{Passed: kept || watchdog.Passed(confirmed, bound, g.clock()), Watched: g.dir.Alive()}
	}
	return worker.Guarded{
		Recorded: true, Passed: kept || r.Ended || watchdog.Passed(confirmed, r.Bound, g.clock()),
		Watched: g.dir.Acks()[memberName(id)] == r.Token,
	}
}

// Expire ends a life that missed its deadline, for good: its token is closed first.
func (g *guard) Expire(id spec.Identity, token spec.Token) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.expire(id, token)
}

// expire closes the token, then has the killers go on whatever is confirmed.
func (g *guard) expire(id spec.Identity, token spec.Token) error {
	if err := g.ledger.CloseToken(id, token, spec.CauseDeadlinePassed); err != nil {
		return err
	}
	r, stands := g.lives[id]
	if !stands || r.Token != token.String() || r.Ended {
		return nil
	}
	r.Ended = true
	if err := g.dir.Put(memberName(id), r); err != nil {
		return err
	}
	g.lives[id] = r
	return nil
}

// Forget removes the record of a life of which nothing is left, and of any before it.
func (g *guard) Forget(id spec.Identity, token spec.Token) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if newer, err := spec.ParseToken(g.lives[id].Token); err == nil && newer.Compare(token) > 0 {
		return nil
	}
	if err := g.dir.Remove(memberName(id)); err != nil {
		return err
	}
	delete(g.lives, id)
	return nil
}

// Confirm moves the moment from which deadlines count to when a ping was sent that a
// server has answered. Lives that missed their deadline are ended before; while one of
// them cannot be closed, nothing moves.
func (g *guard) Confirm(sent time.Duration) error {
	g.mu.Lock()
	was := g.confirmed
	over, err := g.missed(was)
	if err == nil && sent > was {
		if err = g.dir.Confirm(sent); err == nil {
			g.confirmed = sent
			// A deadline that passed while this was written: its killers may have begun.
			late, err2 := g.missed(was)
			over, err = append(over, late...), err2
		}
	}
	g.mu.Unlock()
	g.tell(over)
	return err
}

// Missed ends every life whose deadline has passed.
func (g *guard) Missed() error {
	g.mu.Lock()
	over, err := g.missed(g.confirmed)
	g.mu.Unlock()
	g.tell(over)
	return err
}

func (g *guard) missed(confirmed time.Duration) (over []spec.Identity, err error) {
	now := g.clock()
	for id, r := range g.lives {
		if r.Ended || !watchdog.Passed(confirmed, r.Bound, now) {
			continue
		}
		token, err2 := spec.ParseToken(r.Token)
		if err2 == nil {
			err2 = g.expire(id, token)
		}
		if err2 != nil {
			err = errors.Join(err, fmt.Errorf("end the guarded life %s of %s: %w", r.Token, id, err2))
			continue
		}
		over = append(over, id)
	}
	return over, err
}

func (g *guard) tell(over []spec.Identity) {
	for _, id := range over {
		g.log.Warn("guarded life missed its deadline", "member", id.String())
		g.over(id)
	}
}
