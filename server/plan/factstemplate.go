package plan

import (
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
)

// templates are what members run on the revisions of a set. Facts are made of it; see newSetFacts.
type templates struct {
	set    *records.Set
	stored []*records.Revision
	fresh  *records.Revision              // the update revision, when it is not stored yet
	made   map[templateKey]*spec.Template // those that differ from their revision's, each made once
	same   map[[2]templateKey]bool        // what was compared
}

// templateKey names what members of one class run on a revision.
type templateKey struct {
	hash  spec.RevisionHash
	class uint64
}

// revision is a stored one, or the one being added; nil: unknown.
func (f *templates) revision(h spec.RevisionHash) *records.Revision {
	if f.fresh != nil && f.fresh.Hash == h {
		return f.fresh
	}
	return f.storedAs(h)
}

// storedAs is the stored revision of a hash; nil: there is none.
func (f *templates) storedAs(h spec.RevisionHash) *records.Revision {
	for _, r := range f.stored {
		if r.Hash == h {
			return r
		}
	}
	return nil
}

// template is that of a revision, without the differences of members; nil: unknown.
func (f *templates) template(h spec.RevisionHash) *spec.Template {
	if r := f.revision(h); r != nil {
		return &r.Template
	}
	return nil
}

// templateOf is what the member of an ordinal runs on a revision; nil: unknown.
func (f *templates) templateOf(h spec.RevisionHash, ordinal int) *spec.Template {
	r := f.revision(h)
	if r == nil {
		return nil
	}
	key := templateKey{h, r.Members.Of(ordinal)}
	if key.class == 0 {
		return &r.Template
	}
	if f.made == nil {
		f.made = map[templateKey]*spec.Template{}
	}
	if f.made[key] == nil {
		f.made[key] = r.TemplateOf(ordinal)
	}
	return f.made[key]
}

// runs is what the member of an ordinal runs on a revision; nothing of one that is not known.
func (f *templates) runs(h spec.RevisionHash, ordinal int) *spec.MemberSpec {
	if t := f.templateOf(h, ordinal); t != nil {
		return &t.Spec
	}
	return &spec.MemberSpec{}
}

// sameFor reports whether two revisions are the same for the member of an ordinal, though they are not for all: a life of
// one needs no new life to run the other. Only differences of members make that.
func (f *templates) sameFor(ordinal int, a, b spec.RevisionHash) bool {
	from, to := f.revision(a), f.revision(b)
	if a == b || from == nil || to == nil || len(from.Members)+len(to.Members) == 0 {
		return false
	}
	key := [2]templateKey{{a, from.Members.Of(ordinal)}, {b, to.Members.Of(ordinal)}}
	same, known := f.same[key]
	if !known {
		if f.same == nil {
			f.same = map[[2]templateKey]bool{}
		}
		same = f.set.SameLife(*f.templateOf(a, ordinal), *f.templateOf(b, ordinal))
		f.same[key] = same
	}
	return same
}
