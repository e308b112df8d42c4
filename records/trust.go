package records

import (
	"time"

	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/spec/scalar"
)

// JoinToken is tokens/<id> (leased): what is kept of a join token. Only writer: auth.
type JoinToken struct {
	ID string `json:"id"`
	// Hash is the SHA-256 of its secret.
	Hash []byte `json:"hash"`
	// Node is the only one that may use it; "": any that never joined.
	Node spec.NodeName `json:"node,omitempty"`
	// Server is the one that may use it, and no node; "": a token for nodes.
	Server string `json:"server,omitempty"`
	// By is the id of the client that made it; "": root, over the socket.
	By spec.UID `json:"by,omitempty"`
	// UsedBy and Key (the SHA-256 of a public key) are the machine that has used it; the
	// same key may ask again, nobody else.
	UsedBy spec.NodeName `json:"usedBy,omitempty"`
	Key    []byte        `json:"key,omitempty"`
	// CreatedAt and TTL are for people; the lease ends it.
	CreatedAt time.Time       `json:"createdAt"`
	TTL       scalar.Duration `json:"ttl"`
}

// Revoked is revoked/<uid>: certificates of this uid are void, for ever. Only writer: auth.
type Revoked struct {
	UID spec.UID `json:"uid"`
	// At is for people only.
	At time.Time `json:"at"`
}
