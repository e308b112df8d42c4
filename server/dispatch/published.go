package dispatch

import (
	"encoding/json"

	goproto "google.golang.org/protobuf/proto"

	"github.com/stead-project/stead/proto"
	"github.com/stead-project/stead/proto/wire"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
)

// maxSteps bounds the differences that are kept of a set: a session that needs more is sent
// the whole set.
const maxSteps = 32

// movedSets are the sets that changed between two versions, in order, kept from one session to the next: most ask
// for the same.
type movedSets struct {
	since, until uint64
	refs         []spec.SetRef
}

// publishedSet is a set as it was published last: in full, and in brief for nodes that have
// nothing to do with it.
type publishedSet struct {
	set         *records.Set // of which body was made; nil: none
	body        records.Snapshot
	asJSON      []byte // body, marshalled; nil: not yet
	full, brief form
}

// form is what sessions are sent of a set in one form, and the differences that led there. Each is
// marshalled once for all sessions.
type form struct {
	number uint64 // the round that changed it last; 0: none
	steps  []step // ascending, without a gap up to number
	whole  []byte // all of it, marshalled; nil: not yet
	turn   []byte // what leads to it from the other form, marshalled; nil: not yet
}

// step is a difference between two states of a set in one form.
type step struct {
	base, number uint64
	size         int
	doc          []byte // nil: the whole set is not much more
}

// most is how much steps may say together of a set as it is now.
func (s *publishedSet) most() int { return 4 + len(s.body.Peers) }

// stepsFrom are the steps that d makes in round number, of the set in full and (nil: it stays as it
// is) in brief. A nil set is one that was not published.
func (s *publishedSet) stepsFrom(d *difference, number uint64, domain string) (full step, brief *step) {
	if s == nil {
		return step{number: number}, &step{number: number}
	}
	full = s.full.stepFrom(d, number, domain, s)
	if b := d.inBrief(&s.body); !b.empty() {
		next := s.brief.stepFrom(&b, number, domain, s)
		brief = &next
	}
	return full, brief
}

func (f *form) stepFrom(d *difference, number uint64, domain string, of *publishedSet) step {
	next := step{base: f.number, number: number, size: d.size()}
	if f.number > 0 && !of.body.Gone && next.size <= of.most() {
		next.doc = marshalled(d.message(f.number, number, domain))
	}
	return next
}

// take makes s what d leads to.
func (s *publishedSet) take(d *difference, full step, brief *step, set *records.Set) {
	d.apply(&s.body)
	s.set, s.asJSON = set, nil
	s.full.take(full, s)
	if brief != nil {
		s.brief.take(*brief, s)
	}
	s.full.turn, s.brief.turn = nil, nil // each starts from the other
}

func (f *form) take(next step, of *publishedSet) {
	f.number, f.whole = next.number, nil
	if next.doc == nil || of.body.Gone {
		f.steps = nil
		return
	}
	f.steps = append(f.steps, next)
	size := 0
	for i := len(f.steps) - 1; i >= 0; i-- {
		size += f.steps[i].size
		if len(f.steps)-i > maxSteps || size > of.most() {
			f.steps = append([]step(nil), f.steps[i+1:]...)
			return
		}
	}
}

// since is what brings a session to the present state of the set, in brief or in full, that was sent
// all up to a version in that form; 0: nothing yet.
func (s *publishedSet) since(version uint64, brief bool, domain string) [][]byte {
	if docs, known := s.in(brief).path(version); known {
		return docs
	}
	return [][]byte{s.wholeDoc(brief, domain)}
}

// turned is since for a session that was sent all up to version in the other form.
func (s *publishedSet) turned(version uint64, brief bool, domain string) [][]byte {
	docs, known := s.in(!brief).path(version)
	if !known || version == 0 || s.body.Gone {
		return [][]byte{s.wholeDoc(brief, domain)}
	}
	return append(docs, s.turnDoc(brief, domain))
}

// path are the steps from a version to the present state; false: not all of them are kept.
func (f *form) path(version uint64) (docs [][]byte, known bool) {
	if f.number <= version {
		return nil, true
	}
	for i := range f.steps {
		if f.steps[i].number <= version {
			continue
		}
		if version == 0 || f.steps[i].base > version {
			break
		}
		for _, rest := range f.steps[i:] {
			docs = append(docs, rest.doc)
		}
		return docs, true
	}
	return nil, false
}

func (s *publishedSet) in(brief bool) *form {
	if brief {
		return &s.brief
	}
	return &s.full
}

// wholeDoc is the present state as a SetDifference from nothing.
func (s *publishedSet) wholeDoc(brief bool, domain string) []byte {
	f := s.in(brief)
	if f.whole == nil {
		body := s.body
		if brief {
			body = body.InBrief()
		}
		m := wire.WholeSet(&body, domain)
		m.Number = f.number
		f.whole = marshalled(m)
	}
	return f.whole
}

// turnDoc is what leads to the present state in one form from that in the other: what a set in brief
// does not say.
func (s *publishedSet) turnDoc(brief bool, domain string) []byte {
	f, was := s.in(brief), s.in(!brief)
	if f.turn == nil {
		d := difference{next: s.body, head: true, told: true}
		if brief {
			d = difference{next: s.body.InBrief()}
		} else {
			for _, p := range s.body.Peers {
				if p != p.InBrief() {
					d.peers = append(d.peers, p)
				}
			}
		}
		m := d.message(was.number, f.number, domain)
		m.Turned = true
		f.turn = marshalled(m)
	}
	return f.turn
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
