package sealing

import (
	"time"

	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/spec/scalar"
)

// AuthorityID names an authority by its key, and tells nothing of it.
type AuthorityID string

// Authority is ca: what signs all certificates of the cluster. Made by the first server that others may reach. Writers:
// auth, once; server/authorities, which replaces it; server/keyring, which seals its keys anew.
type Authority struct {
	// Certificate is DER.
	Certificate []byte `json:"certificate"`
	// Sealed is its key, PKCS #8, sealed as Secrets are, for the key "ca".
	Sealed scalar.Bytes `json:"sealed"`
	// Next is to take its place; nil: no rotation is under way.
	Next *NextAuthority `json:"next,omitempty"`
	// Retired is the one before it; nil: it is the first.
	Retired *RetiredAuthority `json:"retired,omitempty"`
}

// NextAuthority is an authority that all servers trust beside the present one.
type NextAuthority struct {
	Certificate []byte       `json:"certificate"`
	Sealed      scalar.Bytes `json:"sealed"` // as Authority.Sealed
	// Issuing: it signs the certificates of nodes and people, and those by which servers call each other.
	Issuing bool `json:"issuing,omitempty"`
	// Without are servers that are not waited for.
	Without []string `json:"without,omitempty"`
	// At is when the rotation began; for people.
	At time.Time `json:"at"`
}

// RetiredAuthority is what is kept of an authority whose key is gone.
type RetiredAuthority struct {
	Certificate []byte `json:"certificate"`
	// Bridge is the certificate of the present authority's key, signed by the retired one: whoever knows only that one, as the store of
	// a server does until it is started again, knows the servers by it.
	Bridge []byte    `json:"bridge"`
	At     time.Time `json:"at"` // for people
}

// ServerAuthorities is serverauthorities/<server>: what a server says of the cluster's authority. It is there once
// that was rotated. Only writer: that server.
type ServerAuthorities struct {
	Server string `json:"server"`
	// Trusts are those whose certificates it accepts, and it keeps their keys. Calls is the one by whose certificate it calls other servers.
	Trusts []AuthorityID `json:"trusts"`
	Calls  AuthorityID   `json:"calls"`
	// Store are those by which the store of this server knows its peers, until it is started again; none: its store has no peers.
	Store []AuthorityID `json:"store,omitempty"`
}

// Certified is certified/<node>: a node came with a certificate of the authority that is to take the place of the present one, or
// needs none. Only writer: the server that it came to.
type Certified struct {
	Node spec.NodeName `json:"node"`
	UID  spec.UID      `json:"uid"`
	By   AuthorityID   `json:"by"`
}
