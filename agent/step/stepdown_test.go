package step

import (
	"testing"

	"github.com/stead-project/stead/spec/causes"
)

// A leader steps down before anything else of its stop, and only for a stop.
func TestALeaderStepsDownBeforeItIsAskedToStop(t *testing.T) {
	for _, c := range []struct {
		name   string
		order  Order
		change func(*Seen)
		want   Op
	}{
		{"it is begun first", OrderStop, func(*Seen) {}, Op{Kind: RunStepDown, Container: "db"}},
		{"also of a container after one that runs its own", OrderStop, func(s *Seen) {
			s.Containers = append([]Container{{Name: "side", State: Running, Hooks: Hooks{StepDown: HookRunning}}}, s.Containers...)
		}, Op{Kind: RunStepDown, Container: "db"}},
		{"it is waited for", OrderStop, func(s *Seen) { s.Containers[0].Hooks.StepDown = HookRunning }, waitOp(causes.Grace, "it steps down")},
		{"then the stop goes on", OrderStop, func(s *Seen) { s.Containers[0].Hooks.StepDown = HookNone }, Op{Kind: SignalStop}},
		{"a container that has ended is not asked", OrderStop, func(s *Seen) {
			s.Containers = append(s.Containers, Container{Name: "side", State: Running})
			s.Containers[0].State = Exited
		}, Op{Kind: SignalStop}},
		{"one that cannot be begun now does not hold up the stop", OrderStop, func(s *Seen) {
			s.Held = []Held{{Op: RunStepDown, Container: "db", Cause: causes.FilesError, Message: "full"}}
		}, Op{Kind: SignalStop}},
		{"a deadline waits for nobody", OrderStop, func(s *Seen) { s.Expired = true }, Op{Kind: Expire}},
		{"one that is not to stop is not asked", OrderRun, func(*Seen) {}, Op{Kind: Nothing}},
	} {
		s := Seen{
			Standing: Open, Volumes: true, Sandbox: true, Network: true, Files: true,
			Containers: []Container{{Name: "db", State: Running, Image: true, Hooks: Hooks{StepDown: HookDue}}},
		}
		c.change(&s)
		if got := Next(Wanted{Order: c.order}, s); got != c.want {
			t.Errorf("%s: got %+v, want %+v", c.name, got, c.want)
		}
	}
}
