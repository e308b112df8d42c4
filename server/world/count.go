package world

import (
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/store"
)

func (s *state) applyCount(ev store.Event, ch *Changes) (err error) {
	ch.Restore = true
	s.count, err = decode(s, ev, func(*spec.Count) string { return store.CountKey })
	return err
}

func (s *state) Count() (*spec.Count, store.Rev) { return s.count.record, s.count.mod }

func (s *state) HellosRev() store.Rev { return s.hellos }
