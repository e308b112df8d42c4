package control

import (
	"fmt"
	"slices"
	"strings"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/server/plan"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/spec/causes"
)

// shownMembers bounds the names in one sentence.
const shownMembers = 10

// sentence is one thing that happens to some members, in the order in which it does.
type sentence struct {
	verb    string
	members []spec.Identity
}

// The verbs of sentences.
const (
	creates  = "creates"
	starts   = "starts"
	stops    = "stops"
	restarts = "restarts"
	changes  = "changes"
	obeys    = "restarts, as a person asked before"
)

// part is what happens without a pause in between.
type part struct {
	waits     []string // first, for this
	sentences []sentence
}

// teller puts a forecast into words.
type teller struct {
	plan.Forecast
	set     *records.Set
	started map[spec.Identity]bool
	lived   map[spec.Identity]bool // had a life at first
}

func newTeller(f plan.Forecast) *teller {
	t := &teller{Forecast: f, set: f.Before.Set, started: map[spec.Identity]bool{}, lived: map[spec.Identity]bool{}}
	for i := range f.Before.Slots {
		if f.Before.Slots[i].Member != nil {
			t.lived[f.Before.Slots[i].ID] = true
		}
	}
	for _, step := range f.Steps {
		if start, is := step.Action.(plan.Start); is {
			t.started[start.Member.ID] = true
		}
	}
	return t
}

// describe tells what a set does. was is the set before it was edited; nil: it is new.
func describe(was *records.Set, f plan.Forecast) (out []string) {
	t := newTeller(f)
	for i, p := range t.parts() {
		out = append(out, p.waits...)
		scaled, rest := t.scaled(was, p)
		for _, text := range append(scaled, t.tell(rest)...) {
			if i > 0 || len(p.waits) > 0 {
				text = "then " + text
			}
			out = append(out, text)
		}
	}
	if f.Cut {
		return append(out, "the set is large: the forecast ends here, more follows")
	}
	return append(append(out, t.never()...), t.kept()...)
}

// parts are the steps in sentences.
func (t *teller) parts() []part {
	list := []part{{}}
	stopped := map[spec.Identity]bool{}
	for _, step := range t.Steps {
		if len(step.First) > 0 {
			list = append(list, part{waits: waitsFirst(step)})
		}
		at := &list[len(list)-1]
		switch a := step.Action.(type) {
		case plan.Stop:
			stopped[a.ID] = true
			verb := stops
			if t.started[a.ID] {
				verb = restarts
				if a.Reason == records.ReasonRestart {
					verb = obeys
				}
			}
			at.add(verb, a.ID)
		case plan.ChangeInPlace:
			at.add(changes, a.ID)
		case plan.Start:
			switch id := a.Member.ID; {
			case stopped[id]:
				delete(stopped, id) // a restart
			case t.lived[id]:
				at.add(starts, id)
			default:
				at.add(creates, id)
			}
		}
	}
	if len(list[0].sentences) == 0 {
		list = list[1:]
	}
	return slices.DeleteFunc(list, func(p part) bool { return len(p.sentences) == 0 })
}

// add puts a member into the sentence with the verb, or into a new one.
func (p *part) add(verb string, id spec.Identity) {
	for i := range p.sentences {
		if s := &p.sentences[i]; s.verb == verb {
			if !slices.Contains(s.members, id) {
				s.members = append(s.members, id)
			}
			return
		}
	}
	p.sentences = append(p.sentences, sentence{verb, []spec.Identity{id}})
}

// scaled takes from a part who comes and who goes by a change of the range, as one sentence.
func (t *teller) scaled(was *records.Set, p part) (out []string, rest []sentence) {
	if was == nil || t.set == nil || t.set.Deleting || was.Orphaned {
		return nil, p.sentences
	}
	old, now := was.Range(), t.set.Range()
	var texts []string
	var before []sentence
	for _, s := range p.sentences {
		stayed := func(id spec.Identity) bool { return old.Has(id.Ordinal) == now.Has(id.Ordinal) }
		moved := sentence{s.verb, slices.DeleteFunc(slices.Clone(s.members), stayed)}
		if s.verb == restarts || s.verb == changes || s.verb == obeys || len(moved.members) == 0 {
			rest = append(rest, s)
			continue
		}
		texts = append(texts, t.say(moved))
		if len(moved.members) < len(s.members) {
			s.members = slices.DeleteFunc(slices.Clone(s.members), func(id spec.Identity) bool { return !stayed(id) })
			before = append(before, s)
		}
	}
	out = t.tell(before)
	switch {
	case len(texts) == 0:
		return nil, rest
	case was.Replicas() == t.set.Replicas():
		return append(out, fmt.Sprintf("moves %s: %s", t.set.Ref.Name, strings.Join(texts, ", then "))), rest
	}
	return append(out, fmt.Sprintf("scales %s %d → %d: %s", t.set.Ref.Name, was.Replicas(), t.set.Replicas(), strings.Join(texts, ", then "))), rest
}

