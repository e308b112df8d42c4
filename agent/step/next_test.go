package step

import (
	"testing"

	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/spec/causes"
)

// alive is a member whose one container runs and to which nothing is to be done.
func alive() Seen {
	return Seen{
		Standing: Open, Volumes: true, Sandbox: true, Network: true, Files: true,
		Containers: []Container{{Name: "db", State: Running, Image: true}},
	}
}

// gone is an identity of which nothing is left.
func gone(standing Standing) Seen {
	return Seen{
		Standing: standing, Empty: true, Removed: true, Detached: true, Unmounted: true, Unpinned: true,
		Containers: []Container{{Name: "db", State: Absent}},
	}
}

func with(s Seen, change func(*Seen)) Seen {
	change(&s)
	return s
}

func ended(state State, due, empty bool) Seen {
	s := alive()
	s.Containers = []Container{{Name: "db", State: state, Due: due, Cause: "CrashLoop", Message: "exit 1"}}
	s.Empty = empty
	return s
}

func TestNext(t *testing.T) {
	run, stop, none := Wanted{Order: OrderRun}, Wanted{Order: OrderStop}, Wanted{}
	unwatched := waitOp(causes.Unwatched, "the member is guarded (nodeLoss: Replace), and this node's watchdog does not guard it yet; nothing of it is started before")
	absent := func(change func(*Seen)) Seen { return with(gone(Open), change) }
	cases := []struct {
		name string
		w    Wanted
		s    Seen
		want Op
	}{
		{"a fresh life begins by opening its token", run, gone(Fresh), Op{Kind: OpenToken}},
		{"a life assigned for another boot is refused", Wanted{Order: OrderRun, OtherBoot: true}, gone(Fresh), Op{Kind: Refuse}},
		{"a life assigned before a restore that this node has heard of is refused", Wanted{Order: OrderRun, Restored: true}, gone(Fresh), Op{Kind: Refuse}},
		{"one that was open then goes on", Wanted{Order: OrderRun, Restored: true}, alive(), Op{Kind: Nothing}},
		{"an open life assigned for another boot is not refused but goes on", Wanted{Order: OrderRun, OtherBoot: true}, alive(), Op{Kind: Nothing}},
		{"nothing is opened while processes of an earlier life are there", run, with(gone(Fresh), func(s *Seen) { s.Empty = false }), Op{Kind: KillAll}},
		{"nothing is opened while a link of an earlier life is there", run, with(gone(Fresh), func(s *Seen) { s.Detached = false }), Op{Kind: Detach}},
		{"nothing is opened beside what the ledger does not know", run, with(gone(Fresh), func(s *Seen) { s.Strange, s.Empty = "a stranger", false }), waitOp(causes.Stray, "a stranger")},
		{"a fresh life that is to stop is closed without being opened", stop, gone(Fresh), Op{Kind: CloseToken}},
		{"a fresh life without order is left alone", none, gone(Fresh), Op{Kind: Nothing}},

		{"a guarded life that would have missed its deadline already does not begin", run, with(gone(Fresh), func(s *Seen) { s.Unconfirmed = true }), waitOp(causes.Unconfirmed, "the member is guarded (nodeLoss: Replace), and no server has confirmed this node within its bound; it starts when one does")},
		{"nor does one that no watchdog would end", run, with(gone(Fresh), func(s *Seen) { s.Unwatched = true }), unwatched},
		{"one that is unconfirmed is cleared away for all the same", run, with(gone(Fresh), func(s *Seen) { s.Unconfirmed, s.Detached = true, false }), Op{Kind: Detach}},
		{"and refused, and stopped", stop, with(gone(Fresh), func(s *Seen) { s.Unconfirmed, s.Unwatched = true, true }), Op{Kind: CloseToken}},
		{"an unwatched life is prepared", run, absent(func(s *Seen) { s.Unwatched = true }), Op{Kind: EnsureImage, Container: "db"}},
		{"but no container of it is created", run, with(ended(Absent, true, true), func(s *Seen) { s.Unwatched, s.Containers[0].Image = true, true }), unwatched},
		{"nor started", run, with(ended(Created, true, true), func(s *Seen) { s.Unwatched = true }), unwatched},
		{"what runs of an unwatched life goes on", run, with(alive(), func(s *Seen) { s.Unwatched = true }), Op{Kind: Nothing}},
		{"a missed deadline ends a life by order to run", run, with(alive(), func(s *Seen) { s.Expired = true }), Op{Kind: Expire}},
		{"without any order", none, with(alive(), func(s *Seen) { s.Expired = true }), Op{Kind: Expire}},
		{"in the grace of a stop", stop, with(alive(), func(s *Seen) { s.Expired, s.Signalled = true, true }), Op{Kind: Expire}},
		{"and while the runtime is away", run, with(alive(), func(s *Seen) { s.Expired, s.Unknown = true, true }), Op{Kind: Expire}},
		{"a deadline that cannot be closed is tried again", run, with(alive(), func(s *Seen) {
			s.Expired, s.Held = true, []Held{{Expire, "", "LedgerError", "full"}}
		}), waitOp("LedgerError", "full")},
		{"of a closed token no deadline counts", run, with(gone(Closed), func(s *Seen) { s.Expired = true }), Op{Kind: ReportOver}},
		{"nor of one that was not opened", run, with(gone(Fresh), func(s *Seen) { s.Expired = true }), Op{Kind: OpenToken}},

		{"a missing ConfigMap is waited for", run, absent(func(s *Seen) { s.Missing = "no ConfigMap etc" }), waitOp(causes.ConfigMissing, "no ConfigMap etc")},
		{"the image comes first", run, gone(Open), Op{Kind: EnsureImage, Container: "db"}},
		{"then the volumes", run, absent(func(s *Seen) { s.Containers[0].Image = true }), Op{Kind: EnsureVolumes}},
		{"then the sandbox", run, absent(func(s *Seen) { s.Containers[0].Image, s.Volumes = true, true }), Op{Kind: EnsureSandbox}},
		{"then the network", run, absent(func(s *Seen) { s.Containers[0].Image, s.Volumes, s.Sandbox = true, true, true }), Op{Kind: AttachNetwork}},
		{"then the files", run, absent(func(s *Seen) { s.Containers[0].Image, s.Volumes, s.Sandbox, s.Network = true, true, true, true }), Op{Kind: WriteFiles}},
		{"then the container is created", run, with(ended(Absent, true, true), func(s *Seen) { s.Containers[0].Image = true }), Op{Kind: CreateContainer, Container: "db"}},
		{"then it is started", run, ended(Created, true, true), Op{Kind: StartContainer, Container: "db"}},
		{"a created container is not started without network", run, with(ended(Created, true, true), func(s *Seen) { s.Network = false }), Op{Kind: AttachNetwork}},
		{"nothing is started while processes are left", run, ended(Created, true, false), waitOp(causes.ProcessLeft, "processes of this member are still there although no container runs")},
		{"a start that a crash broke off goes on", run, with(ended(Created, true, false), func(s *Seen) { s.Containers[0].Loaded = true }), Op{Kind: StartContainer, Container: "db"}},
		{"but not beside a container that is lost", run, with(ended(Created, true, false), func(s *Seen) {
			s.Containers[0].Loaded = true
			s.Containers = append(s.Containers, Container{Name: "side", State: Lost, Due: true})
		}), waitOp(causes.ProcessLeft, "processes of this member are still there although no container runs")},
		{"nor is what ended a start that was broken off", run, with(ended(Created, true, false), func(s *Seen) {
			s.Containers = append(s.Containers, Container{Name: "side", State: Exited, Loaded: true})
		}), Op{Kind: KillAll}},
		{"what an ended container left is killed at once, not after its back-off", run, with(ended(Exited, false, false), func(s *Seen) {
			s.Containers[0].Left = true
		}), Op{Kind: KillLeft, Container: "db"}},
		{"also beside one that runs, which is left alone", run, with(ended(Exited, true, false), func(s *Seen) {
			s.Containers[0].Left = true
			s.Containers = append(s.Containers, Container{Name: "side", State: Running})
		}), Op{Kind: KillLeft, Container: "db"}},
		{"what an init container left that has passed, too", run, with(ended(Exited, false, false), func(s *Seen) {
			s.Containers[0].Left, s.Containers[0].Role, s.Containers[0].Passed = true, spec.RoleInit, true
		}), Op{Kind: KillLeft, Container: "db"}},
		{"what does not die is tried again after its back-off", run, with(ended(Exited, true, false), func(s *Seen) {
			s.Containers[0].Left, s.Held = true, []Held{{KillLeft, "db", "OperationFailed", "hangs"}}
		}), waitOp("OperationFailed", "hangs")},
		{"a running life needs nothing", run, alive(), Op{Kind: Nothing}},
		{"a running life gets its files renewed", run, with(alive(), func(s *Seen) { s.Files = false }), Op{Kind: WriteFiles}},
		{"a running life gets its network repaired", run, with(alive(), func(s *Seen) { s.Network = false }), Op{Kind: AttachNetwork}},
		{"volumes of a running life are not touched", run, with(alive(), func(s *Seen) { s.Volumes = false }), Op{Kind: Nothing}},
		{"a missing ConfigMap does not disturb what runs", run, with(alive(), func(s *Seen) { s.Missing = "no ConfigMap etc" }), Op{Kind: Nothing}},
		{"while the runtime is away nothing is done", run, with(alive(), func(s *Seen) { s.Unknown, s.Network = true, false }), waitOp(causes.RuntimeUnavailable, "containerd does not answer; running members are not affected")},
		{"an operation in its back-off waits with its cause", run, with(gone(Open), func(s *Seen) { s.Held = []Held{{EnsureImage, "db", "ImageMissing", "no etcd:1"}} }), waitOp("ImageMissing", "no etcd:1")},
		{"the back-off of another operation holds up nothing", run, with(gone(Open), func(s *Seen) { s.Held = []Held{{StartContainer, "db", "StartError", "no"}} }), Op{Kind: EnsureImage, Container: "db"}},
		{"nor does that of another container", run, with(gone(Open), func(s *Seen) { s.Held = []Held{{EnsureImage, "side", "ImageMissing", "no"}} }), Op{Kind: EnsureImage, Container: "db"}},
		{"a repair in its back-off waits with its cause", run, with(alive(), func(s *Seen) { s.Files, s.Held = false, []Held{{WriteFiles, "", "FilesError", "full"}} }), waitOp("FilesError", "full")},
		{"a repair is not held up by a container in its back-off", run, with(alive(), func(s *Seen) {
			s.Files, s.Containers = false, []Container{{Name: "a", State: Exited, Cause: "CrashLoop"}, {Name: "c", State: Running}}
		}), Op{Kind: WriteFiles}},
		{"of a repair and a container that both wait the container is told", run, with(alive(), func(s *Seen) {
			s.Files, s.Held = false, []Held{{WriteFiles, "", "FilesError", "full"}}
			s.Containers = []Container{{Name: "a", State: Exited, Cause: "CrashLoop"}, {Name: "c", State: Running}}
		}), waitOp("CrashLoop", "")},
		{"of two containers that wait the first is told", run, with(alive(), func(s *Seen) {
			s.Empty, s.Containers = true, []Container{{Name: "a", State: Exited, Cause: "CrashLoop"}, {Name: "b", State: Exited, Cause: "OOMKilled"}}
		}), waitOp("CrashLoop", "")},

		{"a container that ended waits for its back-off", run, ended(Exited, false, true), waitOp("CrashLoop", "exit 1")},
		{"then it is removed before it is made anew", run, ended(Exited, true, true), Op{Kind: RemoveContainer, Container: "db"}},
		{"what an ended container left behind is killed first", run, ended(Exited, true, false), Op{Kind: KillAll}},
		{"what a lost container left behind is not killed", run, ended(Lost, true, false), waitOp(causes.ProcessLeft, "the runtime lost track of a container whose processes still run; restart the member to replace them")},
		{"what a start that a crash broke off left behind is killed", run, with(ended(Lost, true, false), func(s *Seen) { s.Containers[0].Unborn = true }), Op{Kind: KillAll}},
		{"but not beside one that ran and is lost", run, with(ended(Lost, true, false), func(s *Seen) {
			s.Containers[0].Unborn = true
			s.Containers = append(s.Containers, Container{Name: "side", State: Lost, Due: true})
		}), waitOp(causes.ProcessLeft, "the runtime lost track of a container whose processes still run; restart the member to replace them")},
		{"a lost container without processes is made anew", run, ended(Lost, true, true), Op{Kind: RemoveContainer, Container: "db"}},
		{"without order an ended container stays as it is", none, ended(Exited, true, true), Op{Kind: Nothing}},
		{"one container in its back-off does not hold up another", run, with(alive(), func(s *Seen) {
			s.Containers = []Container{{Name: "a", State: Exited, Cause: "CrashLoop"}, {Name: "b", State: Created}, {Name: "c", State: Running}}
		}), Op{Kind: StartContainer, Container: "b"}},
		{"an ended container beside a running one is removed although processes are there", run, with(alive(), func(s *Seen) {
			s.Containers = []Container{{Name: "a", State: Exited, Due: true}, {Name: "c", State: Running}}
		}), Op{Kind: RemoveContainer, Container: "a"}},
		{"an ended container does not kill a lost one that lives", run, with(alive(), func(s *Seen) {
			s.Containers = []Container{{Name: "a", State: Exited, Due: true}, {Name: "c", State: Lost}}
		}), waitOp(causes.ProcessLeft, "the runtime lost track of a container whose processes still run; restart the member to replace them")},

		{"an unhealthy container is asked to end", run, with(alive(), func(s *Seen) { s.Containers[0].Unhealthy = true }), Op{Kind: EndContainer, Container: "db"}},
		{"it has its grace", run, with(alive(), func(s *Seen) {
			s.Containers[0] = Container{Name: "db", State: Running, Unhealthy: true, Ending: true, Message: "probe"}
		}), waitOp(causes.Unhealthy, "probe")},
		{"past its grace it is killed", run, with(alive(), func(s *Seen) {
			s.Containers[0] = Container{Name: "db", State: Running, Unhealthy: true, Ending: true, Overdue: true}
		}), Op{Kind: KillContainer, Container: "db"}},

		{"a postStart hook is begun when its container runs", run, hooked(HookDue, HookNone), Op{Kind: RunPostStart, Container: "db"}},
		{"and once", run, hooked(HookRunning, HookNone), Op{Kind: Nothing}},
		{"no other container starts before it has returned", run, with(hooked(HookRunning, HookDue), func(s *Seen) {
			s.Containers = append(s.Containers, Container{Name: "side", State: Created})
		}), waitOp(causes.NotReady, "container db: its postStart hook has not returned; the next container starts when it has")},
		{"but its image is fetched", run, with(hooked(HookRunning, HookDue), func(s *Seen) {
			s.Containers = append(s.Containers, Container{Name: "side", State: Absent})
		}), Op{Kind: EnsureImage, Container: "side"}},
		{"without order no hook is begun", none, hooked(HookDue, HookDue), Op{Kind: Nothing}},
		{"a running life does not run its preStop hook", run, hooked(HookNone, HookDue), Op{Kind: Nothing}},
		{"of what failed after its start the end begins", run, unhealthy(Container{Cause: causes.FailedPostStartHook}), Op{Kind: EndContainer, Container: "db"}},
		{"then comes its preStop hook", run, unhealthy(Container{Ending: true, Hooks: Hooks{PreStop: HookDue}}), Op{Kind: RunPreStop, Container: "db"}},
		{"which has its time", run, unhealthy(Container{Ending: true, Hooks: Hooks{PreStop: HookRunning}}), waitOp(causes.Unhealthy, "probe")},
		{"also when its postStart hook failed", run, unhealthy(Container{Ending: true, Cause: causes.FailedPostStartHook}), waitOp(causes.FailedPostStartHook, "probe")},
		{"then the signal, before it is killed", run, unhealthy(Container{Ending: true, Overdue: true, Hooks: Hooks{PreStop: HookOver}}), Op{Kind: SignalContainer, Container: "db"}},

		{"a stop with a hook begins like every other", stop, hooked(HookDue, HookDue), Op{Kind: SignalStop}},
		{"then comes the hook", stop, with(hooked(HookNone, HookDue), signalled), Op{Kind: RunPreStop, Container: "db"}},
		{"which has its time, too", stop, with(hooked(HookNone, HookRunning), signalled), waitOp(causes.Grace, "asked to stop")},
		{"then the signal", stop, with(hooked(HookNone, HookOver), signalled), Op{Kind: SignalContainer, Container: "db"}},
		{"also when the grace is over", stop, with(with(hooked(HookNone, HookOver), signalled), graceOver), Op{Kind: SignalContainer, Container: "db"}},
		{"but nothing waits for one that fails then", stop, with(with(hooked(HookNone, HookOver), signalled), func(s *Seen) {
			s.GraceOver, s.Held = true, []Held{{SignalContainer, "db", "StopError", "no"}}
		}), Op{Kind: KillAll}},
		{"a container that ended has no hook to run", stop, with(hooked(HookNone, HookDue), func(s *Seen) {
			s.Signalled, s.Containers[0].State = true, Exited
			s.Containers = append(s.Containers, Container{Name: "side", State: Running})
		}), waitOp(causes.Grace, "asked to stop")},
		{"a missed deadline waits for no hook", stop, with(hooked(HookNone, HookRunning), func(s *Seen) { s.Signalled, s.Expired = true, true }), Op{Kind: Expire}},

		{"without order a running life is left alone", none, alive(), Op{Kind: Nothing}},
		{"a stop begins with the signal", stop, alive(), Op{Kind: SignalStop}},
		{"then the grace is waited for", stop, with(alive(), func(s *Seen) { s.Signalled = true }), waitOp(causes.Grace, "asked to stop")},
		{"then all is killed", stop, with(alive(), func(s *Seen) { s.Signalled, s.GraceOver = true, true }), Op{Kind: KillAll}},
		{"a stop gives no grace to what the host shows to be gone", stop, with(alive(), func(s *Seen) { s.Empty = true }), Op{Kind: RemoveContainers}},
		{"a stop kills what a container that ended left behind", stop, ended(Exited, false, false), Op{Kind: KillAll}},
		{"then the containers are removed", stop, ended(Exited, false, true), Op{Kind: RemoveContainers}},
		{"then the link", stop, with(gone(Open), func(s *Seen) { s.Detached, s.Unmounted, s.Unpinned = false, false, false }), Op{Kind: Detach}},
		{"then the scratch space", stop, with(gone(Open), func(s *Seen) { s.Unmounted, s.Unpinned = false, false }), Op{Kind: RemoveScratch}},
		{"then the sandbox", stop, with(gone(Open), func(s *Seen) { s.Unpinned = false }), Op{Kind: RemoveSandbox}},
		{"then the token is closed", stop, gone(Open), Op{Kind: CloseToken}},
		{"a stop waits while the runtime is away", stop, with(alive(), func(s *Seen) { s.Unknown = true }), waitOp(causes.RuntimeUnavailable, "containerd does not answer; running members are not affected")},

		{"a closed token is told", none, gone(Closed), Op{Kind: ReportOver}},
		{"what could not be told is told after its back-off", none, with(gone(Closed), func(s *Seen) { s.Held = []Held{{ReportOver, "", "StopError", "full"}} }), waitOp("StopError", "full")},
		{"a closed token is told only when nothing is left", none, with(gone(Closed), func(s *Seen) { s.Unmounted = false }), Op{Kind: RemoveScratch}},
		{"what runs of a closed token is killed at once", none, with(gone(Closed), func(s *Seen) { s.Empty, s.Containers[0].State = false, Running }), Op{Kind: KillAll}},
		{"a closed token wanted again is told, not started", run, gone(Closed), Op{Kind: ReportOver}},
		{"a told end needs nothing", run, with(gone(Closed), func(s *Seen) { s.Told = true }), Op{Kind: Nothing}},
		{"a told end is not looked at again", run, Seen{Standing: Closed, Told: true}, Op{Kind: Nothing}},
		{"a token older than the newest is told when no process is left", run, Seen{Standing: Spent, Empty: true}, Op{Kind: ReportOver}},
		{"and not before, and they are left alone", run, Seen{Standing: Spent},
			waitOp(causes.ProcessLeft, "processes of the member are left here, although it has no life here; its end is reported when they are gone")},
		{"nor is it looked at again", run, Seen{Standing: Spent, Told: true}, Op{Kind: Nothing}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if got := Next(c.w, c.s); got != c.want {
				t.Errorf("got %+v, want %+v", got, c.want)
			}
		})
	}
}

// hooked is a member whose one container runs and has these hooks.
func hooked(postStart, preStop HookState) Seen {
	s := alive()
	s.Containers[0].Hooks = Hooks{PostStart: postStart, PreStop: preStop}
	return s
}

// unhealthy is one whose container was given up.
func unhealthy(c Container) Seen {
	s := alive()
	c.Name, c.State, c.Unhealthy, c.Message = "db", Running, true, "probe"
	s.Containers = []Container{c}
	return s
}

func signalled(s *Seen) { s.Signalled = true }
func graceOver(s *Seen) { s.GraceOver = true }
