package step

import (
	"testing"

	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/spec/causes"
)

// started is a member of one init container, a sidecar, a second init container and a
// container; each has the given state, "" is Absent. What has ended or runs has passed, but for
// the last of those.
func started(states ...State) Seen {
	s := alive()
	s.Empty = true
	s.Containers = nil
	for i, c := range []Container{
		{Name: "one", Role: spec.RoleInit}, {Name: "side", Role: spec.RoleSidecar}, {Name: "two", Role: spec.RoleInit}, {Name: "db"},
	} {
		c.State, c.Image, c.Due = Absent, true, true
		if i < len(states) && states[i] != "" {
			c.State = states[i]
		}
		c.Passed = i+1 < len(states) && c.Role != spec.RoleMain
		s.Empty = s.Empty && c.State != Running
		s.Containers = append(s.Containers, c)
	}
	return s
}

// The rules of Kubernetes 1.33: computeInitContainerActions of the kubelet, and its order of termination.
func TestInitContainers(t *testing.T) {
	run, stop := Wanted{Order: OrderRun}, Wanted{Order: OrderStop}
	on := func(kind Kind, name string) Op { return Op{Kind: kind, Container: name} }
	waits := func(text string) Op { return waitOp(causes.Initializing, text) }
	ending := func(s Seen, change func(c []Container)) Seen {
		return with(s, func(s *Seen) { s.Signalled = true; change(s.Containers) })
	}
	nothing := func([]Container) {}
	asked := func(c []Container) { c[1].Asked = true }
	cases := []struct {
		name string
		w    Wanted
		s    Seen
		want Op
	}{
		{"the first is created first", run, started(), on(CreateContainer, "one")},
		{"and its image is looked for, not that of others", run, with(started(), func(s *Seen) {
			s.Containers[0].Image, s.Containers[3].Image = false, false
		}), on(EnsureImage, "one")},
		{"while it runs nothing else begins", run, started(Running), waits("init container one is running; what comes after it waits until it has ended")},
		{"nor while it waits after a failure", run, with(started(Exited), func(s *Seen) {
			s.Containers[0].Due, s.Containers[0].Cause, s.Containers[0].Message = false, "CrashLoop", "init container one: exit 1"
		}), waitOp("CrashLoop", "init container one: exit 1")},
		{"then it is removed and made again", run, started(Exited), on(RemoveContainer, "one")},
		{"one that is lost is made again, too", run, started(Lost), on(RemoveContainer, "one")},
		{"but not while a process of it may live", run, with(started(Lost), func(s *Seen) { s.Empty = false }),
			waitOp(causes.ProcessLeft, "the runtime lost track of a container whose processes still run; restart the member to replace them")},
		{"one that has passed is removed before the next begins", run, started(Exited, Absent), on(RemoveContainer, "one")},
		{"and what it left behind is killed", run, with(started(Exited, Absent), func(s *Seen) { s.Empty = false }), on(KillAll, "")},
		{"whatever its back-off was", run, with(started(Exited, Absent), func(s *Seen) { s.Containers[0].Due = false }), on(RemoveContainer, "one")},
		{"one that has passed is never made again", run, started(Absent, Absent), on(CreateContainer, "side")},
		{"nor does its image matter", run, with(started(Absent, Absent), func(s *Seen) { s.Containers[0].Image = false }), on(CreateContainer, "side")},
		{"a sidecar is started", run, started(Absent, Created), on(StartContainer, "side")},
		{"what comes after it waits until it has started", run, started(Absent, Running),
			waits("sidecar side is running; what comes after it waits for its startup probe")},
		{"and the member says what the probe says", run, with(started(Absent, Running), func(s *Seen) {
			s.Containers[1].Message = "sidecar side: startup probe: 503"
		}), waits("sidecar side: startup probe: 503")},
		{"its postStart hook is run before its probes count", run, with(started(Absent, Running), func(s *Seen) {
			s.Containers[1].Hooks.PostStart = HookDue
		}), on(RunPostStart, "side")},
		{"one that its startup probe gave up is ended", run, with(started(Absent, Running), func(s *Seen) { s.Containers[1].Unhealthy = true }),
			on(EndContainer, "side")},
		{"the next begins beside the sidecar", run, started(Absent, Running, Absent), on(CreateContainer, "two")},
		{"a sidecar that ended is made again, also while the next runs", run, started(Absent, Exited, Running), on(RemoveContainer, "side")},
		{"and holds up nothing once it had started", run, with(started(Absent, Exited, Absent), func(s *Seen) {
			s.Containers[1].Due = false
		}), on(CreateContainer, "two")},
		{"the container waits for the last one", run, started(Absent, Running, Running), waits("init container two is running; what comes after it waits until it has ended")},
		{"the container begins when all have passed", run, started(Absent, Running, Absent, Absent), on(CreateContainer, "db")},
		{"one that passed is removed beside a sidecar, whose processes are there", run, started(Absent, Running, Exited, Absent), on(RemoveContainer, "two")},
		{"then nothing is to be done", run, started(Absent, Running, Absent, Running), Op{Kind: Nothing}},
		{"a restart in place of the container runs none of them", run, started(Absent, Running, Absent, Exited), on(RemoveContainer, "db")},
		{"also when it is removed", run, started(Absent, Running, Absent, Absent), on(CreateContainer, "db")},
		{"a sidecar is made again beside the container", run, started(Absent, Exited, Absent, Running), on(RemoveContainer, "side")},
		{"a missing ConfigMap is waited for before the first", run, with(started(), func(s *Seen) { s.Missing = "no x" }), waitOp(causes.ConfigMissing, "no x")},
		{"files are written anew while one runs", run, with(started(Running), func(s *Seen) { s.Files = false }), Op{Kind: WriteFiles}},
		{"a failed operation is said", run, with(started(), func(s *Seen) { s.Held = []Held{{CreateContainer, "one", "StartError", "no"}} }), waitOp("StartError", "no")},

		{"a stop asks containers and init containers", stop, started(Absent, Running, Running), on(SignalStop, "")},
		{"and waits for them before the sidecar", stop, ending(started(Absent, Running, Absent, Running), nothing), waitOp(causes.Grace, "asked to stop")},
		{"which is asked when they have ended", stop, ending(started(Absent, Running, Absent, Exited), nothing), on(SignalSidecar, "side")},
		{"once", stop, ending(started(Absent, Running, Absent, Exited), asked), waitOp(causes.Grace, "asked to stop")},
		{"a sidecar is asked although none of them ran", stop, ending(started(Absent, Running), nothing), on(SignalSidecar, "side")},
		{"a sidecar is asked when the grace is over although the container has not ended", stop,
			with(ending(started(Absent, Running, Absent, Running), nothing), func(s *Seen) { s.GraceOver = true }), on(SignalSidecar, "side")},
		{"and has its least time", stop, with(ending(started(Absent, Running, Absent, Running), asked), func(s *Seen) { s.GraceOver = true }),
			waitOp(causes.Grace, "asked to stop")},
		{"its preStop hook begins with those of the containers", stop, ending(started(Absent, Running, Absent, Running), func(c []Container) {
			c[1].Hooks.PreStop = HookDue
		}), on(RunPreStop, "side")},
		{"but the signal after it has its turn", stop, ending(started(Absent, Running, Absent, Running), func(c []Container) {
			c[1].Hooks.PreStop = HookOver
		}), waitOp(causes.Grace, "asked to stop")},
		{"after the containers", stop, ending(started(Absent, Running, Absent, Exited), func(c []Container) {
			c[1].Hooks.PreStop = HookOver
		}), on(SignalSidecar, "side")},
		{"and no signal comes while the hook runs", stop, ending(started(Absent, Running, Absent, Exited), func(c []Container) {
			c[1].Hooks.PreStop = HookRunning
		}), waitOp(causes.Grace, "asked to stop")},
		{"then all is killed", stop, with(ending(started(Absent, Running, Absent, Running), func(c []Container) {
			c[1].Asked, c[1].Overdue = true, true
		}), func(s *Seen) { s.GraceOver = true }), on(KillAll, "")},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if got := Next(c.w, c.s); got != c.want {
				t.Errorf("got %+v, want %+v", got, c.want)
			}
		})
	}
}

func TestSidecarsStopInReverseOrder(t *testing.T) {
	s := alive()
	s.Signalled, s.Containers = true, []Container{
		{Name: "a", Role: spec.RoleSidecar, State: Running}, {Name: "b", Role: spec.RoleSidecar, State: Running}, {Name: "db", State: Exited},
	}
	want := func(kind Kind, name string) {
		t.Helper()
		if got := Next(Wanted{Order: OrderStop}, s); got.Kind != kind || got.Container != name {
			t.Fatalf("got %+v, want %s of %q", got, kind, name)
		}
	}
	want(SignalSidecar, "b")
	s.Containers[1].Asked = true
	want(Wait, "")
	s.GraceOver = true
	want(SignalSidecar, "a")
	s.GraceOver = false
	s.Containers[1].State = Exited
	want(SignalSidecar, "a")
}
