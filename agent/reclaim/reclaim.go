// Package reclaim does with volumes what the server ordered: gives them up to the trash, looks
// for lost ones, brings others back, lets those grow that are in use, and erases what the server has forgotten when its time in
// the trash is over. Directories are agent/volume's; here is when, and when not.
package reclaim

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/stead-project/stead/agent/runtime"
	"github.com/stead-project/stead/internal/notify"
	"github.com/stead-project/stead/internal/trouble"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/spec/scalar"
)

// Config is what a reclaimer needs; all of it.
type Config struct {
	Volumes runtime.Volumes
	// Open is the token of an identity's life that is open in the ledger; zero: none is.
	Open func(spec.Identity) spec.Token
	// Empty reports whether no process of an identity runs here.
	Empty func(context.Context, spec.Identity) (bool, error)
	// RetryFirst is the wait after a first failure; it doubles up to RetryMost.
	RetryFirst, RetryMost time.Duration
	// Now is the wall clock.
	Now func() time.Time
	// Reported is called when there is something for TakeReports; it must not block.
	Reported func()
	Logger   *slog.Logger
}

// Reclaimer works on the orders of the present session. What it reports is sent by the
// session; a new session sends all that lies in the trash, and gets all orders again.
// Each order is worked on by itself, so that a volume that takes long holds up no other.
type Reclaimer struct {
	c      Config
	wakeup *notify.Signal

	mu      sync.Mutex
	orders  map[records.VolumeID]*pendingOrder
	reports map[records.VolumeID]records.VolumeReport // not sent yet
	busy    map[records.VolumeID]bool                 // one order of a volume at a time
	running map[lane]int
	unread  trouble.Last // of a trash that is not known
}

// pendingOrder is an order, and when it is tried (again).
type pendingOrder struct {
	order records.VolumeOrder
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

const (
	// ErasuresAtOnce is how many volumes of a class are erased at once; others wait.
	ErasuresAtOnce = 2
	// movesAtOnce is the same for everything else that is ordered.
	movesAtOnce = 8
	// EraseTime is for how long one volume is erased before others have their turn.
	EraseTime = time.Minute
)

// noteTrash is how often the trash is looked at so that its time is written down.
const noteTrash = 10 * time.Minute

// New returns a reclaimer without orders.
func New(c Config) *Reclaimer {
	return &Reclaimer{
		c: c, wakeup: notify.New(),
		orders: map[records.VolumeID]*pendingOrder{}, reports: map[records.VolumeID]records.VolumeReport{},
		busy: map[records.VolumeID]bool{}, running: map[lane]int{},
	}
}

// NewSession forgets the orders and reports of the session before, and returns the trash's
// content for the next. It is whole only if all of it is known: what lies on a disk that is
// away must not be forgotten.
func (r *Reclaimer) NewSession(ctx context.Context) (trash []records.VolumeReport, whole bool) {
	r.mu.Lock()
	clear(r.orders)
	clear(r.reports)
	r.mu.Unlock()
	found, whole := r.readTrash(ctx)
	for _, t := range found {
		trash = append(trash, records.VolumeReport{
			ID: t.ID, Claim: t.Claim, Volume: t.Volume, Number: t.Number, Class: t.Class,
			State: records.VolumeTrashed, Left: scalar.Duration{Duration: t.Left}, At: r.c.Now().UTC(),
			Turn: t.Turn, SizeBytes: t.SizeBytes,
		})
	}
	return trash, whole
}

// readTrash lists what lies in the trash, as far as it can be read, and reports whether
// that is all.
func (r *Reclaimer) readTrash(ctx context.Context) ([]runtime.Trashed, bool) {
	trash, err := r.c.Volumes.Trash(ctx)
	r.mu.Lock()
	defer r.mu.Unlock()
	if ctx.Err() == nil && r.unread.IsErr(err) {
		r.c.Logger.Warn("trash not read", "err", err)
	}
	return trash, err == nil
}

// Take takes orders; a full list replaces all.
func (r *Reclaimer) Take(full bool, orders []records.VolumeOrder) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if full {
		clear(r.orders)
	}
	for _, o := range orders {
		if old := r.orders[o.Volume]; old == nil || old.order != o {
			r.orders[o.Volume] = &pendingOrder{order: o}
		}
	}
	r.wakeup.Notify()
}

// TakeReports returns what is to be sent, by volume, and forgets it.
func (r *Reclaimer) TakeReports() (reports []records.VolumeReport) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, id := range slices.Sorted(maps.Keys(r.reports)) {
		reports = append(reports, r.reports[id])
	}
	clear(r.reports)
	return reports
}

func (r *Reclaimer) report(v records.VolumeReport) {
	v.At = r.c.Now().UTC()
	r.mu.Lock()
	r.reports[v.Volume] = v
	r.mu.Unlock()
	r.c.Reported()
}
