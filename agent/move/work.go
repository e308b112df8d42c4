package move

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"reflect"
	"slices"
	"syscall"
	"time"

	"github.com/stead-project/stead/agent/move/step"
	"github.com/stead-project/stead/agent/runtime"
	"github.com/stead-project/stead/internal/backoff"
	"github.com/stead-project/stead/records/moves"
)

// ErrNever: trying again is of no use.
var ErrNever = errors.New("cannot be copied")

// errUnlike: after a last round the sums differ.
var errUnlike = errors.New("what was copied is not what the source has")

const (
	// unlikeMost is how many last rounds may end with other sums than the source's.
	unlikeMost = 3
	// tellEvery is how often progress is said.
	tellEvery = 10 * time.Second
)

// work looks at a part, says what is so, and does what comes next.
func (m *Mover) work(ctx context.Context, j *job) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	disk, err := m.c.Volumes.Look(ctx, j.part)
	copied := j.part.Copied
	if disk.Missing {
		copied = nil // its disk died since
	}
	m.mu.Lock()
	v := step.Situation{
		Role: j.part.Role, Order: j.order, Told: m.told, SameEpoch: j.part.Epoch == m.epoch,
		Disk: step.Disk{
			Sealed: disk.Sealed, AllSealed: disk.AllSealed, Arrived: disk.Arrived, AllArrived: disk.AllArrived,
			Staged: disk.Staged, Copied: copied, Absent: disk.Absent,
		},
		Sums: j.sums, Warm: j.warm, Back: j.part.Back, Failed: j.failed,
	}
	j.cancel = cancel
	m.mu.Unlock()
	var next step.Next
	if err == nil {
		next = step.Choose(v)
		m.report(j, v.Order, next)
		err = m.do(ctx, j, v, next.Op)
	}
	m.settle(ctx, j, next.Op, err)
}

// copies: by this order trees are handed out, and fetched.
func copies(o *moves.MoveOrder) bool {
	return o != nil && (o.Phase == moves.MoveCopying || o.Phase.Down())
}

