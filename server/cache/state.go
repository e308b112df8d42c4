package cache

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/server/plan"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/store"
)

type revision = store.Rev

// entry is a decoded record and the revision of its last write. A record that
// cannot be decoded has a revision and no value.
type entry[T any] struct {
	record *T
	mod    store.Rev
}

// state is the mirror at one revision. Records are never changed, only replaced.
type state struct {
	rev           store.Rev
	mods          map[string]store.Rev // of every key
	epoch         int64
	cluster       string
	leader        string
	leaderCreated store.Rev
	hold          *records.Hold

	sets            map[spec.SetRef]*setState
	nodes           map[spec.NodeName]*nodeState
	nodeList        []plan.Node // see listNodes; replaced whole
	nodesChanged    bool        // nodeList is to be built again
	roomFreed       bool        // a life left its node, or asks less of it
	avoiders        int         // lives with required anti-affinity
	lastSessionEnd  store.Rev   // when a session ended last
	unknownLives    map[spec.Identity][]plan.NodeStray
	services        map[spec.Namespace]map[string]entry[records.ServiceRecord]
	budgets         map[spec.Namespace]map[string]entry[records.BudgetRecord]
	configs         map[string]entry[records.ConfigRecord]
	secrets         map[string]entry[records.SecretRecord]
	addresses       map[string]*records.AddressRecord
	bootstrapped    map[spec.UID]bool
	wasBootstrapped map[spec.SetRef]bool            // bootstrapped sets that are gone
	broken          map[string]error                // by key
	count           entry[records.Count]            // of the last restore
	memories        map[string]entry[records.Known] // by server
}

func newState(rev store.Rev) *state {
	return &state{
		rev:             rev,
		mods:            map[string]store.Rev{},
		sets:            map[spec.SetRef]*setState{},
		nodes:           map[spec.NodeName]*nodeState{},
		unknownLives:    map[spec.Identity][]plan.NodeStray{},
		services:        map[spec.Namespace]map[string]entry[records.ServiceRecord]{},
		budgets:         map[spec.Namespace]map[string]entry[records.BudgetRecord]{},
		configs:         map[string]entry[records.ConfigRecord]{},
		secrets:         map[string]entry[records.SecretRecord]{},
		addresses:       map[string]*records.AddressRecord{},
		bootstrapped:    map[spec.UID]bool{},
		wasBootstrapped: map[spec.SetRef]bool{},
		broken:          map[string]error{},
		memories:        map[string]entry[records.Known]{},
	}
}

// decode makes the entry of one event. keyOf says where the record belongs: a
// record under another key than its own is as broken as one that is no JSON. The
// error names the key; the entry has no value then, so that nobody acts on it.
func decode[T any](s *state, ev store.Event, keyOf func(*T) string) (entry[T], error) {
	delete(s.broken, ev.Key)
	if ev.Delete {
		return entry[T]{}, nil
	}
	record, err := store.Decode[T](ev.KV)
	if err == nil {
		if want := keyOf(&record); want != ev.Key {
			err = fmt.Errorf("decode %s: the record belongs to %s", ev.Key, want)
		}
	}
	if err != nil {
		s.broken[ev.Key] = err
		return entry[T]{mod: ev.Mod}, err
	}
	return entry[T]{&record, ev.Mod}, nil
}

// settle ends a batch: what is derived from many records is built again.
func (s *state) settle(rev store.Rev) {
	s.rev = rev
	if s.nodesChanged {
		s.nodeList, s.nodesChanged = s.listNodes(), false
	}
}

// apply takes over one change and notes in ch (may be nil) what moved. An error
// names a record that could not be read; it is kept as broken.
func (s *state) apply(ev store.Event, ch *Changes) error {
	if ch == nil {
		ch = newChanges(0)
	}
	s.mods[ev.Key] = ev.Mod
	if ev.Delete {
		delete(s.mods, ev.Key)
	}
	if ref, ok := store.RefOfKey(ev.Key); ok {
		ch.Sets[ref] = true
		err := s.applySet(ref, ev)
		ch.Room = ch.Room || s.roomFreed
		s.roomFreed = false
		return err
	}
	kind, rest := store.Kind(ev.Key)
	switch kind {
	case store.KindNode, store.KindFacts, store.KindSession, store.KindFence:
		return s.applyNode(kind, spec.NodeName(rest), ev, ch)
	case store.KindService, store.KindBudget, store.KindConfig, store.KindSecret:
		return s.applyObject(kind, rest, ev, ch)
	case store.KindAddress:
		return s.applyAddress(rest, ev)
	case store.KindBootstrapped:
		s.applyBootstrapped(rest, ev, ch)
	case store.KindLeader:
		s.leader, s.leaderCreated = string(ev.Value), ev.Create
		if ev.Delete {
			s.leader, s.leaderCreated = "", 0
		}
		ch.Leadership = true
	case store.KindCluster:
		s.cluster = string(ev.Value)
	case store.KindEpoch:
		ch.All = true
		return s.applyEpoch(ev)
	case store.KindHold:
		s.applyHold(ev, ch)
	case store.KindCount:
		return s.applyCount(ev, ch)
	case store.KindKnown:
		return s.applyMemory(rest, ev, ch)
	}
	return nil // kinds of newer versions are not ours to judge
}

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

func (s *state) applyObject(kind, rest string, ev store.Event, ch *Changes) (err error) {
	ns, name, _ := strings.Cut(rest, "/")
	switch kind {
	case store.KindService:
		ch.Services[spec.Namespace(ns)] = true
		var e entry[records.ServiceRecord]
		e, err = decode(s, ev, func(r *records.ServiceRecord) string { return store.ServiceKey(r.Namespace, r.Name) })
		if s.services[spec.Namespace(ns)] == nil {
			s.services[spec.Namespace(ns)] = map[string]entry[records.ServiceRecord]{}
		}
		keep(s.services[spec.Namespace(ns)], name, e)
	case store.KindBudget:
		return s.applyBudget(spec.Namespace(ns), name, ev, ch)
	case store.KindConfig:
		ch.Files[ev.Key] = true
		var e entry[records.ConfigRecord]
		e, err = decode(s, ev, func(r *records.ConfigRecord) string { return store.ConfigKey(r.Namespace, r.Name) })
		keep(s.configs, ev.Key, e)
	case store.KindSecret:
		ch.Files[ev.Key] = true
		var e entry[records.SecretRecord]
		e, err = decode(s, ev, func(r *records.SecretRecord) string { return store.SecretKey(r.Namespace, r.Name) })
		keep(s.secrets, ev.Key, e)
	}
	return err
}

// keep stores e, or removes it when the record is gone.
func keep[K comparable, T any](m map[K]entry[T], key K, e entry[T]) {
	if e.mod == 0 {
		delete(m, key)
		return
	}
	m[key] = e
}

// applyAddress keeps an unreadable record as one held by nobody: it is not free.
func (s *state) applyAddress(text string, ev store.Event) error {
	e, err := decode(s, ev, func(r *records.AddressRecord) string { return store.AddressKey(r.Address) })
	switch {
	case ev.Delete:
		delete(s.addresses, text)
	case e.record == nil:
		addr, _ := netip.ParseAddr(text)
		s.addresses[text] = &records.AddressRecord{Address: addr}
	default:
		s.addresses[text] = e.record
	}
	return err
}
