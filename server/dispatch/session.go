package dispatch

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/stead-project/stead/proto"
	"github.com/stead-project/stead/proto/wire"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/server/cache"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/store"
)

// errOver tells a node that its session is not the store's any more.
var errOver = status.Error(codes.Aborted, "the session is over; say hello again")

// retryTime is the wait before what the store refused is tried again.
const retryTime = time.Second

// session is one node's live connection. Only run sends on its stream.
type session struct {
	seat
	boot  spec.BootID
	id    spec.SessionID
	lease store.LeaseID
	rev   store.Rev // mod-revision of the session key: it changes when another session takes over
	epoch int64
	facts records.NodeFacts // as stored, but for strays not yet written; run's own
	told  store.Rev         // up to here pictures and histories were told; run's own

	ctx    context.Context // ends with the session; its cause is what the stream returns
	cancel context.CancelCauseFunc
	out    *outbox
	server *Server

	mu      sync.Mutex
	holding map[life]bool // what the node says it has open
	moved   bool          // holding or said changed since run looked
	said    said          // of volumes, not stored yet
}

func (s *Server) newSession(ctx context.Context, g guest, record records.Session, rev store.Rev, epoch int64) *session {
	se := &session{
		seat: g.seat, boot: g.boot, id: record.ID, lease: store.LeaseID(record.ID), rev: rev, epoch: epoch,
		facts: g.facts, out: newOutbox(), server: s, holding: g.holding,
	}
	se.ctx, se.cancel = context.WithCancelCause(ctx)
	return se
}

// abort ends the session with a status for the node.
func (se *session) abort(code codes.Code, text string) { se.cancel(status.Error(code, text)) }

// receive takes one message after hello. It does not block.
func (se *session) receive(msg *proto.FromNode) {
	switch {
	case msg.GetPing() != nil:
		se.server.pings.add(se, msg.GetPing().GetId())
	case msg.GetInventory() != nil:
		if why := tooMuch(msg.GetInventory(), nil); why != "" {
			se.overdo(LimitHello, why)
			return
		}
		se.mu.Lock()
		se.holding, se.moved = holdings(msg.GetInventory()), true
		se.mu.Unlock()
		se.out.ring()
	case msg.GetReports() != nil:
		se.hearReports(msg.GetReports())
	case msg.GetVolumes() != nil:
		se.hear(msg.GetVolumes())
	case msg.GetHello() != nil:
		se.abort(codes.InvalidArgument, "a session has one hello")
	}
}

// overdo ends the session, for the node says more than it may.
func (se *session) overdo(limit Limit, why string) {
	se.server.refusals.add(se.node, limit, 1, why)
	se.abort(codes.ResourceExhausted, fmt.Sprintf("node %s: %s", se.node, why))
}

// hearReports puts reports in line. One that is no member's, or too long, is left out: the
// others are as good without it.
func (se *session) hearReports(m *proto.Reports) {
	bytes := 0
	docs := make([][]byte, 0, len(m.GetReportsJson()))
	for _, d := range m.GetReportsJson() {
		if len(d) > reportBytes {
			se.server.refusals.add(se.node, LimitReports, 1, fmt.Sprintf("a report has %d bytes, of at most %d", len(d), reportBytes))
			continue
		}
		docs, bytes = append(docs, d), bytes+len(d)
	}
	reports, err := wire.ToDocuments[records.Report](docs)
	if err != nil {
		se.abort(codes.InvalidArgument, err.Error())
		return
	}
	all := len(reports)
	if reports = slices.DeleteFunc(reports, func(r records.Report) bool { return !whose(r.ID) }); len(reports) < all {
		se.server.refusals.add(se.node, LimitReports, all-len(reports), "a report names no member")
	}
	if !se.note(reports) {
		se.overdo(LimitReports, fmt.Sprintf("it says that it has more than %d lives", maxHoldings))
		return
	}
	se.server.reports.add(se, reports, bytes)
}

// note keeps holding in step with what the node reports of its lives; false: they are more
// than a node may have.
func (se *session) note(reports []records.Report) bool {
	se.mu.Lock()
	defer se.mu.Unlock()
	for _, r := range reports {
		l := life{ID: r.ID, Token: r.Token}
		if held := se.holding[l]; held == r.Phase.Over() {
			se.moved = true
			if held {
				delete(se.holding, l)
			} else {
				se.holding[l] = true
			}
		}
	}
	if se.moved {
		se.out.ring()
	}
	return len(se.holding) <= maxHoldings
}

// held is a copy of what the node has open.
func (se *session) held() map[life]bool {
	se.mu.Lock()
	defer se.mu.Unlock()
	se.moved = false
	return maps.Clone(se.holding)
}

// run tells the node all, then what changes, until the session is over; its
// error is the status of the stream.
func (se *session) run(stream proto.Nodes_SessionServer) error {
	sub := se.server.cfg.Cache.Subscribe()
	defer sub.Close()
	sub.Take() // all is told below
	pics := se.server.pictures
	if err := pics.reach(se.ctx, se.rev); err != nil {
		return over(err)
	}
	t, all := newTold(), true
	retry := time.NewTimer(0)
	defer retry.Stop()
	for {
		moved := pics.wait() // before looking, so that no round is missed
		if all {
			t = newTold()
		}
		again, err := se.tell(stream, t, all)
		if err != nil {
			return err
		}
		retry.Stop()
		if again {
			retry.Reset(retryTime)
		}
		pong, err := se.flush(stream)
		if err != nil {
			return err
		}
		if all, err = se.await(stream, sub, moved, retry.C, pong); err != nil {
			return over(err)
		}
	}
}

// await sends small answers until there is more to tell; all asks to tell
// everything. Its error ends the session.
func (se *session) await(stream proto.Nodes_SessionServer, sub *cache.Subscription, moved <-chan struct{}, retry <-chan time.Time, pong <-chan time.Time) (all bool, err error) {
	for {
		select {
		case <-pong: // it waited long enough
			if pong, err = se.flush(stream); err != nil {
				return false, err
			}
		case <-se.ctx.Done():
			return false, context.Cause(se.ctx)
		case <-sub.C():
			return sub.Take().All, nil
		case <-moved:
			return false, nil
		case <-retry:
			return false, nil
		case <-se.out.wake:
			if pong, err = se.flush(stream); err != nil {
				return false, err
			}
			if se.hasMoved() {
				return false, nil
			}
		}
	}
}

func (se *session) hasMoved() bool {
	se.mu.Lock()
	defer se.mu.Unlock()
	return se.moved
}

// over makes the status of a session's end; a node that hung up is no error.
func over(cause error) error {
	if errors.Is(cause, context.Canceled) {
		return nil
	}
	return cause
}

// flush sends the small answers. One that waits is sent when the channel receives.
func (se *session) flush(stream proto.Nodes_SessionServer) (again <-chan time.Time, err error) {
	out, wait := se.out.take(se.told)
	for _, msg := range out {
		if err := stream.Send(msg); err != nil {
			return nil, err
		}
	}
	if wait > 0 {
		again = time.After(wait)
	}
	return again, nil
}