// report says what a decision says; the source's key and port go with an offer.
func (m *Mover) report(j *job, o *moves.MoveOrder, next step.Next) {
	r := moves.MoveReport{ID: j.part.ID, Move: j.part.Move, Role: j.part.Role, State: next.Say, Sums: next.Sums, Absent: next.Absent, Error: next.Error}
	if o == nil && next.Say == moves.MoveSealed {
		r.Peer, r.Claims = j.part.Peer, j.part.Claims
	}
	if copies(o) && !j.part.Back && next.Say != moves.MoveFailed {
		var err error
		if r.Key, r.Port, err = m.c.Copier.Key(j.part.Move); err != nil {
			r.Error = err.Error()
		}
		if j.part.Role == moves.MoveTarget {
			r.Port = 0
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if j.part.Role == moves.MoveTarget {
		r.DoneBytes, r.TotalBytes, r.BytesPerSecond = j.said.DoneBytes, j.said.TotalBytes, j.said.BytesPerSecond
	}
	if r.Error == "" && j.said.State == r.State && j.tries > 0 {
		r.Error = j.said.Error // until a try goes through
	}
	j.op = next.Op
	if !reflect.DeepEqual(j.said, r) {
		j.said = r
		m.say()
	}
}

// settle notes how it ended, and when the part is looked at again.
func (m *Mover) settle(ctx context.Context, j *job, op step.Op, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.c.Now()
	interrupted := err != nil && ctx.Err() != nil
	j.busy, j.cancel, j.op = false, nil, step.Wait
	again := j.dirty
	switch {
	case j.over:
		delete(m.jobs, key{j.part.Move, j.part.Role})
		m.say()
	case interrupted, err == nil && op != step.Wait && op != step.Offer && op != step.Copy:
		again = true
	case err != nil:
		m.failed(j, op, err)
		again = again || j.failed != ""
		j.due = now.Add(backoff.After(m.c.RetryFirst, m.c.RetryMost, j.tries))
	case op == step.Copy:
		j.due = now.Add(m.c.Between)
	case len(j.said.Absent) > 0: // it may be put back
		j.due = now.Add(m.c.RetryMost)
	default:
		j.due = now.Add(idle)
	}
	if err == nil && j.tries > 0 {
		j.tries = 0
		again = true // its report has the error still
	}
	if again {
		j.due = time.Time{}
	}
	m.wakeup.Notify()
}

// failed notes a failure, and says it; the caller holds the lock.
func (m *Mover) failed(j *job, op step.Op, err error) {
	j.tries++
	if j.tries == 1 {
		m.c.Logger.Warn("move not continued", "member", j.part.ID.String(), "reason", string(op), "err", err)
	}
	never := errors.Is(err, ErrNever) || errors.Is(err, syscall.ENOSPC) || errors.Is(err, runtime.ErrNoSpace) ||
		errors.Is(err, runtime.ErrForeign) || errors.Is(err, runtime.ErrExists) || errors.Is(err, runtime.ErrAbsent)
	gone := errors.Is(err, runtime.ErrForeign) || errors.Is(err, runtime.ErrAbsent)
	if never && (op == step.Offer || op == step.Copy || op == step.Last) || gone && op == step.Seal {
		j.failed = err.Error()
	}
	if j.said.State != "" && j.said.Error != err.Error() {
		j.said.Error = err.Error()
		m.say()
	}
}

// do does one operation.
func (m *Mover) do(ctx context.Context, j *job, v step.Situation, op step.Op) error {
	if !copies(v.Order) || j.part.Back {
		m.c.Copier.Withdraw(j.part.Move)
		if err := m.c.Volumes.Release(ctx, j.part); err != nil {
			return err
		}
	} else if err := m.keep(ctx, j); err != nil {
		return err
	}
	switch op {
	case step.Offer:
		return m.offer(ctx, j, v.Order)
	case step.Seal:
		return m.seal(ctx, j)
	case step.Sum:
		return m.sum(ctx, j, v.Order)
	case step.Unseal:
		return m.c.Volumes.Unseal(ctx, j.part)
	case step.GiveBack:
		p := j.part
		p.Back = true
		return m.write(ctx, j, p)
	case step.Copy:
		return m.copy(ctx, j, v.Order)
	case step.Last:
		return m.last(ctx, j, v.Order)
	case step.Arrive:
		return m.c.Volumes.Arrive(ctx, j.part)
	case step.Discard:
		if err := m.uncopied(ctx, j); err != nil {
			return err
		}
		return m.c.Volumes.Discard(ctx, j.part)
	case step.Forget:
		err := m.c.Volumes.Forget(ctx, j.part)
		m.mu.Lock()
		j.over = err == nil && j.order == nil
		m.mu.Unlock()
		return err
	}
	return nil
}

// keep notes the part, with the epoch in which it is named, before anything is done for it.
func (m *Mover) keep(ctx context.Context, j *job) error {
	m.mu.Lock()
	epoch := m.epoch
	m.mu.Unlock()
	if j.noted && j.part.Epoch == epoch {
		return nil
	}
	p := j.part
	p.Epoch = epoch
	return m.write(ctx, j, p)
}

// write notes what the part is from now on.
func (m *Mover) write(ctx context.Context, j *job, p runtime.MovePart) error {
	if err := m.c.Volumes.Note(ctx, p); err != nil {
		return err
	}
	j.part, j.noted = p, true
	return nil
}

// uncopied takes back, durably, that all is copied: something is about to be written, or deleted.
func (m *Mover) uncopied(ctx context.Context, j *job) error {
	return m.note(ctx, j, nil)
}

func (m *Mover) note(ctx context.Context, j *job, copied []moves.MoveSum) error {
	if slices.Equal(j.part.Copied, copied) {
		return nil
	}
	p := j.part
	p.Copied = copied
	return m.write(ctx, j, p)
}

func peerOf(o *moves.MoveOrder) Other {
	return Other{
		Move: o.Move, At: netip.AddrPortFrom(o.PeerAddress, o.PeerPort), Key: o.PeerKey, BytesPerSecond: o.BytesPerSecond,
	}
}

func (m *Mover) offer(ctx context.Context, j *job, o *moves.MoveOrder) error {
	trees, err := m.c.Volumes.Source(ctx, j.part)
	if err != nil {
		return err
	}
	m.c.Copier.Offer(ctx, peerOf(o), trees)
	return nil
}

// seal seals the volumes, unless a life may use them. It checks before and after: a life may have started in between. One that
// starts later is refused because of the seal.
func (m *Mover) seal(ctx context.Context, j *job) error {
	if err := m.unused(ctx, j); err != nil {
		return err
	}
	before, err := m.c.Volumes.Look(ctx, j.part)
	if err != nil {
		return err
	}
	if err := m.c.Volumes.Seal(ctx, j.part); err != nil {
		return err
	}
	err = m.unused(ctx, j)
	if err != nil && !before.Sealed {
		err = errors.Join(err, m.c.Volumes.Unseal(context.WithoutCancel(ctx), j.part)) // the servers do not know of this seal yet
	}
	return err
}

// unused fails while a life of the identity is open in the ledger or has processes (SAFETY S13).
func (m *Mover) unused(ctx context.Context, j *job) error {
	if open := m.c.Open(j.part.ID); !open.IsZero() {
		return fmt.Errorf("not sealed: token %s of %s is not over on this node", open, j.part.ID)
	}
	empty, err := m.c.Empty(ctx, j.part.ID)
	if err == nil && !empty {
		err = fmt.Errorf("not sealed: processes of %s run on this node", j.part.ID)
	}
	return err
}

func (m *Mover) sum(ctx context.Context, j *job, o *moves.MoveOrder) error {
	if err := m.offer(ctx, j, o); err != nil {
		return err
	}
	trees, err := m.c.Volumes.Source(ctx, j.part)
	if err != nil {
		return err
	}
	sums, err := m.c.Copier.Sums(ctx, j.part.Move, trees, false)
	m.mu.Lock()
	defer m.mu.Unlock()
	if err == nil {
		j.sums = sums
	}
	return err
}

// round is one round of a target.
func (m *Mover) round(ctx context.Context, j *job, o *moves.MoveOrder, fresh bool) (trees []runtime.MoveTree, copied int64, err error) {
	if err := m.uncopied(ctx, j); err != nil {
		return nil, 0, err
	}
	if trees, err = m.c.Volumes.Stage(ctx, j.part); err != nil {
		return nil, 0, err
	}
	var told time.Time
	var before int64
	copied, err = m.c.Copier.Round(ctx, peerOf(o), trees, fresh, func(done, total int64) {
		m.mu.Lock()
		defer m.mu.Unlock()
		if now := m.c.Now(); now.Sub(told) >= tellEvery || done == total {
			rate := int64(0)
			if past := now.Sub(told).Seconds(); !told.IsZero() && done != total && past > 0 {
				rate = int64(float64(max(done-before, 0)) / past)
			}
			told, before = now, done
			j.said.DoneBytes, j.said.TotalBytes, j.said.BytesPerSecond = done, total, rate
			m.say()
		}
	})
	return trees, copied, err
}

func (m *Mover) copy(ctx context.Context, j *job, o *moves.MoveOrder) error {
	began := m.c.Now()
	_, copied, err := m.round(ctx, j, o, false)
	m.mu.Lock()
	defer m.mu.Unlock()
	if err != nil {
		return err
	}
	round := step.Round{Bytes: copied, Took: m.c.Now().Sub(began)}
	if warm := step.Warm(round, j.last); warm != j.warm {
		j.warm, j.dirty = warm, true
	}
	j.last = round
	return nil
}

// last makes the round after which all is equal, and compares by content.
func (m *Mover) last(ctx context.Context, j *job, o *moves.MoveOrder) error {
	trees, _, err := m.round(ctx, j, o, j.unlike > 0)
	if err != nil {
		return err
	}
	sums, err := m.c.Copier.Sums(ctx, j.part.Move, trees, j.unlike > 0)
	if err != nil {
		return err
	}
	if !slices.Equal(sums, o.Sums) {
		j.unlike++
		if j.unlike >= unlikeMost {
			return fmt.Errorf("%w: after %d rounds %w", ErrNever, j.unlike, errUnlike)
		}
		return errUnlike
	}
	return m.note(ctx, j, sums)
}
