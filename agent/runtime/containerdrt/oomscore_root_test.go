package containerdrt_test

import (
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/containerd/containerd/v2/pkg/cap"

	"github.com/stead-project/stead/agent/runtime"
)

// TestAContainerHasItsOwnOOMScore: not that of the daemon, which the kernel ends last.
func TestAContainerHasItsOwnOOMScore(t *testing.T) {
	const file = "/proc/self/oom_score_adj"
	h, rt := newLoadedNode(t)
	lowest := -997
	if have, err := cap.Current(); err != nil {
		t.Fatal(err)
	} else if !slices.Contains(have, "CAP_SYS_RESOURCE") {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if lowest, err = strconv.Atoi(strings.TrimSpace(string(text))); err != nil {
			t.Fatal(err)
		}
	}
	for attempt, c := range []struct{ asked, want int }{{937, 937}, {1000, 1000}, {-997, max(lowest, -997)}} {
		d := h.container("run")
		d.Attempt, d.OOMScore = attempt, c.asked
		h.start(rt, d)
		if got := h.said(rt, d.ID, runtime.Exec{Command: []string{"/box", "read", file}})[0]; got != strconv.Itoa(c.want) {
			t.Errorf("asked for %d: got %s, want %d", c.asked, got, c.want)
		}
		if err := rt.KillAll(t.Context(), db0); err != nil {
			t.Fatal(err)
		}
		if err := rt.Remove(t.Context(), d.ID); err != nil {
			t.Fatal(err)
		}
	}
}
