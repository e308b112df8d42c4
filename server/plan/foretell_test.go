package plan

import (
	"fmt"
	"testing"
)

func TestForetell(t *testing.T) {
	cases := map[string]struct{ world, want string }{
		"from the highest down":    {"ordered 3 n1 update=h2 current=h1 0:ready 1:ready 2:ready", "restarts 2 1 0, at most 1, keeps"},
		"with a budget":            {"ordered 4 max=50% n1 update=h2 current=h1 0:ready 1:ready 2:ready 3:ready", "restarts 3 2 1 0, at most 2, keeps"},
		"broken ones first":        {"parallel 3 n1 update=h3 current=h1 0:missing/h2? 1:ready 2:ready", "restarts 0 2 1, at most 1, keeps"},
		"down to the partition":    {"ordered 3 partition=2 n1 update=h2 current=h1 0:ready 1:ready 2:ready", "restarts 2, at most 1, keeps 1 0"},
		"nobody on delete":         {"ordered 2 OnDelete n1 update=h2 current=h1 0:ready 1:ready", "restarts, at most 1, keeps 1 0"},
		"not who is there already": {"ordered 2 n1 update=h1 current=h1 0:ready 1:ready/h2", "restarts 1, at most 1, keeps"},
		"not surplus or unborn":    {"ordered 2 n1 update=h2 current=h1 0:ready 2:ready", "restarts 0, at most 1, keeps"},
		"all at once":              {"ordered 3 Recreate n1 update=h2 current=h1 0:loop 1:ready 2:ready", "restarts 0 2 1, at most 3, keeps"},
		"one that ends for another cause returns as it was, and has its turn": {"ordered 2 n1 update=h2 current=h1 0:ready 1:stopping", "restarts 1 0, at most 1, keeps"},
		"one that ends for the update has had its turn":                       {"ordered 2 n1 update=h2 current=h1 0:ready 1:turning", "restarts 0, at most 1, keeps"},
		"one that died returns as it was, and has its turn":                   {"ordered 2 n1 update=h2 current=h1 0:ready 1:over", "restarts 1 0, at most 1, keeps"},
		"one that ended for the update has had its turn":                      {"ordered 2 n1 update=h2 current=h1 0:ready 1:turned", "restarts 0, at most 1, keeps"},
		"who went on before it was rolled back":                               {"ordered 2 n1 update=h2 current=h1 back=h2 0:ready 1:ready/h2", "restarts 1, at most 1, keeps 0"},
		"who is below the partition stays where it is":                        {"ordered 2 partition=2 n1 update=h2 current=h1 0:ready 1:ready/h2", "restarts, at most 1, keeps 1 0"},
		"but not if it is broken there":                                       {"ordered 2 partition=2 n1 update=h3 current=h1 0:ready 1:loop/h2?", "restarts 1, at most 1, keeps 0"},
		"broken ones in their turn, if they are to be left":                   {"parallel 3 never n1 update=h3 current=h1 0:missing/h2? 1:ready 2:ready", "restarts 2 1 0, at most 1, keeps"},
		"nobody while paused":                                                 {"ordered 2 paused n1 update=h2 current=h1 0:ready 1:ready", "restarts, at most 1, keeps 1 0"},
		"nobody when nothing is new":                                          {"ordered 2 n1 0:ready 1:ready", "restarts, at most 1, keeps"},
		"nobody of a set that is gone":                                        {"ordered 2 deleting n1 update=h2 current=h1 0:ready 1:ready", "restarts, at most 1, keeps"},
	}
	for name, c := range cases {
		f := Foretell(world(t, c.world))
		got := "restarts"
		for _, id := range f.Restarts {
			got += fmt.Sprint(" ", id.Ordinal)
		}
		got += fmt.Sprintf(", at most %d, keeps", f.AtMost)
		for _, id := range f.Kept {
			got += fmt.Sprint(" ", id.Ordinal)
		}
		if got != c.want {
			t.Errorf("%s: got %s; want %s", name, got, c.want)
		}
	}
}
