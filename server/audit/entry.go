// Package audit keeps, on a server's disk and within bounds, what was asked of the server, by whom, and what came of it: each
// change, each command, log, forwarded port and image, each Secret that was read, and what was refused.
package audit

import (
	"fmt"
	"time"

	"github.com/stead-project/stead/spec/scalar"
)

// Line is one line. It has no content of objects, Secrets or commands' input, only their names.
type Line struct {
	// At is by the server's clock.
	At     time.Time `json:"at"`
	Server string    `json:"server"`
	// Who calls: root, over the socket; "client ann", "node n1" or "server s1" by a certificate; "no certificate".
	Who string `json:"who"`
	// User is for whom root's program says that it calls. Nobody has proved it.
	User string `json:"user,omitempty"`
	// From is the address of a call over the network.
	From string `json:"from,omitempty"`
	Verb string `json:"verb"`
	// Objects are at most 64: "set default/db".
	Objects []string `json:"objects,omitempty"`
	Detail  string   `json:"detail,omitempty"`
	// Call is the same at the begin and the end of a call that lasts; empty: of a call that does not, there is one entry.
	Call  string `json:"call,omitempty"`
	Began bool   `json:"began,omitempty"`
	// Code is gRPC's: OK, PermissionDenied, …; empty: it began.
	Code    string  `json:"code,omitempty"`
	Error   string  `json:"error,omitempty"`
	Seconds float64 `json:"seconds,omitempty"`
}

// Bounds of an entry.
const (
	maxObjects = 64
	maxText    = 256 // bytes
)

// bound cuts e to its bounds, and covers what cannot be printed.
func (e *Line) bound() {
	if more := len(e.Objects) - maxObjects; more > 0 {
		e.Objects = append(e.Objects[:maxObjects:maxObjects], fmt.Sprintf("and %d more", more))
	}
	for i, o := range e.Objects {
		e.Objects[i] = text(o)
	}
	for _, s := range []*string{&e.Who, &e.User, &e.From, &e.Verb, &e.Detail, &e.Error} {
		*s = text(*s)
	}
}

func text(s string) string {
	if len(s) > maxText {
		s = s[:maxText] + "…"
	}
	return scalar.Plain(s)
}
