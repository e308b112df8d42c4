package agent

import (
	"context"
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
// the present session, and erases what the server has forgotten when its time in the trash
// is over. What it says is sent by the session; a new one is told all that lies in the
// trash, and tells all orders.
// Each order is worked on by itself, so that a volume that takes long holds up no other.
type reclaimer struct {
	a    *Agent
	wake chan struct{}

	mu     sync.Mutex
	orders map[spec.VolumeID]*duty
	said   map[spec.VolumeID]spec.VolumeReport // not sent yet
	busy   map[spec.VolumeID]bool              // one order of a volume at a time
	taken  map[lane]int
	unread string // what was last logged of a trash that is not known
}

// duty is an order, and when it is tried (again).
type duty struct {
	order spec.VolumeOrder
	due   time.Time
	tries int
	done  bool
}

// lane is for work that may hold up its like: erasures take long, and a disk that hangs
// holds up all that is done on it.
type lane struct {
	class string
	erase bool
}

// How many orders of a lane are worked on at once, and for how long one volume is erased
// before others have their turn.
const (
	movesAtOnce    = 8
	erasuresAtOnce = 2
	eraseTime      = time.Minute
)

// noteTrash is how often the trash is looked at so that its time is written down.
const noteTrash = 10 * time.Minute

func newReclaimer(a *Agent) *reclaimer {
	return &reclaimer{
		a: a, wake: make(chan struct{}, 1),
		orders: map[spec.VolumeID]*duty{}, said: map[spec.VolumeID]spec.VolumeReport{},
		busy: map[spec.VolumeID]bool{}, taken: map[lane]int{},
	}
}

// begin forgets what was told in the session before, and returns the trash's content
// for the next. It is full only if all of it is known: what lies on a disk that is away
// must not be forgotten.
func (r *reclaimer) begin(ctx context.Context) *proto.VolumeReports {
	r.mu.Lock()
	clear(r.orders)
	clear(r.said)
	r.mu.Unlock()
	trash, whole := r.readTrash(ctx)
	var reports []spec.VolumeReport
	for _, t := range trash {
		reports = append(reports, trashed(t))
	}
	docs, err := wire.Documents(reports)
	if err != nil {
		r.a.log.Error("trash not told", "err", err)
		return nil
	}
	return &proto.VolumeReports{Full: whole, ReportsJson: docs}
}

// readTrash lists what lies in the trash, as far as it can be read, and tells whether
// that is all.
func (r *reclaimer) readTrash(ctx context.Context) ([]runtime.Trashed, bool) {
	trash, err := r.a.c.Volumes.Trash(ctx)
	says := ""
	if err != nil {
		says = err.Error()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if says != "" && says != r.unread && ctx.Err() == nil {
		r.a.log.Warn("trash not read", "err", err)
	}
	r.unread = says
	return trash, err == nil
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
