package dispatch

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/stead-project/stead/internal/trace"
	"github.com/stead-project/stead/proto"
	"github.com/stead-project/stead/proto/wire"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/records/moves"
	"github.com/stead-project/stead/server/cache"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/store"
)

// pending is what changed of all that a node is sent, each until it is sent: lives are looked at
// before the histories and files that go with them.
type pending struct {
	sub              *cache.NodeSubscription
	lives, histories cache.NodeChanges
	files            bool
}

func newPending(sub *cache.NodeSubscription) pending { return pending{sub: sub} }

// gather takes over what changed until now.
func (p *pending) gather() {
	ch := p.sub.Take()
	p.add(&ch)
}

func (p *pending) add(ch *cache.NodeChanges) {
	p.lives.Add(ch)
	p.histories.Add(ch)
	p.files = p.files || ch.Files || ch.All
}

// take empties part and returns what it was.
func take(part *cache.NodeChanges) *cache.NodeChanges {
	was := *part
	*part = cache.NodeChanges{}
	return &was
}

// sendChanges sends what changed since sent, and everything at first (sent is nil) and after
// anything may have changed. It returns what is sent now; again asks to be called once more
// after a while.
func (se *session) sendChanges(stream proto.Nodes_SessionServer, sent *sentState) (now *sentState, again bool, err error) {
	se.pending.gather()
	all := sent == nil || se.pending.lives.All
	if all {
		sent = newSentState(se.machine, se.server.cfg.Domain)
		se.pending.add(&cache.NodeChanges{All: true})
	}
	unknown, held, err := se.sendWantedChanges(stream, sent, all)
	if err != nil {
		return nil, false, err
	}
	se.out.allowPongs()
	if held {
		again, err = se.storeFacts(unknown)
		return sent, again, err
	}
	if err := se.sendSnapshots(stream, sent, all); err != nil {
		return nil, false, err
	}
	if err := se.sendFiles(stream, sent, all); err != nil {
		return nil, false, err
	}
	again, err = se.storeVolumeReports()
	if err != nil {
		return nil, false, err
	}
	rest, err := se.storeFacts(unknown)
	return sent, again || rest, err
}

// sendWantedChanges sends the lives that differ, and returns those that the store does not know. While
// the store is held nothing is sent: an earlier order may start a life that has been replaced since.
func (se *session) sendWantedChanges(stream proto.Nodes_SessionServer, sent *sentState, all bool) (unknown []spec.LifeID, held bool, err error) {
	var (
		seq     spec.Sequence
		lives   []records.Life
		ended   []spec.LifeID
		orders  []records.VolumeOrder
		mine    bool
		prepare bool
		move    []moves.MoveOrder
		moving  bool
		traced  []trace.Context
		began   = time.Now()
		changes = take(&se.pending.lives)
		moved   = se.takeHoldings(all)
	)
	sent.hold(moved)
	sent.setsMoved = sent.setsMoved || changes.All || len(changes.Members) > 0
	se.server.cfg.Cache.Look(func(v cache.View) {
		seq = sequence(v)
		mine = v.ModRev(store.SessionKey(se.node)) == se.rev && seq.Epoch == se.epoch
		ids := sent.touched(v, changes, moved)
		unknown = sent.nextUnknown(v, ids, se.pending.sub)
		held = v.Hold() != nil
		if held {
			return
		}
		lives = sent.nextLives(v, ids)
		traced = se.server.tracedLives(v, lives)
		prepare = se.facts.Prepares && sent.nextPreparations(v, changes)
		if restoreOpen(v) {
			return
		}
		ended = sent.nextOver(v, ids)
		orders = sent.nextOrders(v, se.machine)
		if se.facts.Moves {
			move, moving = sent.nextMoves(v)
		}
	})
	if !mine {
		return nil, false, errSessionOver
	}
	if held || !all && !prepare && !moving && len(lives)+len(ended)+len(orders) == 0 {
		return unknown, held, nil
	}
	var preparations *proto.Preparations
	if prepare || all && se.facts.Prepares {
		if preparations, err = sent.preparationsMessage(); err != nil {
			return nil, false, status.Errorf(codes.Internal, "encode preparations: %v", err)
		}
	}
	told, err := movesMessage(move, moving)
	if err != nil {
		return nil, false, status.Errorf(codes.Internal, "encode moves: %v", err)
	}
	w := &proto.Wanted{Sequence: wire.Sequence(seq), Full: all, Preparations: preparations, Moves: told}
	err = se.sendWanted(stream, w, lives, ended, orders)
	se.server.traceSent(traced, se.node, began)
	return unknown, false, err
}

// sendWanted sends w with these.
func (se *session) sendWanted(stream proto.Nodes_SessionServer, w *proto.Wanted, lives []records.Life, ended []spec.LifeID, orders []records.VolumeOrder) error {
	docs, err := wire.Documents(lives)
	volumes, err2 := wire.Documents(orders)
	if err := errors.Join(err, err2); err != nil {
		return status.Errorf(codes.Internal, "encode lives: %v", err)
	}
	w.LivesJson, w.VolumesJson = docs, volumes
	for _, l := range ended {
		w.Over = append(w.Over, &proto.Holding{Id: wire.Identity(l.ID), Token: wire.Token(l.Token)})
	}
	return stream.Send(&proto.ToNode{Kind: &proto.ToNode_Wanted{Wanted: w}})
}

