package cache

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/store"
)

// Hold says that the store went back, and why; nil: the store is not held.
func (v View) Hold() *records.Hold { return v.hold }

// Count is that of the last restore; while it is open, with the nodes of all Memories, too: they may
// be written after it.
func (v View) Count() *records.Count {
	c := v.count.record
	if c == nil || !c.Open(v.epoch) || len(v.memories) == 0 {
		return c
	}
	with := *c
	for _, m := range v.Memories() {
		with = with.With(records.FromServer, m.Nodes)
	}
	return &with
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

// Servers are those with the embedded store whose records can be read, by name. They must not be changed.
func Servers(v View) []*records.Server { return listed(v.servers) }

// applyBootstrapped needs the key only: what is in the record is for people. The key
// names a set's uid, or the namespace and name of a set that is gone.
func (s *state) applyBootstrapped(of string, ev store.Event, ch *Changes) {
	if ns, name, ok := strings.Cut(of, "/"); ok {
		ref := spec.SetRef{Namespace: spec.Namespace(ns), Name: spec.SetName(name)}
		ch.Sets[ref] = true
		s.wasBootstrapped[ref] = true
		if ev.Delete {
			delete(s.wasBootstrapped, ref)
		}
		return
	}
	uid := spec.UID(of)
	if ev.Delete {
		delete(s.bootstrapped, uid)
	} else {
		s.bootstrapped[uid] = true
	}
	for ref, t := range s.sets {
		if t.set.record != nil && t.set.record.UID == uid {
			ch.Sets[ref] = true
			ch.noteSet(t)
		}
	}
}

func (s *state) applyEpoch(ev store.Event) error {
	delete(s.broken, ev.Key)
	n, err := strconv.ParseInt(string(ev.Value), 10, 64)
	if ev.Delete || err != nil || n < 1 {
		s.epoch = 0 // the engine decides nothing in epoch 0
		s.broken[ev.Key] = fmt.Errorf("decode %s: invalid epoch %q", ev.Key, ev.Value)
		return s.broken[ev.Key]
	}
	s.epoch = n
	return nil
}

// applyAddress keeps an unreadable record as one without a holder: it is not free.
func (s *state) applyAddress(text string, ev store.Event) error {
	addr, _ := netip.ParseAddr(text)
	return keepTaken(s, s.addresses, text, ev, func(r *records.AddressRecord) string { return store.AddressKey(r.Address) },
		&records.AddressRecord{Address: addr})
}

// keepTaken keeps the record of what only one can have; one that cannot be read is kept as unread: it is
// not free.
func keepTaken[K comparable, R any](s *state, in map[K]*R, key K, ev store.Event, keyOf func(*R) string, unread *R) error {
	e, err := decode(s, ev, keyOf)
	switch {
	case ev.Delete:
		delete(in, key)
	case e.record == nil:
		in[key] = unread
	default:
		in[key] = e.record
	}
	return err
}

// Format says which servers may use the store; nil: all.
func Format(v View) *records.Format { return v.format.record }
