package engine

import (
	"context"
	"fmt"
	"maps"
	"testing"
	"testing/synctest"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/store"
)

// oneLife replays the history of the store. said are the ends of lives that a node reported, each of which
// is in the store only until its life's record goes, and so perhaps never: see history.known.
func oneLife(t *testing.T, w store.Watch, said map[string]bool, garbled bool) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() { synctest.Wait(); cancel() }()
	h, tale := history{known: maps.Clone(said)}, newTale()
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
// own token, or guarded ones while their node had a session; tokens that came twice or went back, and volumes that were given up
// without a word about it, while a life could use them, or before their node said so.
type history struct {
	members map[string]spec.Token
	guarded map[string]spec.NodeName // the node of a present life that is guarded
	session map[string]bool          // by node
	known   map[string]bool          // "over" or "used", identity and token; "trashed", volume id
	volumes map[string]records.Volume
	faults  []string
}

func (h *history) event(rev store.Rev, ev store.Event) {
	if h.known == nil {
		h.known = map[string]bool{}
	}
	if h.members == nil {
		h.members, h.volumes = map[string]spec.Token{}, map[string]records.Volume{}
		h.guarded, h.session = map[string]spec.NodeName{}, map[string]bool{}
	}
	fault := func(format string, args ...any) {
		h.faults = append(h.faults, fmt.Sprintf("revision %d: ", rev)+fmt.Sprintf(format, args...))
	}
	kind, rest := store.Kind(ev.Key)
	switch kind {
	case store.KindMember:
		var now spec.Token
		lost := h.guarded[rest] != "" && !h.session[string(h.guarded[rest])]
		delete(h.guarded, rest)
		if !ev.Delete {
			m, _ := store.Decode[records.Member](ev.KV)
			now = m.Token
			if m.Bound > 0 {
				h.guarded[rest] = m.Node
			}
		}
		old := h.members[rest]
		h.members[rest] = now
		if old == now {
			return
		}
		if !old.IsZero() && !lost && !h.known["over"+rest+old.String()] {
			fault("%s left token %s for %s without proof", rest, old, now)
		}
		if used := "used" + rest + now.String(); !now.IsZero() {
			if h.known[used] || now.Compare(old) < 0 {
				fault("%s got token %s again or back", rest, now)
			}
			h.known[used] = true
		}
	case store.KindSession:
		h.session[rest] = !ev.Delete
	case store.KindReport:
		if r, err := store.Decode[records.Report](ev.KV); err == nil && !ev.Delete && r.Phase.Over() {
			h.known["over"+rest+r.Token.String()] = true
		}
	case store.KindVolume:
		v, _ := store.Decode[records.Volume](ev.KV)
		if fate := h.volume(rest, v, ev.Delete); fate != "" {
			fault("the volume %s %s", rest, fate)
		}
		delete(h.volumes, rest)
		if !ev.Delete {
			h.volumes[rest] = v
		}
	case store.KindVolumeReport:
		if r, err := store.Decode[records.VolumeReport](ev.KV); err == nil && r.State.Released() {
			h.known["trashed"+string(r.Volume)] = true
		}
	}
}

// volume says what is wrong with what becomes of a volume; "": nothing.
func (h *history) volume(key string, now records.Volume, gone bool) string {
	old, was := h.volumes[key]
	switch {
	case !was:
		return ""
	case gone && (old.Fate != records.FateReclaiming && old.Fate != records.FateLost || !h.known["trashed"+string(old.UID)]):
		return "was lost as " + string(old.Fate)
	case gone:
		return ""
	case old.UID != now.UID:
		return "was made anew"
	case old.Fate == records.FateReclaiming && now.Fate != records.FateReclaiming:
		return "came back from Reclaiming"
	case now.Fate == records.FateReclaiming && !h.members[memberOf(now.ID)].IsZero():
		return "is reclaimed while a life may use it"
	}
	return ""
}

// memberOf is a member's key without its kind.
func memberOf(id spec.Identity) string {
	_, rest := store.Kind(store.MemberKey(id))
	return rest
}
