package step

import (
	"testing"
	"time"
)

func TestAMemberIsStoppedWhenLittleIsLeftOrNoLessWouldBe(t *testing.T) {
	const gib = 1 << 30
	for _, c := range []struct {
		name      string
		r, before Round
		want      bool
	}{
		{"the first round copies all", Round{gib, time.Minute}, Round{}, false},
		{"the first is small", Round{warmBytes - 1, time.Minute}, Round{}, true},
		{"the first is short", Round{gib, warmTime - 1}, Round{}, true},
		{"neither small nor short", Round{warmBytes, warmTime}, Round{}, false},
		{"it becomes less", Round{gib / 2, 30 * time.Second}, Round{gib, time.Minute}, false},
		{"it becomes no less", Round{gib / 4 * 3, 30 * time.Second}, Round{gib, time.Minute}, true},
		{"it becomes more", Round{2 * gib, 30 * time.Second}, Round{gib, time.Minute}, true},
		{"it becomes no less, and takes long", Round{gib, steadyTime}, Round{gib, steadyTime}, false},
	} {
		if got := Warm(c.r, c.before); got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
	}
}
