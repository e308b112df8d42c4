package reclaim

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/stead-project/stead/agent/runtime"
	"github.com/stead-project/stead/internal/backoff"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
)

// Run works until ctx ends, and returns when nothing is under way.
func (r *Reclaimer) Run(ctx context.Context) {
	var group sync.WaitGroup
	defer group.Wait()
	for {
		wait := r.Round(ctx, group.Go)
		select {
		case <-ctx.Done():
			return
		case <-r.wakeup.C():
		case <-time.After(wait):
		}
	}
}

// Round starts the work that is due, each piece by one call of start, which may also do it
// at once, and returns how long until something is due again. What has no place now comes in
// the round after the end of another.
func (r *Reclaimer) Round(ctx context.Context, start func(work func())) time.Duration {
	due, wait := r.due(ctx, false)
	for _, d := range due {
		start(func() { defer r.leave(d); r.execute(ctx, d) })
	}
	trash, _ := r.readTrash(ctx) // also writes down how long what lies there has lain
	due, next := r.due(ctx, true)
	for _, d := range due {
		start(func() { defer r.leave(d); r.erase(ctx, d, trash) })
	}
	return min(wait, next)
}

// due takes a place for each order that is due, those to erase or the others, and returns
// them in the order in which they became so, and how long until the next does.
func (r *Reclaimer) due(ctx context.Context, erase bool) (due []*pendingOrder, wait time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	wait = noteTrash
	orders := slices.SortedFunc(maps.Values(r.orders), func(a, b *pendingOrder) int {
		return cmp.Or(a.due.Compare(b.due), cmp.Compare(a.order.Volume, b.order.Volume))
	})
	for _, d := range orders {
		if f := d.order.Fate; !f.Ordered() && f != records.FateGone && f != records.FateKeep {
			d.done = true // an order that only a newer agent understands
		}
		if d.done || ctx.Err() != nil || erase != d.erases() {
			continue
		}
		if left := d.due.Sub(r.c.Now()); left > 0 {
			wait = min(wait, max(left, time.Millisecond))
			continue
		}
		most := movesAtOnce
		if erase {
			most = ErasuresAtOnce
		}
		if r.busy[d.order.Volume] || r.running[d.lane()] >= most {
			continue
		}
		r.busy[d.order.Volume] = true
		r.running[d.lane()]++
		due = append(due, d)
	}
	return due, wait
}

func (d *pendingOrder) erases() bool { return d.order.Fate == records.FateGone }

func (d *pendingOrder) lane() lane { return lane{d.order.Class, d.erases()} }

// leave gives the place of an order free.
func (r *Reclaimer) leave(d *pendingOrder) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.busy, d.order.Volume)
	r.running[d.lane()]--
	r.wakeup.Notify()
}

// settle notes how an order ended; one that failed is tried again after a while that
// doubles. It reports whether that is the first failure.
func (r *Reclaimer) settle(d *pendingOrder, err error) (first bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err == nil {
		d.done = true
		return false
	}
	d.tries++
	d.due = r.c.Now().Add(backoff.After(r.c.RetryFirst, r.c.RetryMost, d.tries))
	return d.tries == 1
}

// execute does with a volume as it was ordered, unless something of its member is left here:
// whatever the server believes, the agent looks for itself.
func (r *Reclaimer) execute(ctx context.Context, d *pendingOrder) {
	o := d.order
	if o.Fate == records.FateKeep {
		r.grow(ctx, d)
		return
	}
	report := records.VolumeReport{
		ID: o.ID, Claim: o.Claim, Volume: o.Volume, Number: o.Number, Class: o.Class,
		Turn: o.Turn, SizeBytes: o.SizeBytes,
	}
	err := r.unused(ctx, o.ID)
	if err == nil {
		err = r.withoutUsers(ctx, o)
	}
	if err == nil {
		report.State, err = r.move(ctx, o)
	}
	if ctx.Err() != nil {
		return // the next agent gets the order again
	}
	first := r.settle(d, err)
	if err == nil {
		if report.State == records.VolumeTrashed {
			report.Left = o.Trash
		}
		r.c.Logger.Info("volume moved", "member", o.ID.String(), "reason", string(report.State))
	} else {
		report.State, report.Cause, report.Message = records.VolumeRefused, runtime.VolumeCause(err), err.Error()
		if first {
			r.c.Logger.Warn("volume not moved", "member", o.ID.String(), "reason", report.Cause, "err", err)
		}
	}
	r.report(report)
}

