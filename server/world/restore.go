package world

import (
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/store"
)

// restoreState is what stands in the store of its going back and of its restores.
type restoreState struct {
	hold   entry[spec.Hold]
	count  entry[spec.Count]
	hellos store.Rev
}

func (s *state) applyRestore(kind string, ev store.Event, ch *Changes) (err error) {
	ch.Restore = true
	switch kind {
	case store.KindHold:
		s.restore.hold, err = decode(s, ev, func(*spec.Hold) string { return store.HoldKey })
	case store.KindCount:
		s.restore.count, err = decode(s, ev, func(*spec.Count) string { return store.CountKey })
	}
	return err
}

func (s *state) Hold() (*spec.Hold, store.Rev) { return s.restore.hold.record, s.restore.hold.mod }

func (s *state) Count() (*spec.Count, store.Rev) {
	return s.restore.count.record, s.restore.count.mod
}

func (s *state) HellosRev() store.Rev { return s.restore.hellos }
