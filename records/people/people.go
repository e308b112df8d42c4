// Package people has what the store keeps of people's programs, and of what they let into the cluster.
package people

import (
	"slices"
	"time"

	"github.com/stead-project/stead/spec"
)

// ClientFile is clients/<id>: somebody was given a client file. Kept for good. Only writer: auth.
type ClientFile struct {
	ID         spec.UID `json:"id"`
	Name       string   `json:"name"`
	Role       string   `json:"role"`
	Namespaces []string `json:"namespaces,omitempty"`
	// Authority signed its certificate; "": the first of the cluster did.
	Authority string `json:"authority,omitempty"`
	// Made and Until are for people; the certificate ends by itself.
	Made  time.Time `json:"made"`
	Until time.Time `json:"until"`
}

// maxEntries is how many entries of a machine are kept; the first one and the newest.
const maxEntries = 32

// Admission is admissions/<uid>: by which join tokens a machine was let in. It outlives the node's record. Only
// writer: auth.
type Admission struct {
	UID     spec.UID      `json:"uid"`
	Node    spec.NodeName `json:"node"`
	Entries []TokenUse    `json:"entries"`
}

// TokenUse is one use of a join token.
type TokenUse struct {
	Token string `json:"token"`
	// By is the client that made the token; "": root.
	By spec.UID `json:"by,omitempty"`
	// At is for people.
	At time.Time `json:"at"`
}

// With is a with one more entry. The same token counts once: its answer may have been lost.
func (a Admission) With(e TokenUse) Admission {
	if slices.ContainsFunc(a.Entries, func(o TokenUse) bool { return o.Token == e.Token }) {
		return a
	}
	a.Entries = append(slices.Clone(a.Entries), e)
	if over := len(a.Entries) - maxEntries; over > 0 {
		a.Entries = append(a.Entries[:1:1], a.Entries[1+over:]...)
	}
	return a
}

// ByClient reports whether a client's token let the machine in.
func (a Admission) ByClient(client spec.UID) bool {
	return slices.ContainsFunc(a.Entries, func(e TokenUse) bool { return e.By == client })
}
