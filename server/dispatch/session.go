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
	"github.com/stead-project/stead/records/moves"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/store"
)

// errSessionOver says to a node that its session is not the store's any more.
var errSessionOver = status.Error(codes.Aborted, "session expired, reconnect")

// retryTime is the wait before what the store refused is tried again.
const retryTime = time.Second

// session is one node's live connection. Only run sends on its stream.
type session struct {
	machine
	boot     spec.BootID
	id       spec.SessionID
	rev      store.Rev // mod-revision of the session key: it changes when another session takes over
	epoch    int64
	factsRev store.Rev         // mod-revision of the facts as this session knows them; run's own
	facts    records.NodeFacts // as stored, but for unknown lives not yet written; run's own
	sentRev  store.Rev         // up to here snapshots and histories were sent; run's own
	pending  pending           // what changed and is not sent yet; run's own
	// volumesRev is that of the last volume report that was stored; run's own.
	volumesRev store.Rev

	// differences: the node takes sets by difference.
	differences bool
	// interest: it is sent in brief the sets that it has nothing to do with.
	interest bool
	watcher  *watcher // run's own; nil: it is not run

	ctx    context.Context // ends with the session; its cause is what the stream returns
	cancel context.CancelCauseFunc
	out    *outbox
	server *Server

	mu            sync.Mutex
	holding       map[spec.LifeID]bool    // what the node says it has open
	moved         map[spec.LifeID]bool    // what it opened (true) and closed since run looked
	resend        map[spec.SetRef]bool    // sets that it asked for as a whole
	asking        map[spec.SetRef]bool    // sets that it asks for in full; replaced whole
	askingMoved   bool                    // asking differs from what run looked at
	changed       bool                    // holding, resend, asking or volumeReports changed since run looked
	volumeReports pendingVolumeReports    // of volumes, not stored yet
	conditions    []records.NodeCondition // what the node is short of, as it said last
	prepared      []records.Prepared      // what it says of preparations, as it said last

	moves []moves.MoveReport // what it says of moves, as it said last

	movesAt      time.Time // when what it says of moves was stored last; run's own
	conditionsAt time.Time // when that was stored last; run's own; zero: with the hello
}

func (s *Server) newSession(ctx context.Context, req joinRequest, record records.Session, rev store.Rev, epoch int64) *session {
	se := &session{
		machine: req.machine, boot: req.boot, id: record.ID, rev: rev, factsRev: rev, epoch: epoch,
		facts: req.facts, out: newOutbox(), server: s, holding: req.holding, moved: map[spec.LifeID]bool{},
		resend: map[spec.SetRef]bool{}, differences: req.differences, interest: req.interest, asking: req.asked,
		pending: newPending(s.cfg.Cache.SubscribeNode(req.node)), conditions: req.conditions, prepared: req.prepared, moves: req.moves,
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
		if why := overLimit(msg.GetInventory(), nil); why != "" {
			se.abortOverLimit(LimitHello, why)
			return
		}
		se.replaceHoldings(holdings(msg.GetInventory()))
		se.out.filled.Notify()
	case msg.GetReports() != nil:
		se.receiveReports(msg.GetReports())
	case msg.GetVolumes() != nil:
		se.receiveVolumeReports(msg.GetVolumes())
	case msg.GetResend() != nil:
		se.receiveResend(msg.GetResend())
	case msg.GetFollow() != nil:
		se.receiveFollow(msg.GetFollow())
	case msg.GetConditions() != nil:
		se.receiveConditions(msg.GetConditions())
	case msg.GetPrepared() != nil:
		se.receivePrepared(msg.GetPrepared())
	case msg.GetMoves() != nil:
		se.receiveMoves(msg.GetMoves())
	case msg.GetHello() != nil:
		se.abort(codes.InvalidArgument, "second hello in one session; open another stream")
	}
}

// abortOverLimit ends the session of a node that exceeds a limit.
func (se *session) abortOverLimit(limit Limit, why string) {
	se.server.refusals.add(se.node, limit, 1, why)
	se.abort(codes.ResourceExhausted, fmt.Sprintf("node %s: %s", se.node, why))
}

