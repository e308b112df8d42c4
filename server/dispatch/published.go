package dispatch

import (
	"encoding/json"

	goproto "google.golang.org/protobuf/proto"

	"github.com/stead-project/stead/proto"
	"github.com/stead-project/stead/proto/wire"
	"github.com/stead-project/stead/records"
)

// maxSteps bounds the differences that are kept of a set: a session that needs more is sent
// the whole set.
const maxSteps = 16

// publishedSet is a set as it was published last, and the differences that led there. Each is
// marshalled once for all sessions.
type publishedSet struct {
	set    *records.Set // of which body was made; nil: none
	body   records.Snapshot
	number uint64 // the round that changed it last
	steps  []step // ascending, without a gap up to number
	// whole and asJSON are body, marshalled; nil: not yet.
	whole, asJSON []byte
}

// step is a difference between two states of a set.
type step struct {
	base, number uint64
	size         int
	doc          []byte
}

// stepFrom is the step that d makes from s in round number; its doc is nil when the whole set
// is not much more.
func (s *publishedSet) stepFrom(d *difference, number uint64, domain string) step {
	next := step{base: s.number, number: number, size: d.size()}
	if s.number > 0 && !s.body.Gone && next.size <= s.most() {
		next.doc = marshalled(d.message(s.number, number, domain))
	}
	return next
}

// most is how much steps may say together.
func (s *publishedSet) most() int { return 4 + len(s.body.Peers) }

// take makes s what d leads to.
func (s *publishedSet) take(d *difference, next step, set *records.Set) {
	d.apply(&s.body)
	s.set, s.number, s.whole, s.asJSON = set, next.number, nil, nil
	if next.doc == nil || s.body.Gone {
		s.steps = nil
		return
	}
	s.steps = append(s.steps, next)
	size := 0
	for i := len(s.steps) - 1; i >= 0; i-- {
		size += s.steps[i].size
		if len(s.steps)-i > maxSteps || size > s.most() {
			s.steps = append([]step(nil), s.steps[i+1:]...)
			return
		}
	}
}

// since is what brings a session to the present state that was sent all up to a version; 0:
// nothing yet.
func (s *publishedSet) since(version uint64, domain string) (docs [][]byte) {
	for i := range s.steps {
		if s.steps[i].number <= version {
			continue
		}
		if version == 0 || s.steps[i].base > version {
			break
		}
		for _, rest := range s.steps[i:] {
			docs = append(docs, rest.doc)
		}
		return docs
	}
	return [][]byte{s.wholeDoc(domain)}
}

// wholeDoc is the present state as a SetDifference from nothing.
func (s *publishedSet) wholeDoc(domain string) []byte {
	if s.whole == nil {
		m := wire.WholeSet(&s.body, domain)
		m.Number = s.number
		s.whole = marshalled(m)
	}
	return s.whole
}

// jsonDoc is the present state for a node that does not know differences.
func (s *publishedSet) jsonDoc() []byte {
	if s.asJSON == nil {
		s.asJSON, _ = json.Marshal(&s.body) // names and addresses always marshal
	}
	return s.asJSON
}

func marshalled(m *proto.SetDifference) []byte {
	doc, _ := goproto.Marshal(m) // fails for text that is not UTF-8 alone, and names are
	return doc
}
