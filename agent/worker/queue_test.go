package worker

import (
	"testing"

	"github.com/stead-project/stead/spec"
)

func TestAContainerWaitsForAPlaceAndAStopDoesNot(t *testing.T) {
	scenario(t, func(t *testing.T, n *node) {
		n.starts = make(chan struct{}, 1)
		n.starts <- struct{}{} // another member starts, and takes its time
		n.run()
		n.w.Tell(life(5, spec.GoalRun))
		n.wantStarts(tok(5), 0)
		n.w.Tell(life(5, spec.GoalStop))
		n.wantStopped(tok(5))
		n.wantStarts(tok(5), 0)
		n.w.Tell(life(6, spec.GoalRun))
		n.wantStarts(tok(6), 0)
		<-n.starts
		n.wantReady()
		n.wantStarts(tok(6), 1)
		if len(n.starts) != 0 {
			t.Error("it keeps the place")
		}
	})
}
