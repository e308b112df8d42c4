package cache

import (
	"maps"
	"slices"

	"github.com/stead-project/stead/records/sealing"
	"github.com/stead-project/stead/store"
)

// KeyState is what the store has about the keys of secret.key. It is the reader's own, but for its records.
type KeyState struct {
	Ring    *sealing.Ring // nil: the key was never rotated
	RingRev store.Rev
	Said    map[string]*sealing.ServerKeys // by server
	Given   map[string]*sealing.GivenKeys
	// Servers are the names of all that are known of: those with the embedded store, that have sessions of nodes, or have said
	// which keys they have.
	Servers []string
}

// KeysOf is what v has about them.
func KeysOf(v View) KeyState {
	k := KeyState{Ring: v.keyring.record, RingRev: v.keyring.mod, Said: readable(v.serverKeys), Given: readable(v.givenKeys)}
	k.Servers = knownServers(v)
	return k
}

// knownServers are the names of all servers that the store tells of in some way.
func knownServers(v View) []string {
	names := map[string]bool{}
	for name := range v.servers {
		names[name] = true
	}
	for name := range v.serverKeys {
		names[name] = true
	}
	for name := range v.serverTrust {
		names[name] = true
	}
	for _, n := range v.Nodes() {
		if n.Session != nil && n.Session.Server != "" {
			names[n.Session.Server] = true
		}
	}
	return slices.Sorted(maps.Keys(names))
}

func applyKeys(s *state, kind, rest string, ev store.Event) (err error) {
	switch kind {
	case store.KindServerKeys:
		return keep(s, s.serverKeys, rest, ev, func(r *sealing.ServerKeys) string { return store.ServerKeysKey(r.Server) })
	case store.KindGivenKeys:
		return keep(s, s.givenKeys, rest, ev, func(r *sealing.GivenKeys) string { return store.GivenKeysKey(r.Server) })
	}
	s.keyring, err = decode(s, ev, func(*sealing.Ring) string { return store.KeyringKey })
	return err
}
