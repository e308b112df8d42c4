package agent

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stead-project/stead/agent/runtime"
	"github.com/stead-project/stead/agent/runtime/fakert"
	"github.com/stead-project/stead/proto"
	"github.com/stead-project/stead/proto/wire"
	"github.com/stead-project/stead/spec"
)

const vol = spec.VolumeID("0123456789abcdef0123456789abcdef")

var giveUp = spec.VolumeOrder{
	ID: db0, Claim: "data", Volume: vol, Number: 1, Class: "local", Fate: spec.FateReclaiming,
	Trash: spec.Duration{Duration: time.Hour},
}

func ordered(t *testing.T, rev int64, orders ...spec.VolumeOrder) *proto.ToNode {
	docs, err := wire.Documents(orders)
	must(t, err)
	return &proto.ToNode{Kind: &proto.ToNode_Wanted{Wanted: &proto.Wanted{
		Sequence: wire.Sequence(spec.Sequence{Epoch: 1, Rev: rev}), VolumesJson: docs,
	}}}
}

// said is the state that was last told of the volume; the trash's content counts.
func (n *node) said() (last spec.VolumeReport) {
	n.t.Helper()
	synctest.Wait()
	n.script.mu.Lock()
	defer n.script.mu.Unlock()
	for _, m := range n.script.trash {
		reports, err := wire.ToDocuments[spec.VolumeReport](m.GetReportsJson())
		must(n.t, err)
		if m.GetFull() {
			last = spec.VolumeReport{}
		}
		for _, r := range reports {
			if r.Volume == vol {
				last = r
			}
		}
	}
	return last
}

func (n *node) wantSaid(state spec.VolumeState, cause spec.Cause) {
	n.t.Helper()
	time.Sleep(2 * time.Minute) // of the bubble: every try comes
	if got := n.said(); got.State != state || got.Cause != cause {
		n.t.Fatalf("said %+v; want %s %s", got, state, cause)
	}
}

func TestAVolumeIsGivenUpOnlyWhenNothingOfItsMemberIsLeft(t *testing.T) {
	box(t, func(t *testing.T, n *node) {
		life := n.life(5, spec.GoalRun)
		life.Member.Volumes = []spec.MemberVolume{{Claim: "data", ID: vol, Number: 1, Class: "local"}}
		life.FreshVolumes = map[spec.ClaimName]string{"data": spec.VolumeFirst}
		n.script.say(wanted(10, life))
		n.wantReady(tok(5))
		n.script.say(ordered(t, 11, giveUp)) // by a server that is wrong
		n.wantSaid(spec.VolumeRefused, "VolumeOccupied")
		if !slices.Contains(n.host.Volumes(), vol) {
			t.Fatal("the volume of a running member was taken away")
		}
		life.Member.Goal = spec.GoalStop
		n.script.say(wanted(12, life))
		n.wantStopped(tok(5))
		n.script.say(ordered(t, 13, giveUp))
		n.wantSaid(spec.VolumeTrashed, "")
		if slices.Contains(n.host.Volumes(), vol) {
			t.Error("it stands in its place still")
		}
		n.kill()
		n.run()
		n.wantSaid(spec.VolumeTrashed, "") // told again in the next session
	})
}

func TestAVolumeOfALifeBetweenTwoStartsIsNotGivenUp(t *testing.T) {
	box(t, func(t *testing.T, n *node) {
		n.host.OnStart(func(runtime.Container) fakert.Behaviour { return fakert.Behaviour{Exits: true, Code: 1} })
		n.host.PutVolume(db0, "data", vol)
		n.script.say(wanted(10, n.life(5, spec.GoalRun)))
		time.Sleep(time.Hour) // it starts only now and then
		n.script.say(ordered(t, 11, giveUp))
		synctest.Wait()
		if got := n.said(); got.State != spec.VolumeRefused || !slices.Contains(n.host.Volumes(), vol) {
			t.Fatalf("said %+v; want it refused", got)
		}
	})
}

func TestAVolumeIsNotGivenUpWhileAProcessNobodyKnowsRuns(t *testing.T) {
	box(t, func(t *testing.T, n *node) {
		n.host.PutVolume(db0, "data", vol)
		_, err := n.host.EnsureSandbox(t.Context(), db0, tok(5), "db-0")
		must(t, err)
		n.host.AddImage("img:1")
		must(t, n.host.Create(t.Context(), runtime.Container{ID: cid, Token: tok(5), Image: "img:1"}))
		must(t, n.host.Start(t.Context(), cid))
		n.script.say(ordered(t, 11, giveUp))
		n.wantSaid(spec.VolumeRefused, "VolumeOccupied")
	})
}

func TestTheTrashIsErasedWhenItIsForgottenAndItsTimeIsOver(t *testing.T) {
	box(t, func(t *testing.T, n *node) {
		n.host.PutVolume(db0, "data", vol)
		n.script.say(ordered(t, 10, giveUp))
		n.wantSaid(spec.VolumeTrashed, "")
		time.Sleep(2 * time.Hour)
		n.wantSaid(spec.VolumeTrashed, "") // its record stands: it is waited for
		gone := giveUp
		gone.Fate, gone.Trash = spec.FateGone, spec.Duration{}
		n.script.say(ordered(t, 11, gone))
		n.wantSaid(spec.VolumeErased, "")

		n.host.PutVolume(db0, "data", vol)
		n.script.say(ordered(t, 12, giveUp))
		n.wantSaid(spec.VolumeTrashed, "")
		n.script.say(ordered(t, 13, gone))
		n.wantSaid(spec.VolumeTrashed, "") // its time is not over
		time.Sleep(time.Hour)
		n.wantSaid(spec.VolumeErased, "")
	})
}

