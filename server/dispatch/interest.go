package dispatch

import (
	"fmt"
	"maps"

	"github.com/stead-project/stead/proto"
	"github.com/stead-project/stead/proto/wire"
	"github.com/stead-project/stead/server/cache"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/spec/scalar"
)

// askedSets are the sets that a node asks for; names that no set can have are left out.
func askedSets(m *proto.Follow) map[spec.SetRef]bool {
	sets := map[spec.SetRef]bool{}
	for _, name := range m.GetSets() {
		if ref := wire.ToSetRef(name); canBeSet(ref) {
			sets[ref] = true
		}
	}
	return sets
}

func canBeSet(ref spec.SetRef) bool {
	return scalar.ValidLabel(string(ref.Namespace)) && scalar.ValidLabel(string(ref.Name))
}

// overFollow says that a node asks for more sets than it may; "": it does not.
func overFollow(m *proto.Follow) string {
	if n := len(m.GetSets()); n > maxFollowed {
		return fmt.Sprintf("it asks for %d sets, of at most %d", n, maxFollowed)
	}
	return ""
}

// receiveFollow takes all that the node asks for. It does not block.
func (se *session) receiveFollow(m *proto.Follow) {
	if why := overFollow(m); why != "" {
		se.abortOverLimit(LimitFollow, why)
		return
	}
	se.mu.Lock()
	se.asking, se.changed = askedSets(m), true
	se.mu.Unlock()
	se.out.filled.Notify()
}

// askedNow is what the node asks for; it must not be changed.
func (se *session) askedNow() map[spec.SetRef]bool {
	se.mu.Lock()
	defer se.mu.Unlock()
	return se.asking
}

// nextNeed is what the session is to be sent of sets: in full those with a member on its node and
// those that it asks for; of those that were in the other form, all. Sets stay as they are
// while one is looked at.
func (se *session) nextNeed(v cache.View, sent *sentState) need {
	want := need{since: sent.snapshots, differences: se.differences, whole: se.takeResend()}
	if !se.interest {
		return want
	}
	full := map[spec.SetRef]bool{}
	maps.Copy(full, se.askedNow())
	for _, ref := range v.On(se.node).Sets() {
		full[ref] = true
	}
	want.brief = func(ref spec.SetRef) bool { return !full[ref] }
	for _, one := range [][2]map[spec.SetRef]bool{{full, sent.full}, {sent.full, full}} {
		for ref := range one[0] {
			if one[1][ref] {
				continue
			}
			if want.whole == nil {
				want.whole = map[spec.SetRef]bool{}
			}
			want.whole[ref] = true
		}
	}
	sent.full = full
	return want
}
