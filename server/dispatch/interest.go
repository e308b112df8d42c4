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

// canBeSent reports whether nodes may have been sent something under the name: a set, or a Service of its own.
func canBeSent(ref spec.SetRef) bool {
	if name, is := ref.ServiceName(); is {
		ref.Name = spec.SetName(name)
	}
	return canBeSet(ref)
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
	se.asking, se.askingMoved, se.changed = askedSets(m), true, true
	se.mu.Unlock()
	se.out.filled.Notify()
}

// takeAsking is what the node asks for, which must not be changed, and whether it is another than at
// the last call.
func (se *session) takeAsking() (asking map[spec.SetRef]bool, moved bool) {
	se.mu.Lock()
	defer se.mu.Unlock()
	moved, se.askingMoved = se.askingMoved, false
	return se.asking, moved
}

// nextNeed is what the session is to be sent of sets: in full those with a member on its node,
// those that it asks for, and those to which addresses of services lead; of those that were in the
// other form, what that does not say.
func (se *session) nextNeed(sent *sentState) need {
	want := need{since: sent.snapshots, differences: se.differences, whole: se.takeResend()}
	if !se.interest {
		return want
	}
	served, version := se.server.snapshots.servedSets()
	if asking, moved := se.takeAsking(); moved || sent.setsMoved || sent.served != version {
		sent.served = version
		se.turnForms(sent, asking, served, &want)
	}
	full := sent.full
	want.brief = func(ref spec.SetRef) bool { return !full[ref] }
	return want
}

// turnForms finds the sets that are to be in full now, and has those that were in the other form turned.
func (se *session) turnForms(sent *sentState, asking, served map[spec.SetRef]bool, want *need) {
	was, full := sent.full, maps.Clone(served)
	if full == nil {
		full = map[spec.SetRef]bool{}
	}
	maps.Copy(full, asking)
	se.server.cfg.Cache.Look(func(v cache.View) {
		for _, ref := range v.On(se.node).Sets() {
			full[ref] = true
		}
	})
	want.turned = map[spec.SetRef]bool{}
	for ref := range full {
		if !was[ref] {
			want.turned[ref] = true
		}
	}
	for ref := range was {
		if !full[ref] {
			want.turned[ref] = true
		}
	}
	sent.full, sent.setsMoved = full, false
	if se.watcher != nil {
		se.server.snapshots.watchers.ask(se.watcher, asking)
	}
}
