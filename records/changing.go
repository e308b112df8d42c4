package records

import (
	"slices"
	"strings"

	"github.com/stead-project/stead/records/inplace"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/spec/changes"
)

// Changes in place: what a life may change without a new one, and what it runs meanwhile.

// ChangeInPlace is what a life of a changes in place to run b. why says what asks for a new life instead, as a sentence without its subject: the
// first field that differs, or what the set does not list; "": nothing does. also is what was changed before, or begun to be.
func (s *Set) ChangeInPlace(a, b *spec.Template, also changes.InPlace) (c changes.InPlace, why string) {
	c, rest, why := a.ChangeInPlace(b)
	c = c.Plus(also)
	if was, is := s.noticed(*a), s.noticed(rest); !spec.SameTemplate(was, is) {
		list := Changes("template", was, is, 1)
		field, _, _ := strings.Cut(slices.Concat(list, []string{"template "})[0], " ")
		return c, field + " differs"
	}
	if kind := c.Beyond(s.Spec.UpdateStrategy.InPlace); kind != "" && len(s.Spec.UpdateStrategy.InPlace) > 0 {
		return c, "updateStrategy.inPlace does not have " + string(kind)
	} else if kind != "" {
		return c, "it has no updateStrategy.inPlace"
	}
	return c, why
}

// ChangeResult is what the life's node says of the change that is under way; the zero one: nothing yet, or there is none. r may be nil.
func (m *Member) ChangeResult(r *Report) inplace.ChangeResult {
	if m.Change == nil || r == nil || r.Token != m.Token || r.Change.ID != m.Change.ID || r.Change.Revision != m.Change.Revision {
		return inplace.ChangeResult{}
	}
	return r.Change
}

// Runs is the revision whose template the containers have, or are to have once the change that is under way is done.
func (m *Member) Runs() spec.RevisionHash {
	if m.Change != nil {
		return m.Change.Revision
	}
	return m.Revision
}

// Requests is what the life takes of its node: while it is changed the more of what it has and is to have. of finds what it runs on a
// revision; nil: that is not known.
func (m *Member) Requests(of func(spec.RevisionHash) *spec.MemberSpec) (cpuMillis, memoryBytes int64) {
	for _, h := range []spec.RevisionHash{m.Revision, m.Runs()} {
		if s := of(h); s != nil {
			cpu, memory := s.Requests()
			cpuMillis, memoryBytes = max(cpuMillis, cpu), max(memoryBytes, memory)
		}
	}
	return cpuMillis, memoryBytes
}
