package agent

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/stead-project/stead/agent/runtime"
	"github.com/stead-project/stead/proto"
	"github.com/stead-project/stead/proto/wire"
	"github.com/stead-project/stead/spec"
)

// reclaimer gives up volumes, looks for lost ones and brings others back, as it was told in
// the present session, and erases what the server has forgotten when its time in the trash is over. What it says is sent by
// the session; a new one is told all that lies in the trash, and tells all orders.
type reclaimer struct {
	a    *Agent
	wake chan struct{}

	mu     sync.Mutex
	orders map[spec.VolumeID]*duty
	said   map[spec.VolumeID]spec.VolumeReport // not sent yet
}

// duty is an order, and when it is tried (again).
type duty struct {
	order spec.VolumeOrder
	due   time.Time
	tries int
	done  bool
}

// noteTrash is how often the trash is looked at so that its time is written down.
const noteTrash = 10 * time.Minute

func newReclaimer(a *Agent) *reclaimer {
	return &reclaimer{
		a: a, wake: make(chan struct{}, 1),
		orders: map[spec.VolumeID]*duty{}, said: map[spec.VolumeID]spec.VolumeReport{},
	}
}

// begin forgets what was told in the session before, and returns the trash's content
// for the next; nil: it cannot be read.
func (r *reclaimer) begin(ctx context.Context) *proto.VolumeReports {
	r.mu.Lock()
	clear(r.orders)
	clear(r.said)
	r.mu.Unlock()
	trash, err := r.a.c.Volumes.Trash(ctx)
	var reports []spec.VolumeReport
	for _, t := range trash {
		reports = append(reports, trashed(t))
	}
	docs, err2 := wire.Documents(reports)
	if err = errors.Join(err, err2); err != nil {
		r.a.log.Warn("trash not read", "err", err)
		return nil
	}
	return &proto.VolumeReports{Full: true, ReportsJson: docs}
}

func trashed(t runtime.Trashed) spec.VolumeReport {
	return spec.VolumeReport{
		ID: t.ID, Claim: t.Claim, Volume: t.Volume, Number: t.Number, Class: t.Class,
		State: spec.VolumeTrashed, Left: spec.Duration{Duration: t.Left}, At: time.Now().UTC(),
		Turn: t.Turn, SizeBytes: t.SizeBytes,
	}
}

// tell takes orders; a full list replaces all.
func (r *reclaimer) tell(full bool, orders []spec.VolumeOrder) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if full {
		clear(r.orders)
	}
	for _, o := range orders {
		if old := r.orders[o.Volume]; old == nil || old.order != o {
			r.orders[o.Volume] = &duty{order: o}
		}
	}
	r.ring()
}

func (r *reclaimer) ring() {
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// take returns what is to be sent, by volume.
func (r *reclaimer) take() (reports []spec.VolumeReport) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, id := range slices.Sorted(maps.Keys(r.said)) {
		reports = append(reports, r.said[id])
	}
	clear(r.said)
	return reports
}

func (r *reclaimer) say(v spec.VolumeReport) {
	v.At = time.Now().UTC()
	r.mu.Lock()
	r.said[v.Volume] = v
	r.mu.Unlock()
	r.a.outbox.ring()
}

// run works until ctx ends.
func (r *reclaimer) run(ctx context.Context) {
	for {
		wait := r.round(ctx)
		select {
		case <-ctx.Done():
			return
		case <-r.wake:
		case <-time.After(wait):
		}
	}
}

// round does what is due and returns how long until something is again.
func (r *reclaimer) round(ctx context.Context) time.Duration {
	trash, err := r.a.c.Volumes.Trash(ctx)
	if err != nil && ctx.Err() == nil {
		r.a.log.Warn("trash not read", "err", err)
	}
	r.mu.Lock()
	duties := make([]*duty, 0, len(r.orders))
	for _, id := range slices.Sorted(maps.Keys(r.orders)) {
		duties = append(duties, r.orders[id])
	}
	r.mu.Unlock()
	wait := noteTrash
	for _, d := range duties {
		if d.done || ctx.Err() != nil {
			continue
		}
		if left := time.Until(d.due); left > 0 {
			wait = min(wait, left)
			continue
		}
		switch {
		case d.order.Fate.Ordered():
			r.obey(ctx, d)
		case d.order.Fate != spec.FateGone:
			d.done = true // an order that only a newer agent understands
		case err == nil:
			r.erase(ctx, d, trash)
		default:
			r.later(d)
		}
		if !d.done {
			wait = min(wait, time.Until(d.due))
		}
	}
	return max(wait, time.Millisecond)
}

// later tries an order again after a while that doubles.
func (r *reclaimer) later(d *duty) {
	first, most := r.a.shared.Tuning.RetryFirst, r.a.shared.Tuning.RetryMost
	for range d.tries {
		first = min(2*first, most)
	}
	d.tries++
	d.due = time.Now().Add(first)
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
	switch {
	case ctx.Err() != nil:
		return // the next agent is told again
	case err == nil:
		if d.done = true; report.State == spec.VolumeTrashed {
			report.Left = o.Trash
		}
		r.a.log.Info("volume moved", "member", o.ID.String(), "reason", string(report.State))
	default:
		report.State, report.Cause, report.Message = spec.VolumeRefused, runtime.VolumeCause(err), err.Error()
		if d.tries == 0 {
			r.a.log.Warn("volume not moved", "member", o.ID.String(), "reason", report.Cause, "err", err)
		}
		r.later(d)
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

// erase deletes for ever what is forgotten, when its time is over.
func (r *reclaimer) erase(ctx context.Context, d *duty, trash []runtime.Trashed) {
	o := d.order
	at := slices.IndexFunc(trash, func(t runtime.Trashed) bool { return t.Volume == o.Volume })
	if at >= 0 {
		if left := trash[at].Left; left > 0 {
			d.due = time.Now().Add(min(left, noteTrash)) // looked at again, by the trash's own clock
			return
		}
		if err := r.a.c.Volumes.Erase(ctx, trash[at].Class, o.Volume); err != nil {
			if ctx.Err() == nil && d.tries == 0 {
				r.a.log.Warn("volume not erased", "member", o.ID.String(), "err", err)
			}
			r.later(d)
			return
		}
		r.a.log.Info("volume erased", "member", o.ID.String())
	}
	d.done = true
	r.say(spec.VolumeReport{ID: o.ID, Claim: o.Claim, Volume: o.Volume, Number: o.Number, Class: o.Class, State: spec.VolumeErased})
}

// takeVolumes hands over the orders of a wanted list.
func (a *Agent) takeVolumes(w *proto.Wanted) {
	orders, err := wire.ToDocuments[spec.VolumeOrder](w.GetVolumesJson())
	if err != nil {
		// Volumes that stay are no harm; members must not wait for them.
		a.log.Error("orders on volumes not understood", "err", err)
		return
	}
	a.reclaimer.tell(w.GetFull(), orders)
}

// sendSaid sends what was said of volumes.
func (s *session) sendSaid(said []spec.VolumeReport) error {
	if len(said) == 0 {
		return nil
	}
	docs, err := wire.Documents(said)
	if err != nil {
		return err
	}
	return s.sendVolumes(&proto.VolumeReports{ReportsJson: docs})
}

func (s *session) sendVolumes(said *proto.VolumeReports) error {
	if said == nil {
		return nil
	}
	return s.stream.Send(&proto.FromNode{Kind: &proto.FromNode_Volumes{Volumes: said}})
}
