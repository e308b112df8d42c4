package cache

import (
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/store"
)

// applyHold has everything looked at anew.
func (s *state) applyHold(ev store.Event, ch *Changes) {
	s.hold = nil
	if !ev.Delete {
		s.hold = store.HoldIn(map[string]store.KV{store.HoldKey: ev.KV})
	}
	ch.All = true
}

// Hold is the word that the store went back, while it stands; nil: nobody says so.
func (v View) Hold() *records.Hold { return v.hold }