// storeFacts stores which lives are unknown, and what the node is short of, when that changed, if the session is still
// the node's.
func (se *session) storeFacts(unknown []spec.LifeID) (again bool, err error) {
	conditions, again := se.nextConditions()
	prepared := se.nextPrepared()
	told, moving, later := se.nextMoveReports()
	volumes, known := se.nextUnknownVolumes()
	again = again || later
	moved, worse, further := !slices.Equal(unknown, se.facts.Strays), !records.SameConditions(conditions, se.facts.Conditions), !slices.Equal(prepared, se.facts.Prepared)
	if !moved && !worse && !further && !moving && !known {
		return again, nil
	}
	if len(unknown) > maxUnknownLives {
		se.abortOverLimit(LimitHello, fmt.Sprintf("it runs %d lives that the store does not know, of at most %d", len(unknown), maxUnknownLives))
		return false, context.Cause(se.ctx)
	}
	if !se.server.writes.mayWrite(se.node) {
		return true, nil
	}
	facts := se.facts
	facts.Strays, facts.Conditions, facts.Prepared = unknown, conditions, prepared
	facts.MoveReports, facts.UnknownVolumes = told, volumes
	then := []store.Op{store.Put(store.FactsKey(se.node), store.Encode(facts))}
	if moved {
		then = append(then, noteHello(se.node))
	}
	ctx, cancel := context.WithTimeout(se.ctx, storeTime)
	defer cancel()
	rev, err := se.server.cfg.Store.Commit(ctx, store.Txn{ // one whose outcome was unknown may be done after the next
		If:   []store.Compare{store.Seen(store.SessionKey(se.node), se.rev), store.Seen(store.FactsKey(se.node), se.factsRev)},
		Then: then,
	})
	switch {
	case errors.Is(err, store.ErrConflict):
		return se.factsMoved(ctx)
	case err != nil:
		return true, nil
	}
	se.factsRev = rev
	se.server.writes.charge(se.node, len(store.Encode(facts)))
	if worse {
		se.conditionsAt = time.Now()
	}
	if moving {
		se.movesAt = time.Now()
	}
	se.facts = facts
	return again, nil
}

// factsMoved looks again after a write of the facts that met a conflict: another session has begun, or an earlier write of this one, whose
// outcome was unknown, was done.
func (se *session) factsMoved(ctx context.Context) (again bool, err error) {
	session, facts := store.SessionKey(se.node), store.FactsKey(se.node)
	_, kvs, err := se.server.cfg.Store.Get(ctx, session, facts)
	switch {
	case err != nil:
		return true, nil
	case !se.owns(kvs[session]):
		return false, errSessionOver
	}
	se.factsRev = kvs[facts].Mod
	return true, nil
}

// sendSnapshots sends the snapshots that differ, and with them, not by itself, what is new in the histories of
// the node's sets, which is read later and so is never behind them. A change that was added to a
// history after the newest round of snapshots is sent with the next, which says that there is one.
func (se *session) sendSnapshots(stream proto.Nodes_SessionServer, sent *sentState, all bool) error {
	fresh := se.server.snapshots.since(se.nextNeed(sent))
	sent.snapshots = fresh.next
	var histories [][]byte
	var rev store.Rev
	var err error
	se.server.cfg.Cache.Look(func(v cache.View) {
		rev = min(v.Rev(), store.Rev(fresh.seq.Rev))
		se.pending.gather() // of all that the view shows
		if !all && fresh.none() {
			return
		}
		for _, part := range sent.nextHistories(v, take(&se.pending.histories)) {
			doc, one := se.server.histories.doc(v, part, se.differences)
			histories, err = append(histories, doc), errors.Join(err, one)
		}
	})
	if err != nil {
		return status.Errorf(codes.Internal, "encode histories: %v", err)
	}
	if all || !fresh.none() {
		p := &proto.Pictures{Sequence: wire.Sequence(fresh.seq), Full: all, PicturesJson: fresh.docs, Hosts: fresh.hosts, TunnelJson: fresh.tunnel, Servers: fresh.servers, Authority: fresh.authority, Sets: fresh.sets}
		if se.differences {
			p.Histories = histories
		} else {
			p.HistoriesJson = histories
		}
		if err := stream.Send(&proto.ToNode{Kind: &proto.ToNode_Pictures{Pictures: p}}); err != nil {
			return err
		}
	}
	se.sentRev = rev
	return nil
}

// sendFiles sends what the node's lives name and is new. A Secret that does not
// open is left out, and said once: the life waits for it.
func (se *session) sendFiles(stream proto.Nodes_SessionServer, sent *sentState, all bool) error {
	if !se.pending.files && !sent.livesMoved {
		return nil
	}
	se.pending.files, sent.livesMoved = false, false
	var files []records.Files
	se.server.cfg.Cache.Look(func(v cache.View) {
		for _, r := range sent.nextFiles(v) {
			f, err := fileContent(v, se.server.cfg.Key, r)
			if err != nil {
				se.server.cfg.Logger.Error("secret not decrypted", "err", err)
				delete(sent.files, r) // once more with the next change: a key may come
				continue
			}
			files = append(files, f)
		}
	})
	if !all && len(files) == 0 {
		return nil
	}
	docs, err := wire.Documents(files)
	if err != nil {
		return status.Error(codes.Internal, "files cannot be encoded")
	}
	return stream.Send(&proto.ToNode{Kind: &proto.ToNode_Files{Files: &proto.FilesUpdate{Full: all, FilesJson: docs}}})
}
