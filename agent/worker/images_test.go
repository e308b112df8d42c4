package worker

import (
	"slices"
	"testing"
	"time"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
)

func TestAWorkerNeedsTheImagesOfTheLifeThatIsOpenOrToBegin(t *testing.T) {
	scenario(t, func(t *testing.T, n *node) {
		want := func(when string, images ...string) {
			t.Helper()
			n.last()
			if got := n.w.Images(); !slices.Equal(slices.Sorted(slices.Values(got)), images) {
				t.Errorf("%s: got %q, want %q", when, got, images)
			}
		}
		other := func(l *records.Life) {
			l.Template.Spec.InitContainers = []spec.Container{{Name: "first", Image: "init:1"}}
			l.Template.Spec.Containers[0].Image = "new:1"
		}
		n.run()
		want("nothing is ordered")
		n.w.Tell(life(5, records.GoalRun))
		n.wantReady()
		image := life(5, records.GoalRun).Template.Spec.Containers[0].Image
		want("it runs", image)
		n.kill()
		n.run()
		want("after a restart of the agent", image)
		n.w.Tell(with(life(6, records.GoalRun), other))
		if got := n.w.Images(); !slices.Contains(got, "new:1") || !slices.Contains(got, "init:1") {
			t.Errorf("the next life needs %q", got)
		}
		time.Sleep(5 * time.Minute)
		n.w.Tell(with(life(6, records.GoalStop), other))
		time.Sleep(5 * time.Minute)
		n.wantStopped(tok(6))
		want("it is over")
	})
}
