package step

import (
	"testing"

	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/spec/causes"
)

// three are a sidecar and two containers that run with the image of before.
func three() Seen {
	s := alive()
	s.Containers = []Container{
		{Name: "first", Role: spec.RoleInit, Passed: true, State: Absent},
		{Name: "side", Role: spec.RoleSidecar, Passed: true, State: Running, Image: true, Outdated: true},
		{Name: "db", State: Running, Image: true, Outdated: true},
		{Name: "log", State: Running},
	}
	return s
}

func TestAChangeInPlace(t *testing.T) {
	missing := waitOp(causes.ConfigMissing, "no ConfigMap etc")
	unwatched := waitOp(causes.Unwatched, "the member is guarded (nodeLoss: Replace), and this node's watchdog does not guard it yet; nothing of it is started before")
	no := Op{Kind: Nothing}
	const side, db, log = 1, 2, 3
	for _, c := range []struct {
		name   string
		change func(*Seen)
		want   Op
	}{
		{"the first in order is ended", func(*Seen) {}, Op{Kind: EndContainer, Container: "side"}},
		{"its image comes before", func(s *Seen) { s.Containers[side].Image = false }, Op{Kind: EnsureImage, Container: "side"}},
		{"and that of a later one", func(s *Seen) { s.Containers[db].Image = false }, Op{Kind: EnsureImage, Container: "db"}},
		{"none is ended while an image is pulled", func(s *Seen) { s.Containers[db].Image, s.Containers[db].Pulling = false, true }, no},
		{"which is said when it takes long", func(s *Seen) {
			s.Containers[side].Image, s.Containers[side].Pulling, s.Containers[side].PullText = false, true, "image x is being pulled"
		}, waitOp(causes.Pulling, "image x is being pulled")},
		{"nor while one cannot be had", func(s *Seen) {
			s.Containers[db].Image = false
			s.Held = []Held{{Op: EnsureImage, Container: "db", Cause: causes.ImageMissing, Message: "no such image"}}
		}, waitOp(causes.ImageMissing, "no such image")},
		{"the image of one that has the right one is not asked for", func(s *Seen) {
			s.Containers[side].Outdated, s.Containers[db].Outdated = false, false
		}, no},
		{"an image of one that has ended counts as well", func(s *Seen) {
			s.Containers[db] = Container{Name: "db", State: Exited, Outdated: true, Cause: "CrashLoop", Message: "exit 1"}
		}, waitOp("CrashLoop", "exit 1")},
		{"the second waits for the first", func(s *Seen) { s.Missing = "no ConfigMap etc" }, missing},
		{"whatever that waits for", func(s *Seen) {
			s.Ordered = Ordered{State: HookRunning, Container: "side"}
		}, waitOp(causes.NotReady, changeHooked)},
		{"a hook that runs in another one is in nobody's way", func(s *Seen) {
			s.Ordered = Ordered{State: HookRunning, Container: "db"}
		}, Op{Kind: EndContainer, Container: "side"}},
		{"nor is one in it that is only due", func(s *Seen) {
			s.Ordered = Ordered{State: HookDue, Container: "side"}
		}, Op{Kind: EndContainer, Container: "side"}},
		{"the second waits while the first ends", func(s *Seen) {
			s.Containers[side].Changing, s.Containers[side].Ending = true, true
		}, waitOp(causes.NotReady, "container side: "+changing)},
		{"and until it runs again", func(s *Seen) {
			s.Containers[side].Changing, s.Containers[side].Outdated, s.Containers[side].State, s.Containers[side].Message = true, false, Exited, "exit 1"
		}, waitOp("", "exit 1")},
		{"then it is ended", func(s *Seen) { s.Containers[side].Outdated = false }, Op{Kind: EndContainer, Container: "db"}},
		{"the second waits while a later one ends", func(s *Seen) {
			s.Containers[side].Outdated = false
			s.Containers[log].Changing, s.Containers[log].Ending = true, true
		}, waitOp(causes.NotReady, "container log: "+changing)},
		{"what the next needs is made before one is ended: volumes", func(s *Seen) { s.Volumes = false }, Op{Kind: EnsureVolumes}},
		{"a disk that is not there leaves it alone", func(s *Seen) {
			s.Volumes, s.Held = false, []Held{{Op: EnsureVolumes, Cause: causes.DiskMissing, Message: "no disk"}}
		}, waitOp(causes.DiskMissing, "no disk")},
		{"the network", func(s *Seen) { s.Network = false }, Op{Kind: AttachNetwork}},
		{"what nothing guards is not ended, for nothing would begin again", func(s *Seen) { s.Unwatched = true }, unwatched},
		{"a leader that steps down before a stop only is left alone", func(s *Seen) { s.Containers[side].Leads = true },
			Op{Kind: RefuseChange, Container: "side", Message: changeLeads}},
		{"a deadline that has passed comes first", func(s *Seen) { s.Expired = true }, Op{Kind: Expire}},
		{"nothing is done while the runtime is away", func(s *Seen) { s.Unknown = true },
			waitOp(causes.RuntimeUnavailable, "containerd does not answer; running members are not affected")},
		{"a postStart hook is begun all the same", func(s *Seen) { s.Containers[side].Hooks.PostStart = HookDue }, Op{Kind: RunPostStart, Container: "side"}},
		{"one that hangs does not hold it up", func(s *Seen) { s.Containers[side].Hooks.PostStart = HookRunning }, Op{Kind: EndContainer, Container: "side"}},
		{"bounds change while it runs", func(s *Seen) {
			s.Containers = s.Containers[log:]
			s.Containers[0].Unfit = true
		}, Op{Kind: ResizeContainer, Container: "log"}},
		{"before any is ended, for they may be refused", func(s *Seen) { s.Containers[log].Unfit = true }, Op{Kind: ResizeContainer, Container: "log"}},
		{"one that is ended anyway begins with its bounds", func(s *Seen) { s.Containers[side].Unfit, s.Containers[db].Unfit = true, true },
			Op{Kind: EndContainer, Container: "side"}},
		{"bounds of one that has ended hold up nothing", func(s *Seen) {
			s.Containers[log] = Container{Name: "log", State: Exited, Unfit: true, Cause: "CrashLoop"}
		}, Op{Kind: EndContainer, Container: "side"}},
		{"an init container is as it was", func(s *Seen) { s.Containers[0].Outdated = true }, Op{Kind: EndContainer, Container: "side"}},
		{"one that was created and never started is made anew", func(s *Seen) { s.Containers[side].State = Created }, Op{Kind: RemoveContainer, Container: "side"}},
		{"also for its bounds", func(s *Seen) {
			s.Containers = []Container{{Name: "db", State: Created, Image: true, Unfit: true}}
		}, Op{Kind: RemoveContainer, Container: "db"}},
		{"its preStop hook comes before the signal", func(s *Seen) {
			x := &s.Containers[side]
			x.Changing, x.Ending, x.Hooks.PreStop = true, true, HookDue
		}, Op{Kind: RunPreStop, Container: "side"}},
		{"when its grace is over it is killed", func(s *Seen) {
			x := &s.Containers[side]
			x.Changing, x.Ending, x.Overdue = true, true, true
		}, Op{Kind: KillContainer, Container: "side"}},
		{"an end that was begun goes on when the order was taken back", func(s *Seen) {
			x := &s.Containers[side]
			x.Changing, x.Ending, x.Outdated = true, true, false
		}, waitOp(causes.NotReady, "container side: "+changing)},
		{"and under an agent that did not begin it", func(s *Seen) {
			s.Containers[side].Changing, s.Containers[side].Outdated = true, false
		}, Op{Kind: EndContainer, Container: "side"}},
		{"it begins again as soon as it has ended", func(s *Seen) {
			s.Containers[side] = Container{Name: "side", Role: spec.RoleSidecar, Passed: true, State: Exited, Image: true, Outdated: true, Changing: true, Due: true}
		}, Op{Kind: RemoveContainer, Container: "side"}},
		{"by the image that is there", func(s *Seen) {
			s.Containers[side] = Container{Name: "side", Role: spec.RoleSidecar, Passed: true, State: Absent, Image: true, Changing: true}
		}, Op{Kind: CreateContainer, Container: "side"}},
	} {
		s := three()
		c.change(&s)
		if got := Next(Wanted{Order: OrderRun}, s); got != c.want {
			t.Errorf("%s: got %+v, want %+v", c.name, got, c.want)
		}
	}
	if got := Next(Wanted{Order: OrderStop}, three()); got.Kind != SignalStop {
		t.Errorf("a stop is no change any more: got %+v", got)
	}
}
