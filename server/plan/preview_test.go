package plan

import (
	"fmt"

	"strings"
	"testing"

	"github.com/stead-project/stead/records"
)

// steps writes steps as words: -2 stops db-2, +2 starts it, vol=2/Delete decides about a
// volume, and [0:NotReady] or [60s ...] before a step is what it waits for.
func steps(list []ForecastStep) []string {
	var words []string
	for _, step := range list {
		if len(step.First) > 0 {
			var first []string
			if step.After > 0 {
				first = append(first, step.After.String())
			}
			for _, b := range step.First {
				first = append(first, fmt.Sprintf("%d:%s", b.ID.Ordinal, b.Reason))
			}
			words = append(words, "["+strings.Join(first, " ")+"]")
		}
		words = append(words, acted(step.Action)...)
	}
	return words
}

// acted is what a preview tells of an action; nothing of those that it leaves out.
func acted(a Action) []string {
	switch a := a.(type) {
	case Start:
		return []string{fmt.Sprintf("+%d/%s", a.Member.ID.Ordinal, a.Member.Revision)}
	case Stop:
		words := []string{fmt.Sprintf("-%d/%s", a.ID.Ordinal, a.Reason)}
		if len(a.Volumes) > 0 {
			words = append(words, "vol="+fates(a.Volumes))
		}
		return words
	case SetVolumes:
		return []string{"vol=" + fates(a.Volumes)}
	case DropVolume:
		return []string{fmt.Sprintf("drop=%d", a.ID.Ordinal)}
	case RestoreVolume:
		return []string{fmt.Sprintf("restore=%d", a.Volume.ID.Ordinal)}
	case VoidRequest:
		return []string{fmt.Sprintf("void=%d", a.ID.Ordinal)}
	case RemoveSet:
		return []string{"remove"}
	case MarkBootstrapped:
		if a.Inherited {
			return []string{"inherits"}
		}
	}
	return nil
}

// mostDown is how many members an update takes down at once, by a preview.
func mostDown(f Forecast) (most int) {
	for _, step := range f.Steps {
		if stop, is := step.Action.(Stop); is && stop.Reason == records.ReasonUpdate {
			most = max(most, step.Down)
		}
	}
	return most
}

func waiting(list []Blocked) (words []string) {
	for _, b := range list {
		words = append(words, fmt.Sprintf("%d:%s", b.ID.Ordinal, b.Reason))
	}
	return words
}

// foretold is a preview in words.
func foretold(f Forecast) string {
	words := append(steps(f.Steps), "|")
	if most := mostDown(f); most > 0 {
		words = append(words, fmt.Sprintf("down=%d", most))
	}
	for _, b := range f.Never {
		words = append(words, fmt.Sprintf("never=%d:%s", b.ID.Ordinal, b.Reason))
	}
	for _, id := range f.Kept {
		words = append(words, fmt.Sprintf("kept=%d", id.Ordinal))
	}
	for _, id := range f.Ending {
		words = append(words, fmt.Sprintf("ending=%d", id.Ordinal))
	}
	return strings.Join(words, " ")
}