// grow lets a volume grow that may be in use. Nothing is reported of it: its node says how large it is.
func (r *Reclaimer) grow(ctx context.Context, d *pendingOrder) {
	grown, err := r.c.Volumes.Grow(ctx, d.order)
	if ctx.Err() != nil {
		return
	}
	switch first := r.settle(d, err); {
	case err == nil && grown:
		r.c.Logger.Info("volume grown", "member", d.order.ID.String(), "reason", string(d.order.Claim))
	case first && !errors.Is(err, runtime.ErrAbsent): // one that is not there will be made so large
		r.c.Logger.Warn("volume not grown yet", "member", d.order.ID.String(), "reason", runtime.VolumeCause(err), "err", err)
	}
}

// move does what an order says, and returns how the volume is then.
func (r *Reclaimer) move(ctx context.Context, o records.VolumeOrder) (records.VolumeState, error) {
	volumes := r.c.Volumes
	switch o.Fate {
	case records.FateLost:
		return volumes.Lost(ctx, o)
	case records.FateRestoring:
		err := volumes.Restore(ctx, o)
		if errors.Is(err, runtime.ErrAbsent) {
			return records.VolumeAbsent, nil
		}
		return records.VolumeFound, err
	}
	err := volumes.Reclaim(ctx, o)
	if errors.Is(err, runtime.ErrAbsent) && o.Unused {
		return records.VolumeAbsent, nil
	}
	return records.VolumeTrashed, err
}

var errInUse = fmt.Errorf("%w: a life that may use it", runtime.ErrExists)

// unused fails while a life of the identity is open in the ledger or has processes.
func (r *Reclaimer) unused(ctx context.Context, id spec.Identity) error {
	if open := r.c.Open(id); !open.IsZero() {
		return fmt.Errorf("%w: token %s is not over on this node", errInUse, open)
	}
	empty, err := r.c.Empty(ctx, id)
	if err == nil && !empty {
		err = fmt.Errorf("%w: processes of %s run on this node", errInUse, id)
	}
	return err
}

// withoutUsers fails while a life may have the volume of a claim. One that was followed by
// another of its identity is over.
func (r *Reclaimer) withoutUsers(ctx context.Context, o records.VolumeOrder) error {
	if _, is := o.ID.Ref().ClaimName(); !is {
		return nil
	}
	users, err := r.c.Volumes.Users(ctx, o.Volume)
	if err != nil {
		return err
	}
	for _, u := range users {
		if open := r.c.Open(u.ID); !open.IsZero() && open != u.Token {
			continue
		}
		if err := r.unused(ctx, u.ID); err != nil {
			return err
		}
	}
	return nil
}

// erase deletes permanently what is forgotten, when its time is over. What is not in the
// trash is asked for as well: a class that is not there proves nothing.
func (r *Reclaimer) erase(ctx context.Context, d *pendingOrder, trash []runtime.Trashed) {
	o, class := d.order, d.order.Class
	at := slices.IndexFunc(trash, func(t runtime.Trashed) bool { return t.Volume == o.Volume })
	if at >= 0 {
		if left := trash[at].Left; left > 0 { // looked at again, by the trash's own clock
			r.mu.Lock()
			d.due = r.c.Now().Add(min(left, noteTrash))
			r.mu.Unlock()
			return
		}
		class = trash[at].Class
	}
	sub, cancel := context.WithTimeout(ctx, EraseTime)
	defer cancel()
	err := r.c.Volumes.Erase(sub, class, o.Volume)
	if ctx.Err() != nil {
		return
	}
	first := r.settle(d, err)
	if err != nil {
		if first {
			r.c.Logger.Warn("volume not erased yet", "member", o.ID.String(), "err", err)
		}
		return
	}
	if at >= 0 {
		r.c.Logger.Info("volume erased", "member", o.ID.String())
	}
	r.report(records.VolumeReport{ID: o.ID, Claim: o.Claim, Volume: o.Volume, Number: o.Number, Class: o.Class, State: records.VolumeErased})
}
