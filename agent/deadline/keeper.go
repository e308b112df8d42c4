// Package deadline keeps the deadlines of a node's guarded lives while its agent runs
// (SAFETY S3, S5, S6). What ends them when the agent does not is agent/watchdog, which reads
// nothing but the records that are written here.
package deadline

import (
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/stead-project/stead/agent/ledger"
	"github.com/stead-project/stead/agent/watchdog"
	"github.com/stead-project/stead/agent/worker"
	"github.com/stead-project/stead/internal/trouble"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/spec/causes"
)

// Records is what killers read of a node's guarded lives: watchdog.Dir, or memory in the
// simulation. Its writing methods are called by one goroutine at a time.
type Records interface {
	// Make makes the place; a place that is there is no error.
	Make() error
	// Records are all records by member. One that cannot be read is an error beside the others.
	Records() (map[string]watchdog.Record, error)
	// Put writes a member's record in place of an older one.
	Put(member string, r watchdog.Record) error
	// Remove removes a member's record; absent is no error.
	Remove(member string) error
	// Record is the path of a member's record.
	Record(member string) string
	// Confirm moves the moment at which the node was last confirmed; Confirmed reads it, 0
	// when there was none since boot.
	Confirm(at time.Duration) error
	Confirmed() (time.Duration, error)
	// Alive: a watchdog runs. Acks are the tokens, by member, that it has acknowledged.
	Alive() bool
	Acks() map[string]string
	// Dismiss asks the watchdog to end once it guards nothing.
	Dismiss()
}

// Config is what a keeper needs; all of it.
type Config struct {
	Records Records
	Ledger  *ledger.Ledger
	// Clock is the time since boot.
	Clock func() time.Duration
	// Cgroup is the path of the cgroup that holds all processes of an identity.
	Cgroup func(spec.Identity) string
	// StartWatchdog starts a watchdog on the records, which replaces one of another program.
	StartWatchdog func() error
	// Foreign reports whether one of another program runs. For AwaitWatchdog.
	Foreign func() bool
	// Missed is called with each life that missed its deadline, without a lock held.
	Missed func(spec.Identity)
	Logger *slog.Logger
}

// Keeper records guarded lives, moves the moment their killers count from, and closes the
// token of each that missed its deadline before that moment moves. Safe for concurrent use.
// A nil Keeper is of a node that guards no lives: it may be held, confirmed, asked whether
// it is Watched, run and closed.
type Keeper struct {
	c   Config
	log *slog.Logger

	mu        sync.Mutex
	confirmed time.Duration // as in the file
	lives     map[spec.Identity]watchdog.Record
	held      bool // no life is started; open ones continue
	logged    trouble.Last
}

var _ worker.Guard = (*Keeper)(nil)

// New takes up the records of the agent before this one. Lives that missed their deadline
// meanwhile are closed before anything else is done.
func New(c Config) (*Keeper, error) {
	k := &Keeper{c: c, log: c.Logger, lives: map[spec.Identity]watchdog.Record{}}
	if err := c.Records.Make(); err != nil {
		return nil, err
	}
	// What cannot be read is as if it were not there: an open token without a record is
	// over, and so is every guarded life when nothing was confirmed.
	found, err := k.c.Records.Records()
	k.warn(err)
	k.confirmed, err = k.c.Records.Confirmed()
	k.warn(err)
	if now := k.c.Clock(); k.confirmed > now { // of an earlier boot: nothing was confirmed in this one
		if err := k.c.Records.Confirm(0); err != nil {
			return nil, err
		}
		k.confirmed = 0
	}
	for _, member := range slices.Sorted(maps.Keys(found)) {
		r := found[member]
		id := spec.Identity{Namespace: spec.Namespace(r.Namespace), Set: spec.SetName(r.Set), Ordinal: r.Ordinal}
		if token, err := spec.ParseToken(r.Token); err == nil && !r.Ended && k.c.Ledger.Look(id).Open != token && k.c.Ledger.Look(id).Spent(token) {
			r.Ended = true // closed by a boot that tmpfs outlived, or just before a crash
			if err := k.c.Records.Put(memberName(id), r); err != nil {
				return nil, err
			}
		}
		k.lives[id] = r
	}
	k.warn(k.EndMissed()) // one that cannot be closed now does not start, and nothing is confirmed before
	return k, nil
}

func memberName(id spec.Identity) string { return string(id.Namespace) + "." + id.MemberName() }

// Record implements worker.Guard.
func (k *Keeper) Record(id spec.Identity) string { return k.c.Records.Record(memberName(id)) }

