package control

import (
	"fmt"
	"slices"
	"strings"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/server/plan"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/spec/causes"
	"github.com/stead-project/stead/spec/scalar"
)

// waitsFirst says for whom a step waits.
func waitsFirst(step plan.ForecastStep) []string {
	verb := "waits for "
	if step.After > 0 {
		verb = fmt.Sprintf("waits %s for ", scalar.Duration{Duration: step.After})
	}
	return grouped(verb, step.First)
}

// grouped says of members why they wait, those with the same reason together.
func grouped(verb string, list []plan.Blocked) (out []string) {
	for len(list) > 0 {
		text := list[0].Text
		same := func(b plan.Blocked) bool { return b.Text == text }
		var ids []spec.Identity
		for _, b := range list {
			if same(b) {
				ids = append(ids, b.ID)
			}
		}
		list = slices.DeleteFunc(slices.Clone(list), same)
		if text == "" {
			text = "they wait for the others"
			if len(ids) == 1 {
				text = "it waits for the others"
			}
		}
		out = append(out, verb+memberNames(ids)+": "+text)
	}
	if more := len(out) - shownMembers; more > 0 {
		out = append(out[:shownMembers], fmt.Sprintf("and %d more reasons", more))
	}
	return out
}

// never says who waits when nothing follows any more, and why. Who waits for the rollout to be
// resumed is told of by kept.
func (t *teller) never() (out []string) {
	verbs := map[string][]plan.Blocked{}
	var order []string
	others := !slices.ContainsFunc(t.Never, func(b plan.Blocked) bool { return !forOthers(b.Reason) && t.undone(b) != "" })
	for _, b := range t.Never {
		verb := t.undone(b)
		switch {
		case verb == "":
			continue
		case b.Reason == causes.BlockedFloor:
			b.Text = t.FloorText
		case forOthers(b.Reason) && !others:
			b.Text = ""
		}
		if verbs[verb] == nil {
			order = append(order, verb)
		}
		verbs[verb] = append(verbs[verb], b)
	}
	for _, verb := range order {
		out = append(out, grouped(verb, verbs[verb])...)
	}
	return out
}

// forOthers: the reason to wait is other members.
func forOthers(reason causes.BlockedReason) bool {
	switch reason {
	case causes.BlockedTurn, causes.BlockedPredecessor, causes.BlockedSuccessor, causes.BlockedSurvivors:
		return true
	}
	return false
}

// undone is what does not happen to a member; "": it is not told of.
func (t *teller) undone(b plan.Blocked) string {
	slot := slotOf(t.After.Slots, b.ID)
	wanted := t.set != nil && !t.set.Deleting && t.set.Range().Has(b.ID.Ordinal)
	switch {
	case b.Reason == causes.BlockedPaused || b.Reason == causes.BlockedOrphaned:
		return ""
	case wanted && (slot == nil || slot.Member == nil || slot.Report != nil && slot.Report.Phase.Over()):
		return "does not start "
	case slot == nil || slot.Member == nil:
		return "does not finish with "
	case slot.Member.Goal == records.GoalStop:
		return "waits for "
	case !wanted:
		return "does not stop "
	case slices.Contains(t.Kept, b.ID):
		return "does not restart "
	}
	return "does not bring back "
}

func slotOf(slots []plan.Slot, id spec.Identity) *plan.Slot {
	for i := range slots {
		if slots[i].ID == id {
			return &slots[i]
		}
	}
	return nil
}

// kept says who ends up off the update revision because a person wants it so.
func (t *teller) kept() []string {
	if t.set == nil {
		return nil
	}
	held := map[spec.Identity]bool{}
	for _, b := range t.Never {
		held[b.ID] = b.Reason != causes.BlockedPaused
	}
	ids := slices.DeleteFunc(slices.Clone(t.Kept), func(id spec.Identity) bool { return held[id] })
	status := t.After.Status
	switch names := memberNames(ids); {
	case len(ids) == 0 || t.set.Orphaned:
		return nil
	case t.set.Paused:
		return []string{names + number(ids, " stays as it is", " stay as they are") + " until the rollout is resumed"}
	case t.set.Spec.UpdateStrategy.Type == spec.OnDeleteStrategy:
		return []string{names + number(ids, " moves on when it is restarted", " move on when they are restarted") + " (OnDelete)"}
	case status != nil && status.RolledBackFrom == t.After.TemplateHash:
		return []string{fmt.Sprintf("%s stay on revision %s: the update to %s was rolled back", names, status.CurrentRevision, status.RolledBackFrom)}
	default:
		return []string{"the partition keeps " + names + number(ids, " as it is", " as they are")}
	}
}

// number is the word for one member or for several.
func number(ids []spec.Identity, one, several string) string {
	if len(ids) == 1 {
		return one
	}
	return several
}

func memberNames(ids []spec.Identity) string { return listed(ids, spec.Identity.MemberName) }

// listed is "a, b": the texts of so many items as a sentence can have.
func listed[T any](items []T, text func(T) string) string {
	var texts []string
	for _, item := range items[:min(len(items), shownMembers)] {
		texts = append(texts, text(item))
	}
	out := strings.Join(texts, ", ")
	if more := len(items) - shownMembers; more > 0 {
		out += fmt.Sprintf(" and %d more", more)
	}
	return out
}
