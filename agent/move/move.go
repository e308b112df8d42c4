// Package move carries out a node's parts in moves of members to other nodes (SAFETY S12). What comes next is decided by
// agent/move/step; directories are agent/volume's; here is when, and what is said of it.
package move

import (
	"cmp"
	"context"
	"log/slog"
	"net/netip"
	"reflect"
	"slices"
	"sync"
	"time"

	"github.com/stead-project/stead/agent/move/step"
	"github.com/stead-project/stead/agent/runtime"
	"github.com/stead-project/stead/internal/notify"
	"github.com/stead-project/stead/records/moves"
	"github.com/stead-project/stead/spec"
)

// Other is how a move reaches, or is reached by, the other node.
type Other struct {
	Move moves.MoveID
	// At is where a source listens; of a target.
	At netip.AddrPort
	// Key is the other's (moves.MoveOrder.PeerKey); "": nobody is let in yet.
	Key string
	// BytesPerSecond bounds this move; 0: as all of the node.
	BytesPerSecond int64
}

// Copier copies trees between nodes. It fails with ErrNever when trying again is of no use. Body: agent/move/peer.
type Copier interface {
	// Key is the node's own of a move, made at the first call, and the port at which it listens.
	Key(move moves.MoveID) (key string, port uint16, err error)
	// Offer hands out the trees to the peer from now on, in place of what was offered of the move before; it does not end with ctx.
	Offer(ctx context.Context, p Other, trees []runtime.MoveTree)
	// Withdraw ends that, and what is under way of it, and forgets the key.
	Withdraw(move moves.MoveID)
	// Sums sums the trees, which nobody writes to. fresh: each file is read.
	Sums(ctx context.Context, move moves.MoveID, trees []runtime.MoveTree, fresh bool) ([]moves.MoveSum, error)
	// Round makes the trees what those of the peer are, as far as nobody writes to them meanwhile, and puts them on disk.
	// told is called now and then with the bytes that are there, of all.
	Round(ctx context.Context, p Other, trees []runtime.MoveTree, fresh bool, told func(done, total int64)) (copied int64, err error)
}

// Config is what a Mover needs; all of it.
type Config struct {
	Volumes runtime.MoveVolumes
	Copier  Copier
	// Open is the token of an identity's life that is open in the ledger; zero: none is. Empty reports whether no process of it
	// runs here.
	Open  func(spec.Identity) spec.Token
	Empty func(context.Context, spec.Identity) (bool, error)
	// Reported takes what there is to say of all parts after each change, in order. It does not block.
	Reported func([]moves.MoveReport)
	// RetryFirst is the wait after a first failure; it doubles up to RetryMost. Between is the least from one round to the next.
	RetryFirst, RetryMost, Between time.Duration
	Now                            func() time.Time
	Logger                         *slog.Logger
}

type key struct {
	move moves.MoveID
	role moves.MoveRole
}

// job is one part. All but part is guarded by the mover's mu; part is its worker's.
type job struct {
	part   runtime.MovePart
	order  *moves.MoveOrder
	said   moves.MoveReport
	due    time.Time
	tries  int
	busy   bool
	dirty  bool // the order changed while it was worked on
	op     step.Op
	cancel context.CancelFunc
	sums   []moves.MoveSum
	warm   bool
	last   step.Round // while the member ran; zero: none yet
	unlike int        // last rounds after which the sums differed
	failed string
	noted  bool // the part is on disk
	over   bool
}

// Mover works on the orders of the present session. Safe for concurrent use.
type Mover struct {
	c      Config
	wakeup *notify.Signal

	mu    sync.Mutex
	jobs  map[key]*job
	told  bool
	epoch int64
}

// New returns a mover; Begin is called before all else.
func New(c Config) *Mover { return &Mover{c: c, wakeup: notify.New(), jobs: map[key]*job{}} }

// Begin takes up the parts that an earlier process noted, and says what is known of them.
func (m *Mover) Begin(ctx context.Context) error {
	parts, err := m.c.Volumes.Parts(ctx)
	m.mu.Lock()
	for _, p := range parts {
		m.jobs[key{p.Move, p.Role}] = &job{part: p, noted: true}
	}
	m.mu.Unlock()
	m.Round(ctx, func(work func()) { work() })
	return err
}

// Take replaces all orders; they are of a list of this epoch.
func (m *Mover) Take(orders []moves.MoveOrder, epoch int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.told, m.epoch = true, epoch
	named := map[key]bool{}
	for _, o := range orders[:min(len(orders), moves.MaxMoves)] {
		k := key{o.Move, o.Role}
		named[k] = true
		j := m.jobs[k]
		if j == nil {
			j = &job{part: runtime.MovePart{ID: o.ID, Move: o.Move, Role: o.Role, Peer: o.Peer, Claims: o.Claims, Epoch: epoch}}
			m.jobs[k] = j
		}
		m.give(j, &o)
	}
	for k, j := range m.jobs {
		if !named[k] {
			m.give(j, nil)
		}
	}
	m.wakeup.Notify()
}

// give gives a job its order; the caller holds the lock.
func (m *Mover) give(j *job, o *moves.MoveOrder) {
	if o != nil && reflect.DeepEqual(j.order, o) {
		return
	}
	if j.cancel != nil && step.Interrupts(j.op, j.order, o) {
		j.cancel()
	}
	j.order, j.due, j.tries, j.dirty = o, time.Time{}, 0, true
}

// Run works until ctx ends, and returns when nothing is under way.
func (m *Mover) Run(ctx context.Context) {
	var group sync.WaitGroup
	defer group.Wait()
	for {
		wait := m.Round(ctx, group.Go)
		select {
		case <-ctx.Done():
			return
		case <-m.wakeup.C():
		case <-time.After(wait):
		}
	}
}

// idle is how long a part waits at most that has nothing to do.
const idle = time.Hour

// Round starts the work that is due, each piece by one call of start, which may also do it at once, and returns how long
// until something is due again.
func (m *Mover) Round(ctx context.Context, start func(work func())) time.Duration {
	m.mu.Lock()
	wait, now := idle, m.c.Now()
	var due []*job
	for _, j := range m.jobs {
		switch left := j.due.Sub(now); {
		case j.busy || ctx.Err() != nil:
		case left > 0:
			wait = min(wait, left)
		default:
			j.busy, j.dirty = true, false
			due = append(due, j)
		}
	}
	m.mu.Unlock()
	slices.SortFunc(due, func(a, b *job) int {
		return cmp.Or(cmp.Compare(a.part.Move, b.part.Move), cmp.Compare(a.part.Role, b.part.Role))
	})
	for _, j := range due {
		start(func() { m.work(ctx, j) })
	}
	return wait
}

// say hands on all reports; the caller holds the lock.
func (m *Mover) say() {
	var all []moves.MoveReport
	for _, j := range m.jobs {
		if j.said.State != "" {
			all = append(all, j.said)
		}
	}
	slices.SortFunc(all, func(a, b moves.MoveReport) int { return a.Compare(&b) })
	m.c.Reported(all)
}
