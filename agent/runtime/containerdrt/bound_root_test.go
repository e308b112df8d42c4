package containerdrt_test

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/stead-project/stead/agent/cgroup"
	"github.com/stead-project/stead/agent/runtime/runtimetest"
)

// A member that forks without end would take every process of its host.
func TestAMemberThatForksStopsAtItsLimitAndTheHostForksOn(t *testing.T) {
	for _, c := range []struct {
		name  string
		limit func(h *host)
	}{
		{"its own limit", func(h *host) { h.cfg.MaxProcesses = 64 }},
		{"that of all members", func(h *host) {
			rt := h.open()
			defer rt.Close()
			if err := rt.Bound(cgroup.Bounds{Processes: 64, MemoryBytes: 8 << 30}); err != nil {
				t.Fatal(err)
			}
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := newHost(t)
			c.limit(h)
			rt := h.open()
			defer rt.Close()
			h.load(rt, imageName, runtimetest.ImageConfig{})
			bomb := h.container("forks", "100") // each is several threads
			h.start(rt, bomb)
			h.until("it has all it may", func() bool { return strings.Contains(h.log(bomb), "\n") })
			if log := h.log(bomb); !strings.Contains(log, "refused: resource temporarily unavailable") {
				t.Errorf("it says: %s", log)
			}
			if err := exec.Command("true").Run(); err != nil {
				t.Errorf("the host: %v", err)
			}
			if s, err := rt.Status(t.Context(), bomb.ID); err != nil || c.name == "its own limit" && s.Refused == 0 {
				t.Errorf("%+v, %v; want it told", s, err)
			}
		})
	}
}
