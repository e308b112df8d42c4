package cache

import (
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/store"
)

// applyHold changes everything.
func (s *state) applyHold(ev store.Event, ch *Changes) {
	s.hold = nil
	if !ev.Delete {
		s.hold = store.HoldIn(map[string]store.KV{store.HoldKey: ev.KV})
	}
	ch.All = true
}

// Hold says that the store went back, and why; nil: the store is not held.
func (v View) Hold() *records.Hold { return v.hold }