// receiveReports queues reports. One that is not a member's, or too long, is left out: the
// others do not depend on it.
func (se *session) receiveReports(m *proto.Reports) {
	bytes := 0
	docs := make([][]byte, 0, len(m.GetReportsJson()))
	for _, d := range m.GetReportsJson() {
		if len(d) > reportBytes {
			se.server.refusals.add(se.node, LimitReports, 1, fmt.Sprintf("a report has %d bytes; the limit is %d", len(d), reportBytes))
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
	reports = slices.DeleteFunc(reports, func(r records.Report) bool { return !canBeMember(r.ID) })
	if len(reports) < all {
		se.server.refusals.add(se.node, LimitReports, all-len(reports), "a report has an invalid member identity")
	}
	if !se.updateHoldings(reports) {
		se.abortOverLimit(LimitReports, fmt.Sprintf("it reports more than %d lives", maxHoldings))
		return
	}
	se.server.reports.add(se, reports, bytes)
}

// updateHoldings keeps holding in step with what the node reports of its lives; false: they are more
// than a node may have.
func (se *session) updateHoldings(reports []records.Report) bool {
	se.mu.Lock()
	defer se.mu.Unlock()
	for _, r := range reports {
		l := spec.LifeID{ID: r.ID, Token: r.Token}
		if held := se.holding[l]; held == r.Phase.Over() {
			se.hold(l, !held)
		}
	}
	if se.changed {
		se.out.filled.Notify()
	}
	return len(se.holding) <= maxHoldings
}

// hold notes that the node opened a life or closed it; mu is held.
func (se *session) hold(l spec.LifeID, open bool) {
	se.moved[l], se.changed = open, true
	if open {
		se.holding[l] = true
	} else {
		delete(se.holding, l)
	}
}

// replaceHoldings takes over a whole inventory.
func (se *session) replaceHoldings(now map[spec.LifeID]bool) {
	se.mu.Lock()
	defer se.mu.Unlock()
	se.changed = true
	for l := range se.holding {
		if !now[l] {
			se.hold(l, false)
		}
	}
	for l := range now {
		if !se.holding[l] {
			se.hold(l, true)
		}
	}
}

// takeHoldings is what the node opened and closed since the last call, or (all) has open.
func (se *session) takeHoldings(all bool) map[spec.LifeID]bool {
	se.mu.Lock()
	defer se.mu.Unlock()
	se.changed = false
	if len(se.moved) == 0 && !all {
		return nil
	}
	moved := se.moved
	if all {
		moved = maps.Clone(se.holding)
	}
	se.moved = map[spec.LifeID]bool{}
	return moved
}

// run sends the node all, then what changes, until the session is over; its
// error is the status of the stream.
func (se *session) run(stream proto.Nodes_SessionServer) error {
	defer se.pending.sub.Close()
	pics := se.server.snapshots
	if err := pics.waitFor(se.ctx, se.rev); err != nil {
		return streamStatus(err)
	}
	watcher, stop := pics.watchers.add(se.node, !se.interest)
	defer stop()
	se.watcher = watcher
	var sent *sentState
	retry := time.NewTimer(0)
	defer retry.Stop()
	for {
		var again bool
		var err error
		sent, again, err = se.sendChanges(stream, sent)
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
		watcher.pong.Store(pong != nil)
		if err := se.await(stream, watcher.moved.C(), retry.C, pong); err != nil {
			return streamStatus(err)
		}
	}
}

// await sends small answers until there is more to send. Its error ends the session.
func (se *session) await(stream proto.Nodes_SessionServer, moved <-chan struct{}, retry <-chan time.Time, pong <-chan time.Time) (err error) {
	for {
		select {
		case <-pong: // it waited long enough
			pong, err = se.flush(stream)
			if err != nil {
				return err
			}
		case <-se.ctx.Done():
			return context.Cause(se.ctx)
		case <-se.pending.sub.C():
			return nil
		case <-moved:
			return nil
		case <-retry:
			return nil
		case <-se.out.filled.C():
			pong, err = se.flush(stream)
			if err != nil {
				return err
			}
			se.watcher.pong.Store(pong != nil)
			if se.hasChanged() || pong != nil && se.server.snapshots.seen() > se.sentRev {
				return nil
			}
		}
	}
}

func (se *session) hasChanged() bool {
	se.mu.Lock()
	defer se.mu.Unlock()
	return se.changed
}

// streamStatus makes the status of a session's end; a node that hung up is no error.
func streamStatus(cause error) error {
	if errors.Is(cause, context.Canceled) {
		return nil
	}
	return cause
}

// flush sends the small answers. One that waits is sent when the channel receives.
func (se *session) flush(stream proto.Nodes_SessionServer) (again <-chan time.Time, err error) {
	out, wait := se.out.take(se.sentRev)
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