func (t *teller) tell(list []sentence) (out []string) {
	for _, s := range list {
		out = append(out, t.say(s))
	}
	return out
}

func (t *teller) say(s sentence) string {
	switch names := memberNames(s.members); {
	case s.verb == starts:
		return "starts " + names + " again"
	case s.verb == creates:
		return "creates " + names + t.order(s)
	case s.verb == stops && t.set.Deleting:
		return "stops " + names + t.order(s)
	case s.verb == stops:
		return "stops " + names + t.order(s) + t.leave() + t.volumesOf(s.members)
	case s.verb == changes && len(s.members) == 1:
		return "changes " + names + " in place"
	case s.verb == changes:
		return fmt.Sprintf("changes %s in place, in this order, %s", names, t.atMost())
	case s.verb == obeys:
		return "restarts " + names + ", as a person asked before"
	case t.recreates():
		return fmt.Sprintf("stops %s all at once, then starts them again (Recreate)", names)
	case len(s.members) == 1:
		return "restarts " + names
	default:
		return fmt.Sprintf("restarts %s in this order, %s", names, t.atMost())
	}
}

func (t *teller) recreates() bool {
	return t.set.Spec.UpdateStrategy.Type == spec.RecreateStrategy && t.mostDown() > 1
}

// order says whether one comes after the other.
func (t *teller) order(s sentence) string {
	switch {
	case len(s.members) < 2:
		return ""
	case t.set.Spec.PodManagementPolicy == spec.Parallel && (s.verb != stops || !t.inTurn()):
		return " at once"
	}
	return " in this order"
}

// inTurn: members that the range does not have any more leave one after the other.
func (t *teller) inTurn() bool {
	return t.set.Replicas() > 0 && !t.set.Deleting && (t.set.Spec.Decommission != nil || t.set.Spec.Forget != nil)
}

// leave says which hooks run when members leave for good.
func (t *teller) leave() string {
	decommission, forget := t.set.Spec.Decommission != nil && !t.set.SkipDecommission, t.set.Spec.Forget != nil
	switch {
	case !t.inTurn():
	case decommission && forget:
		return ", each after its decommission hook has succeeded, and the others forget it"
	case decommission:
		return ", each after its decommission hook has succeeded"
	case forget:
		return ", and the others forget each"
	}
	return ""
}

// mostDown is how many members the update takes down at once.
func (t *teller) mostDown() (most int) {
	for _, step := range t.Steps {
		stop, stops := step.Action.(plan.Stop)
		_, alters := step.Action.(plan.ChangeInPlace)
		if alters || stops && !stop.Reason.IsUnwanted() {
			most = max(most, step.Down)
		}
	}
	return most
}

// atMost says how many members are down at once, and why not more if it is not the budget.
func (t *teller) atMost() string {
	most := t.mostDown()
	text := fmt.Sprintf("at most %d down", most)
	if most < min(t.Budget, t.set.Replicas()) && t.Floor > 0 {
		text += ": " + t.FloorText
	}
	return text
}

// describeRestart says for what the restart of a member waits, by what is decided now; nothing
// when it begins at once.
func describeRestart(p plan.Plan, id spec.Identity) []string {
	for _, a := range p.Actions {
		if stop, is := a.(plan.Stop); is && stop.ID == id {
			return nil
		}
	}
	for _, b := range p.Blocked {
		if b.ID == id && b.Reason != causes.BlockedStopping && b.Reason != causes.BlockedStarting {
			return []string{b.Text}
		}
	}
	return nil
}
