package cache

import (
	"github.com/stead-project/stead/records/sealing"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/store"
)

// AuthorityState is what the store has about the cluster's authority. It is the reader's own, but for its records.
type AuthorityState struct {
	Record *sealing.Authority // nil: no other host is listened to, or it cannot be read
	Rev    store.Rev
	Said   map[string]*sealing.ServerAuthorities // by server
	// Servers are as in KeyState.
	Servers []string
	// Nodes are all that are known, by whose certificate each came last in a rotation; "": not in any.
	Nodes []NodeAuthority
}

// NodeAuthority is a node of AuthorityState.
type NodeAuthority struct {
	Name spec.NodeName
	UID  spec.UID
	By   sealing.AuthorityID
	// Server has its session; "": it has none.
	Server string
}

// AuthorityOf is what v has about it.
func AuthorityOf(v View) AuthorityState {
	a := AuthorityState{Record: v.authority.record, Rev: v.authority.mod, Said: readable(v.serverTrust), Servers: knownServers(v)}
	for _, n := range v.Nodes() {
		if n.Node == nil {
			continue
		}
		node := NodeAuthority{Name: n.Node.Name, UID: n.Node.UID}
		if c := v.certified[string(n.Node.Name)].record; c != nil && c.UID == node.UID {
			node.By = c.By
		}
		if n.Session != nil {
			node.Server = n.Session.Server
		}
		a.Nodes = append(a.Nodes, node)
	}
	return a
}

// AuthorityRecord is the record of the authority; nil: there is none that can be read.
func AuthorityRecord(v View) *sealing.Authority { return v.authority.record }

func applyAuthority(s *state, kind, rest string, ev store.Event) (err error) {
	switch kind {
	case store.KindServerAuthorities:
		return keep(s, s.serverTrust, rest, ev, func(r *sealing.ServerAuthorities) string { return store.ServerAuthoritiesKey(r.Server) })
	case store.KindCertified:
		return keep(s, s.certified, rest, ev, func(r *sealing.Certified) string { return store.CertifiedKey(r.Node) })
	}
	s.authority, err = decode(s, ev, func(*sealing.Authority) string { return store.AuthorityKey })
	return err
}
