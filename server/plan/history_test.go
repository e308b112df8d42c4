package plan

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/stead-project/stead/records"
)

// tellings writes changes as words: Joined:0/Create, UpdateBegan:h2.
func tellings(changes []records.Change) string {
	var words []string
	for _, c := range changes {
		w := fmt.Sprintf("%s:%d", c.Kind, c.Ordinal)
		switch {
		case c.Kind == records.ChangeReplicas:
			w = fmt.Sprintf("%s:%d", c.Kind, c.Replicas)
		case c.Ordinal == records.NoOrdinal:
			w = fmt.Sprintf("%s:%s", c.Kind, c.Revision)
		}
		switch {
		case c.Reason != "":
			w += "/" + c.Reason
		}
		words = append(words, w)
	}
	return strings.Join(words, " ")
}

func TestTell(t *testing.T) {
	for _, c := range []struct {
		name   string
		before string // the world when the history was last written; "": there was none
		now    string
		change func(*World)
		want   string
	}{
		{name: "a first life that is not ready", now: "ordered 1 n1 0:running", want: "Joined:0/Create"},
		{name: "a first life that is", now: "ordered 1 n1 0:ready", want: "Joined:0/Create Ready:0"},
		{name: "nothing twice", before: "ordered 3 n1 0:ready 1:running 2:over", now: "ordered 3 n1 0:ready 1:running 2:over", want: ""},
		{name: "ready after all", before: "ordered 1 n1 0:running", now: "ordered 1 n1 0:ready", want: "Ready:0"},
		{name: "not ready by what the report says", before: "ordered 1 n1 0:ready", now: "ordered 1 n1 0:missing", want: "NotReady:0/ImageMissing"},
		{name: "not ready without a word for it", before: "ordered 1 n1 0:ready", now: "ordered 1 n1 0:running", want: "NotReady:0/NotReady"},
		{name: "one of three nodes is silent", before: "ordered 2 n1 n2 n3 0:ready@n1 1:ready@n2", now: "ordered 2 n1 n2~ n3 0:ready@n1 1:ready@n2",
			want: "NotReady:1/NodeSilent"},
		{name: "most nodes silent at once are believed, as in DNS", before: "ordered 2 n1 n2 0:ready@n1 1:ready@n2",
			now: "ordered 2 n1~ n2~ 0:ready@n1 1:ready@n2", want: ""},
		{name: "told to stop, and why", before: "ordered 1 n1 0:ready 1:ready", now: "ordered 1 n1 0:ready 1:stopping", want: "NotReady:1/ScaleDown"},
		{name: "gone after it was told to stop", before: "ordered 1 n1 0:ready 1:stopping", now: "ordered 1 n1 0:ready 1:stopped", want: "Left:1/ScaleDown"},
		{name: "stopping and gone at once", before: "ordered 1 n1 0:ready 1:ready", now: "ordered 1 n1 0:ready 1:stopped", want: "Left:1/ScaleDown"},
		{name: "over by itself", before: "ordered 1 n1 0:ready", now: "ordered 1 n1 0:over", want: "Left:0/Failed"},
		{name: "refused before it began", now: "ordered 1 n1 0:failed", want: "Joined:0/Create Left:0/Failed"},
		{name: "the next life of a member that left", before: "ordered 1 n1 0:over", now: "ordered 1 n1 0:running",
			change: next(records.ReasonReplace), want: "Returned:0/Replace"},
		{name: "replaced unseen", before: "ordered 1 n1 0:ready", now: "ordered 1 n1 0:ready",
			change: next(records.ReasonUpdate), want: "Left:0/Update Returned:0/Update Ready:0"},
		{name: "restarted unseen", before: "ordered 1 n1 0:ready", now: "ordered 1 n1 0:ready",
			change: next(records.ReasonRestart), want: "Left:0/Restart Returned:0/Restart Ready:0"},
		{name: "the end of another life is not its own", before: "ordered 1 n1 0:ready", now: "ordered 1 n1 0:over",
			change: func(w *World) { w.Slots[0].Report.Token.Number-- }, want: "NotReady:0/NotReady"},
		{name: "ready once, and nothing is reported of it any more", before: "ordered 1 n1 0:ready", now: "ordered 1 n1 0:assigned", want: "NotReady:0/NodeSilent"},
		{name: "deleted: how many are wanted is no news", before: "ordered 2 n1 0:ready", now: "ordered 0 deleting n1 0:ready", want: ""},
		{name: "forgotten unseen", before: "ordered 1 n1 0:ready 1:ready", now: "ordered 1 n1 0:ready 1:none", want: "Left:1/ScaleDown"},
		{name: "forgotten with its set", before: "ordered 1 n1 0:ready 1:ready", now: "ordered 1 deleting n1 0:stopping 1:none",
			change: func(w *World) { w.Slots[0].Member.StopReason = records.ReasonDelete }, want: "Left:1/Delete NotReady:0/Delete"},
		{name: "after a scale-down it joins again", before: "ordered 1 n1 0:ready 1:stopped", now: "ordered 1 n1 0:ready 1:ready",
			change: func(w *World) {
				w.Slots[1].Member.Token.Number += 100
				w.Slots[1].Report.Token = w.Slots[1].Member.Token
			}, want: "Joined:1/Create Ready:1"},
		{name: "who left, what is wanted, who came, and last the end", before: "ordered 3 n1 update=h1 current=h1 0:ready 1:ready 2:ready",
			now:  "ordered 4 n1 update=h2 current=h2 0:ready/h2 1:ready/h2 2:over/h2 3:running/h2",
			want: "Left:2/Failed ReplicasChanged:4 UpdateBegan:h2 Joined:3/Create UpdateEnded:h2"},
		{name: "an update that is not completed", before: "ordered 1 n1 update=h1 current=h1 0:ready", now: "ordered 1 n1 update=h2 current=h2? 0:ready", want: "UpdateBegan:h2"},
		{name: "one that has not begun", before: "ordered 1 n1 update=h1 current=h1 0:ready", now: "ordered 1 n1 update=h2 current=h1 0:ready", want: "UpdateBegan:h2"},
		{name: "one of a set that has no status yet", before: "ordered 1 n1 update=h1 0:ready", now: "ordered 1 n1 update=h2 0:ready", want: "UpdateBegan:h2"},
		{name: "a rollback is an update", before: "ordered 1 n1 update=h2 current=h1 0:ready", now: "ordered 1 n1 update=h1 current=h1? 0:ready", want: "UpdateBegan:h1"},
		{name: "one that was given up goes back", before: "ordered 2 n1 update=h2 current=h1 0:ready 1:running/h2", now: "ordered 2 n1 update=h2 current=h1 0:ready 1:running/h2",
			change: func(w *World) {
				w.Status.RolledBackFrom, w.Status.CurrentReplicas, w.Status.AvailableReplicas = "h2", 1, 1
			}, want: "UpdateBegan:h1/Rollback"},
		{name: "not all are back", before: "ordered 2 n1 update=h2 current=h1 0:ready 1:running/h2", now: "ordered 2 n1 update=h2 current=h1 0:ready 1:running/h2",
			change: func(w *World) {
				w.Status.RolledBackFrom, w.Status.CurrentReplicas, w.Status.AvailableReplicas = "h2", 1, 2
			}, want: "UpdateBegan:h1/Rollback"},
		{name: "or not available yet", before: "ordered 2 n1 update=h2 current=h1 0:ready 1:running/h2", now: "ordered 2 n1 update=h2 current=h1 0:ready 1:running/h2",
			change: func(w *World) {
				w.Status.RolledBackFrom, w.Status.CurrentReplicas, w.Status.AvailableReplicas = "h2", 2, 1
			}, want: "UpdateBegan:h1/Rollback"},
		{name: "and has gone back", before: "ordered 2 n1 update=h2 current=h1 0:ready 1:running/h2", now: "ordered 2 n1 update=h2 current=h1 0:ready 1:running/h2",
			change: func(w *World) {
				w.Status.RolledBackFrom, w.Status.CurrentReplicas, w.Status.AvailableReplicas = "h2", 2, 2
			}, want: "UpdateBegan:h1/Rollback UpdateEnded:h1"},
		{name: "a record that cannot be read is no proof", before: "ordered 1 n1 0:ready 1:ready", now: "ordered 1 n1 0:ready 1:none",
			change: func(w *World) { w.Broken = []string{"members/default/db/1"} }, want: ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			var told records.Recorded
			w := joined(world(t, c.now))
			if c.before != "" {
				before := joined(world(t, c.before))
				told = InitialHistory(before)
				DiffHistory(before, &told, nil)
			} else {
				told = InitialHistory(w)
			}
			if c.change != nil {
				c.change(&w)
			}
			earlier := told
			earlier.Members = slices.Clone(told.Members)
			got := DiffHistory(w, &told, nil)
			if tellings(got) != c.want {
				t.Errorf("got  %s\nwant %s", tellings(got), c.want)
			}
			for i := range got {
				earlier.Add(&got[i])
			}
			if !reflect.DeepEqual(earlier, told) {
				t.Errorf("the changes add up to %+v, told is %+v", earlier, told)
			}
			if again := DiffHistory(w, &told, nil); len(again) > 0 {
				t.Errorf("told again: %s", tellings(again))
			}
		})
	}
}

