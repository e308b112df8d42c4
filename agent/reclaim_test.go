package agent

import (
	"context"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stead-project/stead/agent/runtime"
	"github.com/stead-project/stead/agent/runtime/fakert"
	"github.com/stead-project/stead/proto"
	"github.com/stead-project/stead/proto/wire"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/spec/causes"
	"github.com/stead-project/stead/spec/scalar"
)

const vol = records.VolumeID("0123456789abcdef0123456789abcdef")

var giveUp = records.VolumeOrder{
	ID: db0, Claim: "data", Volume: vol, Number: 1, Class: "local", Fate: records.FateReclaiming,
	Trash: scalar.Duration{Duration: time.Hour},
}

func ordered(t *testing.T, rev int64, orders ...records.VolumeOrder) *proto.ToNode {
	docs, err := wire.Documents(orders)
	must(t, err)
	return &proto.ToNode{Kind: &proto.ToNode_Wanted{Wanted: &proto.Wanted{
		Sequence: wire.Sequence(spec.Sequence{Epoch: 1, Rev: rev}), VolumesJson: docs,
	}}}
}

// said is the state that was last told of the volume; the trash's content counts.
func (n *node) said() (last records.VolumeReport) {
	n.t.Helper()
	synctest.Wait()
	n.script.mu.Lock()
	defer n.script.mu.Unlock()
	for _, m := range n.script.trash {
		reports, err := wire.ToDocuments[records.VolumeReport](m.GetReportsJson())
		must(n.t, err)
		if m.GetFull() {
			last = records.VolumeReport{}
		}
		for _, r := range reports {
			if r.Volume == vol {
				last = r
			}
		}
	}
	return last
}

func (n *node) wantSaid(state records.VolumeState, cause causes.Cause) {
	n.t.Helper()
	time.Sleep(2 * time.Minute) // of the bubble: every try comes
	if got := n.said(); got.State != state || got.Cause != cause {
		n.t.Fatalf("said %+v; want %s %s", got, state, cause)
	}
}

func TestAVolumeIsGivenUpOnlyWhenNothingOfItsMemberIsLeft(t *testing.T) {
	box(t, func(t *testing.T, n *node) {
		life := n.life(5, records.GoalRun)
		life.Member.Volumes = []records.MemberVolume{{Claim: "data", ID: vol, Number: 1, Class: "local"}}
		life.FreshVolumes = map[spec.ClaimName]string{"data": records.VolumeFirst}
		n.script.say(wanted(10, life))
		n.wantReady(tok(5))
		n.script.say(ordered(t, 11, giveUp)) // by a server that is wrong
		n.wantSaid(records.VolumeRefused, "VolumeOccupied")
		if !slices.Contains(n.host.Volumes(), vol) {
			t.Fatal("the volume of a running member was taken away")
		}
		life.Member.Goal = records.GoalStop
		n.script.say(wanted(12, life))
		n.wantStopped(tok(5))
		n.script.say(ordered(t, 13, giveUp))
		n.wantSaid(records.VolumeTrashed, "")
		if slices.Contains(n.host.Volumes(), vol) {
			t.Error("it stands in its place still")
		}
		n.kill()
		n.run()
		n.wantSaid(records.VolumeTrashed, "") // told again in the next session
	})
}

func TestAVolumeOfALifeBetweenTwoStartsIsNotGivenUp(t *testing.T) {
	box(t, func(t *testing.T, n *node) {
		n.host.OnStart(func(runtime.Container) fakert.Behaviour { return fakert.Behaviour{Exits: true, Code: 1} })
		n.host.PutVolume(db0, "data", vol)
		n.script.say(wanted(10, n.life(5, records.GoalRun)))
		time.Sleep(time.Hour) // it starts only now and then
		n.script.say(ordered(t, 11, giveUp))
		synctest.Wait()
		if got := n.said(); got.State != records.VolumeRefused || !slices.Contains(n.host.Volumes(), vol) {
			t.Fatalf("said %+v; want it refused", got)
		}
	})
}

func TestAVolumeIsNotGivenUpWhileAProcessNobodyKnowsRuns(t *testing.T) {
	box(t, func(t *testing.T, n *node) {
		n.host.PutVolume(db0, "data", vol)
		_, err := n.host.EnsureSandbox(t.Context(), runtime.Sandbox{ID: db0, Token: tok(5), Hostname: "db-0"})
		must(t, err)
		n.host.AddImage("img:1")
		must(t, n.host.Create(t.Context(), runtime.Container{ID: cid, Token: tok(5), Image: "img:1"}))
		must(t, n.host.Start(t.Context(), cid))
		n.script.say(ordered(t, 11, giveUp))
		n.wantSaid(records.VolumeRefused, "VolumeOccupied")
	})
}

func TestTheTrashIsErasedWhenItIsForgottenAndItsTimeIsOver(t *testing.T) {
	box(t, func(t *testing.T, n *node) {
		n.host.PutVolume(db0, "data", vol)
		n.script.say(ordered(t, 10, giveUp))
		n.wantSaid(records.VolumeTrashed, "")
		time.Sleep(2 * time.Hour)
		n.wantSaid(records.VolumeTrashed, "") // its record stands: it is waited for
		gone := giveUp
		gone.Fate, gone.Trash = records.FateGone, scalar.Duration{}
		n.script.say(ordered(t, 11, gone))
		n.wantSaid(records.VolumeErased, "")

		n.host.PutVolume(db0, "data", vol)
		n.script.say(ordered(t, 12, giveUp))
		n.wantSaid(records.VolumeTrashed, "")
		n.script.say(ordered(t, 13, gone))
		n.wantSaid(records.VolumeTrashed, "") // its time is not over
		time.Sleep(time.Hour)
		n.wantSaid(records.VolumeErased, "")
	})
}

