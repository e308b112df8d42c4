package dispatch

import (
	"context"
	"slices"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/store"
)

// goOn has a node go on with the session that it has, when the store is too full for a new
// one: else no ping is answered, and what it guards ends on a healthy host. Nothing is
// written, so nothing may differ from what the hello would write: the session is of this
// server, boot and epoch, and the strays are those that are stored. Otherwise it fails with
// cause.
func (s *Server) goOn(ctx context.Context, g guest, t threshold, cause error, full bool) (*session, error) {
	facts, _ := store.DecodeIn[records.NodeFacts](t.keys, store.FactsKey(g.node)) // unreadable ones would be written over
	count, unread := t.openCount()
	switch old := t.session; {
	case !full || old == nil || old.Server != s.cfg.Name || facts == nil:
		return nil, cause
	case facts.UID != g.uid || facts.Boot != g.boot || facts.Epoch != t.epoch || !slices.Equal(facts.Strays, g.facts.Strays):
		return nil, cause
	case g.gap != "" || t.hold != nil || count != nil || unread != nil || t.keys[store.FenceKey(g.node)].Mod != 0:
		return nil, cause
	}
	wait, cancel := context.WithTimeout(ctx, storeTime)
	defer cancel()
	if err := s.cfg.Store.Renew(wait, store.LeaseID(t.session.ID)); err != nil {
		return nil, cause
	}
	// The first list is of a revision after the hello, as that of a new session.
	if err := s.cfg.Cache.Wait(wait, t.rev); err != nil {
		return nil, storeError("go on with the session", err)
	}
	g.facts = *facts
	s.cfg.Logger.Warn("session goes on, for the store is full", "node", g.node)
	return s.newSession(ctx, g, *t.session, t.keys[store.SessionKey(g.node)].Mod, t.epoch), nil
}