// joined has every node have been there once: one that never came counts for nothing.
func joined(w World) World {
	for i := range w.Nodes {
		w.Nodes[i].Facts = &records.NodeFacts{Name: w.Nodes[i].Node.Name}
	}
	return w
}

// next makes the first member's life a later one, begun for this reason.
func next(reason records.Reason) func(*World) {
	return func(w *World) {
		s := &w.Slots[0]
		s.Member.Token.Number += 100
		s.Member.Reason = reason
		s.Report.Token = s.Member.Token
	}
}

func TestASetThatIsGoneHasNoChanges(t *testing.T) {
	w := world(t, "gone volumes n1 0:volume")
	if got := DiffHistory(w, &records.Recorded{Members: []records.RecordedMember{{Ordinal: 0}}}, nil); len(got) > 0 {
		t.Errorf("told %s", tellings(got))
	}
}

func TestForgottenAreOnlyThoseWhoAreGone(t *testing.T) {
	w := world(t, "ordered 1 n1 0:over 1:stopped 2:none")
	told := records.Recorded{Members: []records.RecordedMember{
		{Ordinal: 0, Left: true}, {Ordinal: 1, Left: true, Gone: true}, {Ordinal: 2, Left: true, Gone: true}, {Ordinal: 3, Left: true},
	}}
	CompactHistory(w, &told)
	var left []int
	for _, m := range told.Members {
		left = append(left, m.Ordinal)
	}
	if want := []int{0, 1, 3}; !slices.Equal(left, want) {
		t.Errorf("kept %v, want %v: of the second a record stands, the last is to come again", left, want)
	}
}