func TestAVolumeThatIsNotThereIsGoneOnlyIfNobodyUsedIt(t *testing.T) {
	box(t, func(t *testing.T, n *node) {
		n.script.say(ordered(t, 10, giveUp))
		n.wantSaid(spec.VolumeRefused, "VolumeMissing")
		unused := giveUp
		unused.Unused = true
		n.script.say(ordered(t, 11, unused))
		n.wantSaid(spec.VolumeAbsent, "")
		n.host.PutVolume(db0, "data", "anothers")
		n.script.say(ordered(t, 12, giveUp))
		n.wantSaid(spec.VolumeRefused, "VolumeForeign")
	})
}

func TestAVolumeIsBroughtBackOnlyWhenNothingOfItsMemberIsLeft(t *testing.T) {
	box(t, func(t *testing.T, n *node) {
		n.host.PutVolume(db0, "data", vol)
		n.script.say(ordered(t, 10, giveUp))
		n.wantSaid(spec.VolumeTrashed, "")
		n.script.say(wanted(11, n.life(5, spec.GoalRun)))
		n.wantReady(tok(5))
		back := giveUp
		back.Fate, back.Turn, back.Trash = spec.FateRestoring, 1, spec.Duration{}
		n.script.say(ordered(t, 12, back)) // by a server that is wrong
		n.wantSaid(spec.VolumeRefused, "VolumeOccupied")
		if slices.Contains(n.host.Volumes(), vol) {
			t.Fatal("it was brought back beside a running member")
		}
		n.script.say(wanted(13, n.life(5, spec.GoalStop)))
		n.wantStopped(tok(5))
		n.script.say(ordered(t, 14, back))
		n.wantSaid(spec.VolumeFound, "")
		if got := n.said(); got.Turn != 1 || !slices.Contains(n.host.Volumes(), vol) {
			t.Errorf("said %+v; want the turn of the order, and the volume in its place", got)
		}
	})
}

// A volume that is there is never taken for lost, nor is one whose disk is away.
func TestOnlyAVolumeThatIsNotThereIsLost(t *testing.T) {
	box(t, func(t *testing.T, n *node) {
		lost := giveUp
		lost.Fate = spec.FateLost
		n.host.PutVolume(db0, "data", vol)
		n.script.say(ordered(t, 10, lost))
		n.wantSaid(spec.VolumeFound, "")
		if !slices.Contains(n.host.Volumes(), vol) {
			t.Fatal("what is there was touched")
		}
		lost.Turn = 1
		n.host.DropVolumes(db0, "data")
		n.script.say(ordered(t, 11, lost))
		n.wantSaid(spec.VolumeAbsent, "")
		lost.Turn = 2
		n.host.PutVolume(db0, "data", "anothers")
		n.script.say(ordered(t, 12, lost))
		n.wantSaid(spec.VolumeRefused, "VolumeForeign")
	})
}

func TestAVolumeThatIsInNeitherPlaceDoesNotComeBack(t *testing.T) {
	box(t, func(t *testing.T, n *node) {
		back := giveUp
		back.Fate = spec.FateRestoring
		n.script.say(ordered(t, 10, back))
		n.wantSaid(spec.VolumeAbsent, "")
	})
}

// An order to erase that comes too late finds nothing: what came back stays.
func TestWhatCameBackIsNotErased(t *testing.T) {
	box(t, func(t *testing.T, n *node) {
		n.host.PutVolume(db0, "data", vol)
		n.script.say(ordered(t, 10, giveUp))
		n.wantSaid(spec.VolumeTrashed, "")
		gone, back := giveUp, giveUp
		gone.Fate, back.Fate = spec.FateGone, spec.FateRestoring
		n.script.say(ordered(t, 11, gone)) // its time is not over
		n.script.say(ordered(t, 12, back))
		n.wantSaid(spec.VolumeFound, "")
		time.Sleep(2 * time.Hour)
		n.script.say(ordered(t, 13, gone)) // by a server that is wrong
		n.wantSaid(spec.VolumeErased, "")
		if !slices.Contains(n.host.Volumes(), vol) {
			t.Error("what stands in its place was erased")
		}
	})
}

// What an older agent does not understand it leaves alone.
func TestAnOrderThatIsNotUnderstoodIsNotObeyed(t *testing.T) {
	box(t, func(t *testing.T, n *node) {
		n.host.PutVolume(db0, "data", vol)
		n.script.say(ordered(t, 10, giveUp))
		n.wantSaid(spec.VolumeTrashed, "")
		strange := giveUp
		strange.Fate = "Polish"
		n.script.say(ordered(t, 11, strange))
		time.Sleep(3 * time.Hour)
		n.wantSaid(spec.VolumeTrashed, "")
	})
}