func TestPreview(t *testing.T) {
	cases := map[string]struct{ world, want string }{
		"from the highest down":    {"ordered 3 n1 update=h2 current=h1 0:ready 1:ready 2:ready", "-2/Update +2/h2 -1/Update +1/h2 -0/Update +0/h2 | down=1"},
		"with a budget":            {"ordered 4 max=50% n1 update=h2 current=h1 0:ready 1:ready 2:ready 3:ready", "-3/Update -2/Update +2/h2 +3/h2 -1/Update -0/Update +0/h2 +1/h2 | down=2"},
		"broken ones first":        {"parallel 3 n1 update=h3 current=h1 0:missing/h2? 1:ready 2:ready", "-0/Update +0/h3 -2/Update +2/h3 -1/Update +1/h3 | down=1"},
		"down to the partition":    {"ordered 3 partition=2 n1 update=h2 current=h1 0:ready 1:ready 2:ready", "-2/Update +2/h2 | down=1 kept=1 kept=0"},
		"nobody on delete":         {"ordered 2 OnDelete n1 update=h2 current=h1 0:ready 1:ready", "| kept=1 kept=0"},
		"not who is there already": {"ordered 2 n1 update=h1 current=h1 0:ready 1:ready/h2", "-1/Update +1/h1 | down=1"},
		"surplus ones first":       {"ordered 2 n1 update=h2 current=h1 0:ready 2:ready", "+1/h2 -2/ScaleDown -0/Update +0/h2 | down=1"},
		"all at once":              {"ordered 3 Recreate n1 update=h2 current=h1 0:loop 1:ready 2:ready", "-2/Update -1/Update -0/Update +0/h2 +1/h2 +2/h2 | down=3"},
		"one that ends for another cause returns as it was, and has its turn": {"ordered 2 n1 update=h2 current=h1 0:ready 1:stopping", "+1/h1 -1/Update +1/h2 -0/Update +0/h2 | down=1 ending=1"},
		"one that ends for the update has had its turn":                       {"ordered 2 n1 update=h2 current=h1 0:ready 1:turning", "+1/h2 -0/Update +0/h2 | down=1 ending=1"},
		"one that died returns as it was, and has its turn":                   {"ordered 2 n1 update=h2 current=h1 0:ready 1:over", "+1/h1 -1/Update +1/h2 -0/Update +0/h2 | down=1"},
		"one that ended for the update has had its turn":                      {"ordered 2 n1 update=h2 current=h1 0:ready 1:turned", "+1/h2 -0/Update +0/h2 | down=1"},
		"who went on before it was rolled back":                               {"ordered 2 n1 update=h2 current=h1 back=h2 0:ready 1:ready/h2", "-1/Update +1/h1 | down=1 kept=1 kept=0"},
		"who is below the partition stays where it is":                        {"ordered 2 partition=2 n1 update=h2 current=h1 0:ready 1:ready/h2", "| kept=0"},
		"but not if it is broken there":                                       {"ordered 2 partition=2 n1 update=h3 current=h1 0:ready 1:loop/h2?", "-1/Update +1/h1 | down=1 kept=1 kept=0"},
		"broken ones in their turn, if they are to be left":                   {"parallel 3 never n1 update=h3 current=h1 0:missing/h2? 1:ready 2:ready", "-2/Update +2/h3 -1/Update +1/h3 [0:ImageMissing] -0/Update +0/h3 | down=2"},
		"nobody while paused":                                                 {"ordered 2 paused n1 update=h2 current=h1 0:ready 1:ready", "| never=1:Paused never=0:Paused kept=1 kept=0"},
		"nobody when nothing is new":                                          {"ordered 2 n1 0:ready 1:ready", "|"},
		"a deletion stops, and sees who had begun to stop":                    {"ordered 3 deleting n1 0:ready 1:ready 2:stopping", "-1/Delete -0/Delete remove | ending=2"},

		"the floor of a budget that leaves no room holds the update for ever": {"ordered 3 floor=3 n1 update=h2 current=h1 0:ready 1:ready 2:ready", "| never=2:DisruptionFloor never=1:DisruptionFloor never=0:DisruptionFloor kept=2 kept=1 kept=0"},
		"the floor lets fewer down than the budget":                           {"parallel 4 max=2 floor=3 n1 update=h2 current=h1 0:ready 1:ready 2:ready 3:ready", "-3/Update +3/h2 -2/Update +2/h2 -1/Update +1/h2 -0/Update +0/h2 | down=1"},
		"a budget larger than the set":                                        {"ordered 3 max=7 n1 update=h2 current=h1 0:ready 1:ready 2:ready", "-2/Update -1/Update -0/Update +0/h2 +1/h2 +2/h2 | down=3"},
		"an update waits for one that is not ready":                           {"ordered 3 n1 update=h2 current=h1 0:ready 1:never 2:ready", "[1:NotReady] -2/Update +2/h2 -1/Update +1/h2 -0/Update +0/h2 | down=1"},
		"a scale-up waits for one that is not ready":                          {"ordered 4 n1 0:ready 1:running 2:ready", "[1:NotReady] +3/h1 |"},
		"a scale-down waits for one that is not ready":                        {"ordered 2 n1 0:ready 1:loop 2:ready", "[1:CrashLoop] -2/ScaleDown |"},
		"volumes that go with their members":                                  {"ordered 1 volumes whenScaled=Delete n1 0:ready 1:ready 2:ready", "-2/ScaleDown vol=2/Delete,1/Delete -1/ScaleDown vol=2/Reclaiming vol=1/Reclaiming drop=2 drop=1 |"},
		"volumes that go with the set":                                        {"parallel 2 volumes whenDeleted=Delete deleting n1 0:ready 1:ready", "-1/Delete vol=1/Delete -0/Delete vol=0/Delete vol=0/Reclaiming vol=1/Reclaiming drop=0 drop=1 remove |"},
		"no node":                                                             {"ordered 2", "| never=0:NoNode never=1:WaitingForPredecessor"},
		"a guarded member of a silent node":                                   {"parallel 2 n1 n2~ n3 replace=60 0:ready@n1 1:ready@n2", "[1m2s 1:NodeSilent] +1/h1 |"},
		"a member of a silent node":                                           {"ordered 3 n1 n2~ 0:ready@n1 1:ready@n2", "| never=1:NodeSilent never=2:WaitingForPredecessor"},
		"a rollback after the deadline":                                       {"parallel 2 rollback deadline=60 n1! update=h2 current=h1 0:ready 1:turned", "| never=1:NoNode kept=1 kept=0"},
		"what is left of a set that is gone":                                  {"gone ordered 0 volumes n1 0:volume=Delete", "vol=0/Reclaiming drop=0 |"},
	}
	for name, c := range cases {
		if got := foretold(Preview(world(t, c.world))); got != c.want {
			t.Errorf("%s: %s\ngot  %s\nwant %s", name, c.world, got, c.want)
		}
	}
}

// A set of any size is previewed in a bounded time; of a very large one the end is not told.
func TestAPreviewIsBounded(t *testing.T) {
	for _, c := range []struct {
		members int
		cut     bool
	}{{100, false}, {1000, true}, {10000, true}} {
		line := fmt.Sprint("ordered ", c.members, " n1 update=h2 current=h1")
		for i := range c.members {
			line += fmt.Sprintf(" %d:ready", i)
		}
		f := Preview(world(t, line))
		if f.Cut != c.cut || mostDown(f) != 1 || len(f.Steps) < 6 || steps(f.Steps)[0] != fmt.Sprintf("-%d/Update", c.members-1) {
			t.Errorf("%d members: cut %t, %d steps", c.members, f.Cut, len(f.Steps))
		}
		if stops := len(f.Steps) / 2; c.cut && len(f.Never) < c.members-stops-2 {
			t.Errorf("%d members: %d are told of, and %d wait still", c.members, stops, len(f.Never))
		}
	}
}

func BenchmarkPreview(b *testing.B) {
	for _, n := range []int{3, 100, 1000, 10000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			line := fmt.Sprint("ordered ", n, " n1 update=h2 current=h1")
			for i := range n {
				line += fmt.Sprintf(" %d:ready", i)
			}
			w := world(b, line)
			b.ReportAllocs()
			for b.Loop() {
				Preview(w)
			}
		})
	}
}
