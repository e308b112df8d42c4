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

func (s *state) applyMemory(server string, ev store.Event, ch *Changes) error {
	ch.All = true
	e, err := decode(s, ev, func(*records.Known) string { return ev.Key }) // it does not name its server
	keep(s.memories, server, e)
	return err
}

// Count is that of the last restore; while it is open, with the nodes of all Memories, too: they may
// be written after it.
func (v View) Count() (*records.Count, store.Rev) {
	c := v.count.record
	if c == nil || !c.Open(v.epoch) || len(v.memories) == 0 {
		return c, v.count.mod
	}
	with := *c
	for _, m := range v.Memories() {
		with = with.With(records.FromServer, m.Nodes)
	}
	return &with, v.count.mod
}

// Memories are what servers remembered when they found the store held, or restored, by
// the names of servers. One that cannot be read has no nodes.
func (v View) Memories() []Memory {
	list := make([]Memory, 0, len(v.memories))
	for _, server := range slices.Sorted(maps.Keys(v.memories)) {
		m := Memory{Server: server, Rev: v.memories[server].mod}
		if k := v.memories[server].record; k != nil {
			m.Nodes, m.Epoch = k.Nodes, k.At.Epoch
		}
		list = append(list, m)
	}
	return list
}
