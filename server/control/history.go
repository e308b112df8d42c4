package control

import (
	"context"
	"fmt"
	"strings"
	"time"
	"unicode"

	"google.golang.org/grpc/metadata"

	"github.com/stead-project/stead/manifest"
	"github.com/stead-project/stead/proto"
	"github.com/stead-project/stead/records"
)

const (
	// keptEdits bounds the edits a set remembers, shownChanges the fields of one.
	keptEdits    = 10
	shownChanges = 6
	// maxUser bounds the name of a user.
	maxUser = 64
)

// edited notes in set, which was was before, who makes its new generation.
func edited(ctx context.Context, set, was *records.Set, verb string) {
	set.Trace = ""
	note(set, was, records.Edit{Verb: verb, By: user(ctx), At: time.Now().UTC()})
}

// note appends e, with what it changes.
func note(set, was *records.Set, e records.Edit) {
	e.Generation = set.Generation
	e.Changes = records.Changes("spec", was.Spec, set.Spec, shownChanges)
	set.Edits = append(set.Edits[:len(set.Edits):len(set.Edits)], e)
	if more := len(set.Edits) - keptEdits; more > 0 {
		set.Edits = set.Edits[more:]
	}
}

// user is who calls, as the client says: for people, never for a decision.
func user(ctx context.Context) string {
	said := metadata.ValueFromIncomingContext(ctx, proto.UserKey)
	if len(said) == 0 || len(said[0]) > maxUser || strings.ContainsFunc(said[0], func(r rune) bool { return !unicode.IsPrint(r) }) {
		return ""
	}
	return said[0]
}

// staleProblem: the file was made of an older generation of this very set. It says
// what was changed since, and by whom.
func staleProblem(old *records.Set, read manifest.SeenSet) (manifest.Problem, bool) {
	if read.UID != old.UID || read.Generation == 0 || read.Generation >= old.Generation {
		return manifest.Problem{}, false
	}
	what := fmt.Sprintf("is %d, but set %s has generation %d by now", read.Generation, old.Ref, old.Generation)
	for _, e := range old.Edits {
		if e.Generation > read.Generation {
			what += "; changed since by " + editText(e)
		}
	}
	return manifest.Problem{Path: "metadata.generation", What: what,
		Fix: "take that over ('stead get set " + string(old.Ref.Name) + " -o yaml'), or remove metadata.generation to overwrite it"}, true
}

// editText is "scale (alice): spec.replicas 3 → 5".
func editText(e records.Edit) string {
	text := e.Verb
	if e.By != "" {
		text += " (" + e.By + ")"
	}
	if len(e.Changes) > 0 {
		text += ": " + strings.Join(e.Changes, ", ")
	}
	return text
}

// clash says which of the objects somebody else wrote between our read and our write,
// and of sets who did what.
func (s objects) clash(ctx context.Context, edits []edit, lost error) error {
	var keys, names []string
	for _, e := range edits {
		keys = append(keys, e.key)
	}
	_, kvs, err := s.cfg.Store.Get(ctx, keys...)
	if err != nil {
		return lost
	}
	for _, e := range edits {
		if kvs[e.key].Mod == e.seen {
			continue
		}
		name := e.name()
		if e.applied.GetKind() == proto.KindSet {
			if set, err := before[records.Set](kvs[e.key]); err == nil && set != nil && len(set.Edits) > 0 {
				name += " by " + editText(set.Edits[len(set.Edits)-1])
			}
		}
		names = append(names, name)
	}
	if len(names) == 0 {
		return lost
	}
	return conflict("changed meanwhile: %s; nothing was written, try again", strings.Join(names, "; "))
}
