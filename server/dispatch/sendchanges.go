package dispatch

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/stead-project/stead/proto"
	"github.com/stead-project/stead/proto/wire"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/server/cache"
	"github.com/stead-project/stead/server/seal"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/store"
)

// tell sends what differs from t, or everything; again asks to be called once
// more after a while.
func (se *session) tell(stream proto.Nodes_SessionServer, t *told, all bool) (again bool, err error) {
	aliens, held, err := se.tellWanted(stream, t, all)
	if err != nil {
		return false, err
	}
	se.out.begin()
	if held {
		return se.putStrays(aliens)
	}
	if err := se.tellPictures(stream, t, all); err != nil {
		return false, err
	}
	if err := se.tellFiles(stream, t, all); err != nil {
		return false, err
	}
	again, err = se.putVolumes()
	if err != nil {
		return false, err
	}
	strays, err := se.putStrays(aliens)
	return again || strays, err
}

// tellWanted sends the lives that differ, and returns the node's strays. While the store is
// held nothing is told: an order of before may begin a life that has been replaced since.
func (se *session) tellWanted(stream proto.Nodes_SessionServer, t *told, all bool) (aliens []spec.LifeID, held bool, err error) {
	var (
		seq     spec.Sequence
		lives   []records.Life
		ended   []life
		orders  []records.VolumeOrder
		mine    bool
		holding = se.held()
	)
	se.server.cfg.Cache.Look(func(v cache.View) {
		seq = sequence(v)
		_, rev := v.Session(se.node)
		mine = rev == se.rev && seq.Epoch == se.epoch
		aliens = strays(v, se.seat, holding)
		if held = v.Hold() != nil; held {
			return
		}
		lives = t.nextLives(v, se.seat, holding, se.server.cfg.Domain)
		if counting(v) {
			return
		}
		ended = t.nextOver(v, se.seat, holding)
		orders = t.nextOrders(v, se.seat)
	})
	if !mine {
		return nil, false, errOver
	}
	if !held && (all || len(lives)+len(ended)+len(orders) > 0) {
		return aliens, false, se.sendWanted(stream, seq, all, lives, ended, orders)
	}
	return aliens, held, nil
}

func (se *session) sendWanted(stream proto.Nodes_SessionServer, seq spec.Sequence, full bool, lives []records.Life, ended []life, orders []records.VolumeOrder) error {
	docs, err := wire.Documents(lives)
	volumes, err2 := wire.Documents(orders)
	if err := errors.Join(err, err2); err != nil {
		return status.Errorf(codes.Internal, "tell lives: %v", err)
	}
	w := &proto.Wanted{Sequence: wire.Sequence(seq), Full: full, LivesJson: docs, VolumesJson: volumes}
	for _, l := range ended {
		w.Over = append(w.Over, &proto.Holding{Id: wire.Identity(l.ID), Token: wire.Token(l.Token)})
	}
	return stream.Send(&proto.ToNode{Kind: &proto.ToNode_Wanted{Wanted: w}})
}

// putStrays stores the node's strays when they changed, guarded by the session.
func (se *session) putStrays(aliens []spec.LifeID) (again bool, err error) {
	if slices.Equal(aliens, se.facts.Strays) {
		return false, nil
	}
	if len(aliens) > maxStrays {
		se.overdo(LimitHello, fmt.Sprintf("it runs %d lives that the store does not know, of at most %d", len(aliens), maxStrays))
		return false, context.Cause(se.ctx)
	}
	if !se.server.writes.may(se.node) {
		return true, nil
	}
	facts := se.facts
	facts.Strays = aliens
	ctx, cancel := context.WithTimeout(se.ctx, storeTime)
	defer cancel()
	_, err = se.server.cfg.Store.Commit(ctx, store.Txn{
		If:   []store.Guard{store.Seen(store.SessionKey(se.node), se.rev)},
		Then: []store.Op{store.Put(store.FactsKey(se.node), store.Encode(facts)), heardOf(se.node)},
	})
	switch {
	case errors.Is(err, store.ErrConflict):
		return false, errOver
	case err != nil:
		return true, nil
	}
	se.server.writes.spend(se.node, len(store.Encode(facts)))
	se.facts = facts
	return false, nil
}

// tellPictures sends the pictures that differ, and with them what the histories of the
// node's sets tell, which is looked at later and so is never behind them.
func (se *session) tellPictures(stream proto.Nodes_SessionServer, t *told, all bool) error {
	fresh := se.server.pictures.since(t.pictures)
	t.pictures = fresh.next
	var histories []records.History
	var rev store.Rev
	se.server.cfg.Cache.Look(func(v cache.View) {
		rev = min(v.Rev(), store.Rev(fresh.seq.Rev))
		histories = t.nextHistories(v, se.seat)
	})
	if all || len(fresh.docs)+len(fresh.hosts)+len(histories) > 0 {
		told, err := wire.Documents(histories)
		if err != nil {
			return status.Errorf(codes.Internal, "tell histories: %v", err)
		}
		err = stream.Send(&proto.ToNode{Kind: &proto.ToNode_Pictures{Pictures: &proto.Pictures{
			Sequence: wire.Sequence(fresh.seq), Full: all, PicturesJson: fresh.docs, HistoriesJson: told, Hosts: fresh.hosts,
		}}})
		if err != nil {
			return err
		}
	}
	se.told = rev
	return nil
}

// tellFiles sends what the node's lives name and is new. A Secret that does not
// open is left out, and said once: the life waits for it.
func (se *session) tellFiles(stream proto.Nodes_SessionServer, t *told, all bool) error {
	var files []records.Files
	se.server.cfg.Cache.Look(func(v cache.View) {
		files = contents(v, se.server.cfg.Key, t.nextFiles(v), se.server.cfg.Logger)
	})
	if !all && len(files) == 0 {
		return nil
	}
	docs, err := wire.Documents(files)
	if err != nil {
		return status.Error(codes.Internal, "tell files: they cannot be encoded")
	}
	return stream.Send(&proto.ToNode{Kind: &proto.ToNode_Files{Files: &proto.FilesUpdate{Full: all, FilesJson: docs}}})
}

func contents(v cache.View, key *seal.Key, refs []FileRef, log *slog.Logger) []records.Files {
	var files []records.Files
	for _, r := range refs {
		f, err := fileContent(v, key, r)
		if err != nil {
			log.Error("secret not opened", "err", err)
			continue
		}
		files = append(files, f)
	}
	return files
}
