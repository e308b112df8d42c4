package agent

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
	"github.com/stead-project/stead/spec"
)

// run works until ctx ends, and returns when nothing is under way.
func (r *reclaimer) run(ctx context.Context) {
	var group sync.WaitGroup
	defer group.Wait()
	for {
		wait := r.round(ctx, &group)
		select {
		case <-ctx.Done():
			return
		case <-r.wake:
		case <-time.After(wait):
		}
	}
}

// round begins what is due and returns how long until something is again. What has no
// place comes in the round that the end of another rings for.
func (r *reclaimer) round(ctx context.Context, group *sync.WaitGroup) time.Duration {
	wait := r.launch(ctx, group, false, func(ctx context.Context, d *duty) { r.obey(ctx, d) })
	trash, _ := r.readTrash(ctx) // also writes down how long what lies there has lain
	return min(wait, r.launch(ctx, group, true, func(ctx context.Context, d *duty) { r.erase(ctx, d, trash) }))
}

// launch begins the orders that are due: those to erase, or the others.
func (r *reclaimer) launch(ctx context.Context, group *sync.WaitGroup, erase bool, work func(context.Context, *duty)) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	wait := noteTrash
	duties := slices.SortedFunc(maps.Values(r.orders), func(a, b *duty) int {
		return cmp.Or(a.due.Compare(b.due), cmp.Compare(a.order.Volume, b.order.Volume))
	})
	for _, d := range duties {
		if !d.order.Fate.Ordered() && d.order.Fate != spec.FateGone {
			d.done = true // an order that only a newer agent understands
		}
		if d.done || ctx.Err() != nil || erase != (d.order.Fate == spec.FateGone) {
			continue
		}
		if left := time.Until(d.due); left > 0 {
			wait = min(wait, max(left, time.Millisecond))
			continue
		}
		at, most := lane{d.order.Class, erase}, movesAtOnce
		if erase {
			most = erasuresAtOnce
		}
		if r.busy[d.order.Volume] || r.taken[at] >= most {
			continue
		}
		r.busy[d.order.Volume] = true
		r.taken[at]++
		group.Go(func() {
			defer r.leave(d, at)
			work(ctx, d)
		})
	}
	return wait
}

func (r *reclaimer) leave(d *duty, at lane) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.busy, d.order.Volume)
	r.taken[at]--
	r.ring()
}

// settle notes how an order ended; one that failed is tried again after a while that
// doubles. It reports whether that is the first failure.
func (r *reclaimer) settle(d *duty, err error) (first bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err == nil {
		d.done = true
		return false
	}
	wait, most := r.a.shared.Tuning.RetryFirst, r.a.shared.Tuning.RetryMost
	for range d.tries {
		wait = min(2*wait, most)
	}
	d.tries++
	d.due = time.Now().Add(wait)
	return d.tries == 1
}

// obey does with a volume as it was told, unless something of its member is left here:
// whatever the server believes, the agent looks for itself.
func (r *reclaimer) obey(ctx context.Context, d *duty) {
	o := d.order
	report := spec.VolumeReport{
		ID: o.ID, Claim: o.Claim, Volume: o.Volume, Number: o.Number, Class: o.Class,
		Turn: o.Turn, SizeBytes: o.SizeBytes,
	}
	err := r.unused(ctx, o.ID)
	if err == nil {
		report.State, err = r.move(ctx, o)
	}
	if ctx.Err() != nil {
		return // the next agent is told again
	}
	first := r.settle(d, err)
	if err == nil {
		if report.State == spec.VolumeTrashed {
			report.Left = o.Trash
		}
		r.a.log.Info("volume moved", "member", o.ID.String(), "reason", string(report.State))
	} else {
		report.State, report.Cause, report.Message = spec.VolumeRefused, runtime.VolumeCause(err), err.Error()
		if first {
			r.a.log.Warn("volume not moved", "member", o.ID.String(), "reason", report.Cause, "err", err)
		}
	}
	r.say(report)
}

// move does what an order says, and returns how the volume is then.
func (r *reclaimer) move(ctx context.Context, o spec.VolumeOrder) (spec.VolumeState, error) {
	volumes := r.a.c.Volumes
	switch o.Fate {
	case spec.FateLost:
		return volumes.Lost(ctx, o)
	case spec.FateRestoring:
		err := volumes.Restore(ctx, o)
		if errors.Is(err, runtime.ErrAbsent) {
			return spec.VolumeAbsent, nil
		}
		return spec.VolumeFound, err
	}
	err := volumes.Reclaim(ctx, o)
	if errors.Is(err, runtime.ErrAbsent) && o.Unused {
		return spec.VolumeAbsent, nil
	}
	return spec.VolumeTrashed, err
}

var errInUse = fmt.Errorf("%w: a life that may use it", runtime.ErrExists)

// unused fails while a life of the identity is open in the ledger or has processes.
func (r *reclaimer) unused(ctx context.Context, id spec.Identity) error {
	if open := r.a.ledger.Look(id).Open; !open.IsZero() {
		return fmt.Errorf("%w: token %s is not over on this node", errInUse, open)
	}
	empty, err := r.a.c.Runtime.Empty(ctx, id)
	if err == nil && !empty {
		err = fmt.Errorf("%w: processes of %s run on this node", errInUse, id)
	}
	return err
}

// erase deletes for ever what is forgotten, when its time is over. What is not in the
// trash is asked for as well: a class that is not there proves nothing.
func (r *reclaimer) erase(ctx context.Context, d *duty, trash []runtime.Trashed) {
	o, class := d.order, d.order.Class
	at := slices.IndexFunc(trash, func(t runtime.Trashed) bool { return t.Volume == o.Volume })
	if at >= 0 {
		if left := trash[at].Left; left > 0 { // looked at again, by the trash's own clock
			r.mu.Lock()
			d.due = time.Now().Add(min(left, noteTrash))
			r.mu.Unlock()
			return
		}
		class = trash[at].Class
	}
	sub, cancel := context.WithTimeout(ctx, eraseTime)
	defer cancel()
	err := r.a.c.Volumes.Erase(sub, class, o.Volume)
	if ctx.Err() != nil {
		return
	}
	first := r.settle(d, err)
	if err != nil {
		if first {
			r.a.log.Warn("volume not erased yet", "member", o.ID.String(), "err", err)
		}
		return
	}
	if at >= 0 {
		r.a.log.Info("volume erased", "member", o.ID.String())
	}
	r.say(spec.VolumeReport{ID: o.ID, Claim: o.Claim, Volume: o.Volume, Number: o.Number, Class: o.Class, State: spec.VolumeErased})
}
