package cache

import (
	"maps"
	"slices"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/store"
)

func (s *state) applyCount(ev store.Event, ch *Changes) (err error) {
	ch.All = true
	s.count, err = decode(s, ev, func(*records.Count) string { return store.CountKey })
	return err
}

func (s *state) applyKnown(server string, ev store.Event, ch *Changes) error {
	ch.All = true
	e, err := decode(s, ev, func(*records.Known) string { return ev.Key }) // it does not name its server
	keep(s.known, server, e)
	return err
}

// Count adds what servers remember to a count that is open: they may tell it later.
func (s *state) Count() (*records.Count, store.Rev) {
	c := s.count.record
	if c == nil || !c.Open(s.epoch) || len(s.known) == 0 {
		return c, s.count.mod
	}
	with := *c
	for _, m := range s.Memories() {
		with = with.With(records.FromServer, m.Nodes)
	}
	return &with, s.count.mod
}

func (s *state) Memories() []Memory {
	list := make([]Memory, 0, len(s.known))
	for _, server := range slices.Sorted(maps.Keys(s.known)) {
		m := Memory{Server: server, Rev: s.known[server].mod}
		if k := s.known[server].record; k != nil {
			m.Nodes, m.Epoch = k.Nodes, k.At.Epoch
		}
		list = append(list, m)
	}
	return list
}

func (s *state) HellosRev() store.Rev { return s.hellos }
