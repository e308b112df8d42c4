package files

import (
	"cmp"
	"context"
	"time"
)

// Run takes turns until ctx ends.
func (s *SetFiles) Run(ctx context.Context) {
	for ctx.Err() == nil {
		var due <-chan time.Time
		if next := s.Turn(); !next.IsZero() {
			due = time.After(max(next.Sub(s.c.Now()), time.Millisecond))
		}
		select {
		case <-ctx.Done():
		case <-s.wake.C():
		case <-due:
		}
	}
}

// Turn shows what is due and says when something will be; zero: when something has changed. One
// goroutine takes turns.
func (s *SetFiles) Turn() (next time.Time) {
	moved := s.moved.Swap(false)
	var failed error
	for _, set := range s.all() {
		at, err := s.turn(set, moved)
		if err != nil {
			if moved {
				s.moved.Store(true)
			}
			at = s.c.Now().Add(s.c.Renew)
			failed = cmp.Or(failed, err)
		}
		if !at.IsZero() && (next.IsZero() || at.Before(next)) {
			next = at
		}
	}
	if s.trouble.IsErr(failed) {
		s.c.Logger.Warn("files of a set not written", "err", failed)
	}
	return next
}

// turn shows one set to its members, unless that was done less than Renew ago, and the
// moment until which it is confirmed.
func (s *SetFiles) turn(set *followedSet, moved bool) (next time.Time, err error) {
	if !moved && !set.due.Load() {
		return time.Time{}, nil
	}
	set.mu.Lock()
	defer set.mu.Unlock()
	now, at := s.c.Now(), set.shownAt.Add(s.c.Renew)
	switch {
	case !set.due.Load():
	case at.After(now):
		next = at
	default:
		err = s.renew(set, now)
	}
	if err != nil || !moved {
		return next, err
	}
	for _, id := range set.ids() {
		if err := s.showConfirmed(set, set.members[id]); err != nil {
			return next, err
		}
	}
	return next, nil
}

// renew writes what is new of a set and shows it to all.
func (s *SetFiles) renew(set *followedSet, now time.Time) (err error) {
	set.due.Store(false)
	if set.stale.Load() {
		err = s.write(set)
	}
	for _, id := range set.ids() {
		err = cmp.Or(err, set.show(set.members[id], s.c.Disk))
	}
	if err != nil {
		set.due.Store(true)
		return err
	}
	set.shownAt = now
	return nil
}

// showConfirmed shows a member that was shown all that is written until when it is confirmed.
func (s *SetFiles) showConfirmed(set *followedSet, m *follower) error {
	if m.version != set.version || m.eventsVersion != set.eventsVersion {
		return nil
	}
	until, err := s.writeConfirmed()
	if err != nil || until <= m.until {
		return err
	}
	if err := s.c.Disk.Link(SetKey{}, ConfirmedFile, m.place, m.isNew); err != nil {
		return err
	}
	m.until = until
	return nil
}

// writeConfirmed returns the moment that is written. It never goes back.
func (s *SetFiles) writeConfirmed() (Uptime, error) {
	s.confirm.Lock()
	defer s.confirm.Unlock()
	if until := Uptime(s.c.Confirmed()); until > s.until {
		if err := s.c.Disk.Write(SetKey{}, ConfirmedFile, []byte(until.String()+"\n")); err != nil {
			return 0, err
		}
		s.until = until
	}
	return s.until, nil
}
