// Package sealing has what the store keeps of the keys that seal: of secret.key, and of the authority.
package sealing

import (
	"time"

	"github.com/stead-project/stead/spec/scalar"
)

// KeyID names a key of secret.key, and tells nothing of it.
type KeyID string

// Ring is keyring: which keys of secret.key seal and open what the store has sealed. Absent: the key
// was never rotated. Only writer: server/keyring.
type Ring struct {
	// Sealing is the key that seals what is written.
	Sealing KeyID `json:"sealing"`
	// Next seals once all servers have it; "": no rotation is at this point.
	Next KeyID `json:"next,omitempty"`
	// Resealing: what is sealed with others is being sealed anew.
	Resealing bool `json:"resealing,omitempty"`
	// Opening are keys that servers keep, to open what was sealed before.
	Opening []KeyID `json:"opening,omitempty"`
	// Removed are keys that servers forget, the newest last.
	Removed []KeyID `json:"removed,omitempty"`
	// Without are servers that the last rotation did not wait for.
	Without []string `json:"without,omitempty"`
	// At is when the last rotation began; for people.
	At time.Time `json:"at"`
}

// Wanted are the keys that each server should have.
func (k *Ring) Wanted() []KeyID {
	out := []KeyID{k.Sealing}
	if k.Next != "" {
		out = append(out, k.Next)
	}
	return append(out, k.Opening...)
}

// ServerKeys is serverkeys/<server>: which keys a server has, and how it can be given others. It is there
// once a key was rotated. Only writer: that server.
type ServerKeys struct {
	Server string  `json:"server"`
	Has    []KeyID `json:"has"`
	// Receiver is the public key (X25519) to which others are given, sealed with a key of the cluster: only who has one may ask.
	Receiver scalar.Bytes `json:"receiver,omitempty"`
}

// GivenKeys is givenkeys/<server>: keys for a server that lacks them, each sealed for its receiver. Only
// writer: a server that has them.
type GivenKeys struct {
	Server string `json:"server"`
	// To is the receiver's public key.
	To []byte `json:"to"`
	// Keys by their ids.
	Keys map[KeyID]scalar.Bytes `json:"keys"`
}
