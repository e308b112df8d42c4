package plan

import (
	"strings"
	"testing"

	"github.com/stead-project/stead/spec/causes"
)

func TestNothingIsDoneForAnOrphanedSet(t *testing.T) {
	check(t, []rule{
		{name: "all is well", world: "ordered 2 orphaned n1 0:ready 1:ready",
			want: "|"},
		{name: "one whose life is over", world: "ordered 2 orphaned n1 0:ready 1:over",
			want: "| 1:Orphaned"},
		{name: "in parallel", world: "parallel 2 orphaned n1 0:failed 1:stopped",
			want: "| 0:Orphaned 1:Orphaned"},
		{name: "one that never had a life", world: "ordered 2 orphaned n1 0:ready",
			want: "| 1:Orphaned"},
		{name: "surplus", world: "ordered 1 orphaned n1 0:ready 1:ready",
			want: "|"},
		{name: "surplus that is over is not forgotten, nor its address freed", world: "ordered 1 orphaned n1 0:ready 1:stopped",
			want: "| 1:Orphaned"},
		{name: "what was told to stop before", world: "ordered 1 orphaned n1 0:ready 1:stopping",
			want: "| 1:Stopping"},
		{name: "an update", world: "ordered 2 orphaned n1 update=h2 current=h1 0:ready 1:ready",
			want: "|"},
		{name: "a broken member off its target", world: "ordered 2 orphaned n1 update=h2 current=h1 0:ready 1:loop",
			want: "| 1:CrashLoop"},
		{name: "Recreate", world: "ordered 2 orphaned Recreate n1 update=h2 current=h1 0:ready 1:ready",
			want: "|"},
		{name: "a restart by hand", world: "ordered 2 orphaned n1 0:ready 1:ready", change: asked(1),
			want: "|"},
		{name: "revisions beyond the limit", world: "ordered 1 orphaned history=0 n1 update=h3 current=h3 0:ready/h3",
			want: "|"},
		{name: "a fate that was decided before", world: "ordered 1 orphaned volumes whenScaled=Delete n1 0:ready 1:volume=Delete",
			want: "|"},
		{name: "a volume that is gone", world: "ordered 1 orphaned volumes n1 0:ready 1:volume=Reclaiming+Erased",
			want: "|"},
		{name: "volumes under Delete", world: "ordered 1 orphaned volumes whenScaled=Delete whenDeleted=Delete n1 0:ready 1:ready",
			want: "|"},
		{name: "a volume that is wanted again", world: "ordered 1 orphaned volumes n1 0:ready=Delete",
			want: "|"},
		{name: "what is seen is marked", world: "ordered 1 orphaned fresh n1 0:ready/h1?",
			want: "ready=0 bootstrapped |"},
		{name: "a deletion takes it", world: "ordered 2 orphaned deleting n1 0:ready 1:ready",
			want: "stop=1/Delete | 1:Stopping 0:WaitingForSuccessor"},
	})
}

func TestAnOrphanedSetSaysSo(t *testing.T) {
	for line, want := range map[string]struct{ available, degraded string }{
		"ordered 2 orphaned n1 update=h2 current=h1 0:ready 1:ready": {"True", "False"},
		"ordered 2 orphaned n1 update=h2 current=h1 0:ready 1:over":  {"False", "True"},
	} {
		p := Next(world(t, line))
		c := p.Status.Conditions
		if c[0].Status != want.available || c[3].Status != want.degraded {
			t.Errorf("%s: got %+v, want Available %s, Degraded %s", line, c, want.available, want.degraded)
		}
		if c[1].Status != "False" || c[1].Reason != string(causes.BlockedOrphaned) || !strings.Contains(c[1].Message, "apply the set again") {
			t.Errorf("%s: got %+v, want what it is and what next", line, c[1])
		}
		if p.Clock || p.Wake != 0 || p.Status.CurrentRevision != "h1" {
			t.Errorf("%s: clock %v, wake %v, current %s; want that no time runs and nothing completes", line, p.Clock, p.Wake, p.Status.CurrentRevision)
		}
	}
}
