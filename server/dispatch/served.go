package dispatch

import (
	"maps"

	"github.com/stead-project/stead/spec"
)

// served are the sets to whose members addresses of services lead. Each node is sent all of them:
// a connection asks no question by which the node could find out that it needs one.
type served struct {
	sets    map[spec.SetRef]bool // replaced whole
	version uint64               // of the round that changed it last
}

// note takes over what a round changed, and reports whether other sets are served now.
func (s *served) note(changes []setChange, version uint64) bool {
	var next map[spec.SetRef]bool // nil: as it was
	for i := range changes {
		now := &changes[i].next
		if is := now.Served(); is != s.sets[now.Ref] {
			if next == nil {
				next = maps.Clone(s.sets)
			}
			if next == nil {
				next = map[spec.SetRef]bool{}
			}
			if is {
				next[now.Ref] = true
			} else {
				delete(next, now.Ref)
			}
		}
	}
	if next == nil {
		return false
	}
	s.sets, s.version = next, version
	return true
}

// servedSets are the sets that are sent to each node in full, which must not be changed, and the
// version of the last change.
func (p *snapshotPublisher) servedSets() (map[spec.SetRef]bool, uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.served.sets, p.served.version
}
