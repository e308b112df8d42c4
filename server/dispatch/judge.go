package dispatch

import (
	"reflect"
	"time"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec/causes"
)

// verdict is what becomes of a report.
type verdict int

const (
	// keep: it says something new and is stored.
	keep verdict = iota
	// known: the store has it already, or something newer of this life.
	known
	// stale: it is of a life that the store does not know (any more).
	stale
)

// messageBytes bounds what a report says in words.
const messageBytes = 4096

// judge decides about r, which came from the machine at. m and last are
// the store's present life and report of the identity, nil when absent. It returns
// the report as it is to be stored: the phase never goes back, and a life that is
// over stays so (SAFETY S7). What another session reported is stored anew, for only the reports of
// the node's present one count (SAFETY S15).
func judge(r records.Report, at machine, m *records.Member, last *records.Report, minReady time.Duration) (records.Report, verdict) {
	if m == nil || m.Token != r.Token || !at.has(m) {
		return r, stale
	}
	r = sanitized(r)
	r.Node = at.node
	if r.Phase.Over() {
		r.Ready = false
	}
	if r.Phase.Rank() == 0 {
		return r, known // of a newer agent; nothing here can use it
	}
	if last == nil || last.Token != r.Token {
		return r, keep
	}
	anew := last.Session != r.Session
	if last.Phase.Over() || !r.Phase.Over() && r.Seq < last.Seq {
		return r, known // the end of a life is true whenever it was said
	}
	if r.Phase.Rank() < last.Phase.Rank() {
		r.Phase = last.Phase
	}
	r.ReadyOnce = r.ReadyOnce || last.Ready || last.ReadyOnce
	if !anew && essenceOf(*last, minReady) == essenceOf(r, minReady) && reflect.DeepEqual(last.Containers, r.Containers) {
		return r, known
	}
	return r, keep
}

// essence is what of a report a decision or a user needs, beside its containers.
// ReadyFor counts only by whether it makes the member available.
type essence struct {
	phase               records.Phase
	ready, once, enough bool
	cause               causes.Cause
	message             string
}

func essenceOf(r records.Report, minReady time.Duration) essence {
	return essence{r.Phase, r.Ready, r.Ready || r.ReadyOnce, r.ReadyFor >= minReady, r.Cause, r.Message}
}
