package fakert

import (
	"time"

	"github.com/stead-project/stead/agent/runtime"
	"github.com/stead-project/stead/agent/watchdog"
	"github.com/stead-project/stead/spec"
)

// Cgroup is where the processes of an identity are said to be.
func Cgroup(id spec.Identity) string { return "/fake/" + string(id.Namespace) + "." + id.MemberName() }

// Watchdog makes a watchdog of the lives recorded in dir, which sees and kills the
// containers of this host; whoever asked for it runs it.
func (h *Host) Watchdog(dir string, clock func() time.Duration) *watchdog.Watchdog {
	return &watchdog.Watchdog{
		Dir: watchdog.Dir(dir), Clock: clock,
		Empty: func(cgroup string) (bool, error) {
			empty := true
			h.in(cgroup, func(*container) { empty = false })
			return empty, nil
		},
		Kill: func(cgroup string) error {
			h.in(cgroup, func(c *container) { h.kill(c) })
			return nil
		},
	}
}

// in calls f, under the lock, with each container that runs in a cgroup.
func (h *Host) in(cgroup string, f func(*container)) {
	h.with(func() {
		for id, c := range h.containers {
			if Cgroup(id.ID) == cgroup && c.state == runtime.Running {
				f(c)
			}
		}
	})
}
