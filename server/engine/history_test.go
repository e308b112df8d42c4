package engine

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/store"
)

// oneLife replays the history of the store.
func oneLife(t *testing.T, w store.Watch, garbled bool) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() { synctest.Wait(); cancel() }()
	h, tale := history{}, newTale()
	for {
		b, err := w.Next(ctx)
		if err != nil {
			break
		}
		for _, ev := range b.Events {
			h.event(b.Rev, ev)
		}
		tale.batch(b)
	}
	if garbled { // a history was made unreadable on purpose
		tale.faults = nil
	}
	for _, fault := range append(h.faults, tale.faults...) {
		t.Error(fault)
	}
}

// history finds lives that were replaced or forgotten without the proof of their
// own token, tokens that came twice or went back, and volumes lost or made anew.
type history struct {
	members map[string]spec.Token
	known   map[string]bool // "over" or "used", identity and token
	volumes map[string]spec.VolumeID
	faults  []string
}

func (h *history) event(rev store.Rev, ev store.Event) {
	if h.known == nil {
		h.members, h.known, h.volumes = map[string]spec.Token{}, map[string]bool{}, map[string]spec.VolumeID{}
	}
	fault := func(format string, args ...any) {
		h.faults = append(h.faults, fmt.Sprintf("revision %d: ", rev)+fmt.Sprintf(format, args...))
	}
	kind, rest := store.Kind(ev.Key)
	switch kind {
	case store.KindMember:
		var now spec.Token
		if !ev.Delete {
			m, _ := store.Decode[spec.Member](ev.KV)
			now = m.Token
		}
		old := h.members[rest]
		h.members[rest] = now
		if old == now {
			return
		}
		if !old.IsZero() && !h.known["over"+rest+old.String()] {
			fault("%s left token %s for %s without proof", rest, old, now)
		}
		if used := "used" + rest + now.String(); !now.IsZero() {
			if h.known[used] || now.Compare(old) < 0 {
				fault("%s got token %s again or back", rest, now)
			}
			h.known[used] = true
		}
	case store.KindReport:
		if r, err := store.Decode[spec.Report](ev.KV); err == nil && !ev.Delete && r.Phase.Over() {
			h.known["over"+rest+r.Token.String()] = true
		}
	case store.KindVolume:
		v, _ := store.Decode[spec.Volume](ev.KV)
		if old, ok := h.volumes[rest]; ev.Delete || ok && old != v.UID {
			fault("the volume %s was lost or made anew", rest)
		}
		h.volumes[rest] = v.UID
	}
}
