package dispatch

import (
	"context"
	"slices"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/store"
)

// keepSession lets a node keep the session that it has, when the store is too full for a new
// one: else no ping is answered, and its guarded lives end on a healthy host. Nothing is
// written, so nothing may differ from what the hello would write: the session is of this
// server, boot and epoch, and the unknown lives are those that are stored. Otherwise it fails with
// cause.
func (s *Server) keepSession(ctx context.Context, req joinRequest, stored storedNode, cause error, full bool) (*session, error) {
	facts, _ := store.DecodeIn[records.NodeFacts](stored.keys, store.FactsKey(req.node)) // unreadable ones would be written over
	count, unread := stored.openCount()
	switch old := stored.session; {
	case !full || old == nil || old.Server != s.cfg.Name || facts == nil:
		return nil, cause
	case facts.UID != req.uid || facts.Boot != req.boot || facts.Epoch != stored.epoch || !slices.Equal(facts.Strays, req.facts.Strays):
		return nil, cause
	case req.gap != "" || stored.hold != nil || count != nil || unread != nil || stored.keys[store.FenceKey(req.node)].Mod != 0:
		return nil, cause
	}
	wait, cancel := context.WithTimeout(ctx, storeTime)
	defer cancel()
	if err := s.cfg.Store.Renew(wait, store.LeaseID(stored.session.ID)); err != nil {
		return nil, cause
	}
	// The first list is of a revision after the hello, as that of a new session.
	if err := s.cfg.Cache.Wait(wait, stored.rev); err != nil {
		return nil, storeError("keep the session", err)
	}
	req.facts = *facts
	s.cfg.Logger.Warn("session kept, the store is full", "node", req.node)
	return s.newSession(ctx, req, *stored.session, stored.keys[store.SessionKey(req.node)].Mod, stored.epoch), nil
}
