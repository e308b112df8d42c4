package step

import (
	"testing"

	"github.com/stead-project/stead/spec/causes"
)

// A hook that the server ordered starts while the containers run, after the member was shown why; in a life that is to stop none starts.
func TestAnOrderedHook(t *testing.T) {
	up := Seen{
		Standing: Open, Volumes: true, Sandbox: true, Network: true, Files: true,
		Containers: []Container{{Name: "db", State: Running, Image: true}},
	}
	due := Op{Kind: RunOrdered, Container: "db"}
	cases := []struct {
		name   string
		order  Order
		change func(*Seen)
		want   Op
	}{
		{"it is begun", OrderRun, func(s *Seen) {}, due},
		{"the member reads why before", OrderRun, func(s *Seen) { s.Ordered.Untold = true }, Op{Kind: ShowReason}},
		{"which may fail, and is tried again", OrderRun, func(s *Seen) {
			s.Ordered.Untold, s.Held = true, []Held{{Op: ShowReason, Cause: causes.FilesError, Message: "full"}}
		}, waitOp(causes.FilesError, "full")},
		{"it runs", OrderRun, func(s *Seen) { s.Ordered.State = HookRunning }, Op{Kind: Nothing}},
		{"it has succeeded", OrderRun, func(s *Seen) { s.Ordered.State = HookNone }, Op{Kind: Nothing}},
		{"the life is to stop", OrderStop, func(s *Seen) {}, Op{Kind: SignalStop}},
		{"nobody orders anything", OrderNone, func(s *Seen) {}, Op{Kind: Nothing}},
		{"another container waits for its next start", OrderRun, func(s *Seen) {
			s.Containers = append(s.Containers, Container{Name: "side", State: Exited, Cause: causes.CrashLoop, Message: "later"})
		}, due},
		{"nothing runs", OrderRun, func(s *Seen) {
			s.Ordered = Ordered{Untold: true}
			s.Containers[0] = Container{Name: "db", State: Exited, Cause: causes.CrashLoop, Message: "later"}
			s.Empty = true
		}, waitOp(causes.CrashLoop, "later")},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			s := up
			s.Containers = append([]Container{}, up.Containers...)
			s.Ordered = Ordered{State: HookDue, Container: "db"}
			c.change(&s)
			if got := Next(Wanted{Order: c.order}, s); got != c.want {
				t.Errorf("got %+v, want %+v", got, c.want)
			}
		})
	}
}