// Begin implements worker.Guard. It fails also while the store is held.
func (k *Keeper) Begin(id spec.Identity, token spec.Token, bound time.Duration) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	had, recorded := k.lives[id]
	if recorded && had.Token == token.String() {
		if had.Ended {
			return fmt.Errorf("guard token %s of %s: it missed its deadline", token, id)
		}
		return nil
	}
	if old, err := spec.ParseToken(had.Token); recorded && (err != nil || old.Compare(token) > 0 || k.c.Ledger.Look(id).Open == old) {
		return fmt.Errorf("guard token %s of %s: token %s is guarded", token, id, had.Token)
	}
	if k.held {
		return fmt.Errorf("guard token %s of %s: the store is held", token, id)
	}
	if watchdog.Passed(k.confirmed, bound, k.c.Clock()) {
		return fmt.Errorf("guard token %s of %s: its deadline would have passed", token, id)
	}
	r := watchdog.Record{
		Namespace: string(id.Namespace), Set: string(id.Set), Ordinal: id.Ordinal,
		Token: token.String(), Bound: bound, Cgroup: k.c.Cgroup(id),
	}
	if err := k.c.Records.Put(memberName(id), r); err != nil {
		return err
	}
	k.lives[id] = r
	return nil
}

// Hold says whether the store is held: then a server that answers pings has sent no list,
// and a life that was ordered before may be over since. None is started; the deadlines of
// those that are open move on.
func (k *Keeper) Hold(held bool) {
	if k == nil {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.held = held
}

// Look implements worker.Guard.
func (k *Keeper) Look(id spec.Identity, token spec.Token, bound time.Duration) worker.Guarded {
	k.mu.Lock()
	r, recorded := k.lives[id]
	confirmed := k.confirmed
	kept := k.held && k.c.Ledger.Look(id).Open != token // from beginning
	k.mu.Unlock()
	if !recorded || r.Token != token.String() {
		return worker.Guarded{Passed: kept || watchdog.Passed(confirmed, bound, k.c.Clock()), Watched: k.c.Records.Alive()}
	}
	return worker.Guarded{
		Recorded: true, Passed: kept || r.Ended || watchdog.Passed(confirmed, r.Bound, k.c.Clock()),
		Watched: k.c.Records.Acks()[memberName(id)] == r.Token,
	}
}

// Expire implements worker.Guard.
func (k *Keeper) Expire(id spec.Identity, token spec.Token) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.expire(id, token)
}

// expire closes the token, then has the killers continue whatever is confirmed.
func (k *Keeper) expire(id spec.Identity, token spec.Token) error {
	if err := k.c.Ledger.CloseToken(id, token, causes.DeadlinePassed); err != nil {
		return err
	}
	r, recorded := k.lives[id]
	if !recorded || r.Token != token.String() || r.Ended {
		return nil
	}
	r.Ended = true
	if err := k.c.Records.Put(memberName(id), r); err != nil {
		return err
	}
	k.lives[id] = r
	return nil
}

// Forget implements worker.Guard.
func (k *Keeper) Forget(id spec.Identity, token spec.Token) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if newer, err := spec.ParseToken(k.lives[id].Token); err == nil && newer.Compare(token) > 0 {
		return nil
	}
	if err := k.c.Records.Remove(memberName(id)); err != nil {
		return err
	}
	delete(k.lives, id)
	return nil
}

// Confirm moves the moment from which deadlines count to when a ping was sent that a
// server has answered. Lives that missed their deadline are ended before; while one of
// them cannot be closed, nothing moves.
func (k *Keeper) Confirm(sent time.Duration) error {
	if k == nil {
		return nil
	}
	k.mu.Lock()
	was := k.confirmed
	over, err := k.missed(was)
	if err == nil && sent > was {
		if err = k.c.Records.Confirm(sent); err == nil {
			k.confirmed = sent
			// A deadline that passed while this was written: its killers may have started.
			late, err2 := k.missed(was)
			over, err = append(over, late...), err2
		}
	}
	k.mu.Unlock()
	k.reportMissed(over)
	k.warn(err)
	return err
}

// EndMissed ends every life whose deadline has passed.
func (k *Keeper) EndMissed() error {
	k.mu.Lock()
	over, err := k.missed(k.confirmed)
	k.mu.Unlock()
	k.reportMissed(over)
	return err
}

// missed closes what missed its deadline when the node was last confirmed at confirmed.
func (k *Keeper) missed(confirmed time.Duration) (over []spec.Identity, err error) {
	now := k.c.Clock()
	for _, id := range slices.SortedFunc(maps.Keys(k.lives), spec.Identity.Compare) {
		r := k.lives[id]
		if r.Ended || !watchdog.Passed(confirmed, r.Bound, now) {
			continue
		}
		token, err2 := spec.ParseToken(r.Token)
		if err2 == nil {
			err2 = k.expire(id, token)
		}
		if err2 != nil {
			err = errors.Join(err, fmt.Errorf("end the guarded life %s of %s: %w", r.Token, id, err2))
			continue
		}
		over = append(over, id)
	}
	return over, err
}

func (k *Keeper) reportMissed(over []spec.Identity) {
	for _, id := range over {
		k.log.Warn("guarded life missed its deadline", "member", id.String())
		k.c.Missed(id)
	}
}
