package etcdembed

import (
	"testing"
	"time"

	"github.com/stead-project/stead/records/stores"
)

// TestOneMemberHasItsTurnAtATime: at each moment it is the turn of one, and each has the same time.
func TestOneMemberHasItsTurnAtATime(t *testing.T) {
	const each = time.Second
	for _, list := range [][]stores.StoreMember{{{ID: "a"}}, {{ID: "f"}, {ID: "b"}, {ID: "c"}}} {
		had := map[string]int{}
		for second := range 12 {
			at := time.Unix(int64(second), int64(second))
			who := 0
			for _, m := range list {
				if turn(list, m.ID, at, each) {
					had[m.ID]++
					who++
				}
			}
			if who != 1 {
				t.Errorf("of %v it is the turn of %d at %v", list, who, at)
			}
		}
		for _, m := range list {
			if had[m.ID] != 12/len(list) {
				t.Errorf("%s had %d turns of 12", m.ID, had[m.ID])
			}
		}
	}
}