func TestAVolumeThatIsNotThereIsGoneOnlyIfNobodyUsedIt(t *testing.T) {
	box(t, func(t *testing.T, n *node) {
		n.script.say(ordered(t, 10, giveUp))
		n.wantSaid(records.VolumeRefused, "VolumeMissing")
		unused := giveUp
		unused.Unused = true
		n.script.say(ordered(t, 11, unused))
		n.wantSaid(records.VolumeAbsent, "")
		n.host.PutVolume(db0, "data", "anothers")
		n.script.say(ordered(t, 12, giveUp))
		n.wantSaid(records.VolumeRefused, "VolumeForeign")
	})
}

func TestAVolumeIsBroughtBackOnlyWhenNothingOfItsMemberIsLeft(t *testing.T) {
	box(t, func(t *testing.T, n *node) {
		n.host.PutVolume(db0, "data", vol)
		n.script.say(ordered(t, 10, giveUp))
		n.wantSaid(records.VolumeTrashed, "")
		n.script.say(wanted(11, n.life(5, records.GoalRun)))
		n.wantReady(tok(5))
		back := giveUp
		back.Fate, back.Turn, back.Trash = records.FateRestoring, 1, scalar.Duration{}
		n.script.say(ordered(t, 12, back)) // by a server that is wrong
		n.wantSaid(records.VolumeRefused, "VolumeOccupied")
		if slices.Contains(n.host.Volumes(), vol) {
			t.Fatal("it was brought back beside a running member")
		}
		n.script.say(wanted(13, n.life(5, records.GoalStop)))
		n.wantStopped(tok(5))
		n.script.say(ordered(t, 14, back))
		n.wantSaid(records.VolumeFound, "")
		if got := n.said(); got.Turn != 1 || !slices.Contains(n.host.Volumes(), vol) {
			t.Errorf("said %+v; want the turn of the order, and the volume in its place", got)
		}
	})
}

// A volume that is there is never taken for lost, nor is one whose disk is away.
func TestOnlyAVolumeThatIsNotThereIsLost(t *testing.T) {
	box(t, func(t *testing.T, n *node) {
		lost := giveUp
		lost.Fate = records.FateLost
		n.host.PutVolume(db0, "data", vol)
		n.script.say(ordered(t, 10, lost))
		n.wantSaid(records.VolumeFound, "")
		if !slices.Contains(n.host.Volumes(), vol) {
			t.Fatal("what is there was touched")
		}
		lost.Turn = 1
		n.host.DropVolumes(db0, "data")
		n.script.say(ordered(t, 11, lost))
		n.wantSaid(records.VolumeAbsent, "")
		lost.Turn = 2
		n.host.PutVolume(db0, "data", "anothers")
		n.script.say(ordered(t, 12, lost))
		n.wantSaid(records.VolumeRefused, "VolumeForeign")
	})
}

func TestAVolumeThatIsInNeitherPlaceDoesNotComeBack(t *testing.T) {
	box(t, func(t *testing.T, n *node) {
		back := giveUp
		back.Fate = records.FateRestoring
		n.script.say(ordered(t, 10, back))
		n.wantSaid(records.VolumeAbsent, "")
	})
}

// An order to erase that comes too late finds nothing: what came back stays.
func TestWhatCameBackIsNotErased(t *testing.T) {
	box(t, func(t *testing.T, n *node) {
		n.host.PutVolume(db0, "data", vol)
		n.script.say(ordered(t, 10, giveUp))
		n.wantSaid(records.VolumeTrashed, "")
		gone, back := giveUp, giveUp
		gone.Fate, back.Fate = records.FateGone, records.FateRestoring
		n.script.say(ordered(t, 11, gone)) // its time is not over
		n.script.say(ordered(t, 12, back))
		n.wantSaid(records.VolumeFound, "")
		time.Sleep(2 * time.Hour)
		n.script.say(ordered(t, 13, gone)) // by a server that is wrong
		n.wantSaid(records.VolumeErased, "")
		if !slices.Contains(n.host.Volumes(), vol) {
			t.Error("what stands in its place was erased")
		}
	})
}

// A volume that is in use grows: nothing is reported of it, and it stays where it is.
func TestAVolumeGrowsWhileItsMemberRuns(t *testing.T) {
	box(t, func(t *testing.T, n *node) {
		grow := giveUp
		grow.Fate, grow.SizeBytes = records.FateKeep, 2<<30
		n.script.say(ordered(t, 10, grow))
		n.wantSaid("", "") // it is not there yet: tried again
		var grown, moved atomic.Int32
		n.host.OnCall(func(_ context.Context, c fakert.Call) error {
			switch c.Op {
			case "Grow":
				grown.Add(1)
			case "Reclaim", "Restore", "Lost", "Erase":
				moved.Add(1)
			}
			return nil
		})
		n.host.PutVolume(db0, "data", vol)
		n.wantSaid("", "")
		time.Sleep(10 * time.Minute)
		if grown.Load() != 1 || moved.Load() != 0 {
			t.Errorf("it grew %d times, and was moved %d times; want to grow once", grown.Load(), moved.Load())
		}
	})
}

// What an older agent does not understand it leaves alone.
func TestAnOrderThatIsNotUnderstoodIsNotObeyed(t *testing.T) {
	box(t, func(t *testing.T, n *node) {
		n.host.PutVolume(db0, "data", vol)
		n.script.say(ordered(t, 10, giveUp))
		n.wantSaid(records.VolumeTrashed, "")
		strange := giveUp
		strange.Fate = "Polish"
		n.script.say(ordered(t, 11, strange))
		time.Sleep(3 * time.Hour)
		n.wantSaid(records.VolumeTrashed, "")
	})
}
