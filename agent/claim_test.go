package agent

import (
	"slices"
	"testing"

	"github.com/stead-project/stead/proto/wire"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
)

var (
	filesClaim = spec.ClaimIdentity("default", "files")
	// giveUpFiles is an order about the volume of a claim that members share.
	giveUpFiles = records.VolumeOrder{ID: filesClaim, Claim: "files", Volume: vol, Number: 1, Class: "local", Fate: records.FateReclaiming}
)

// withFiles is a life that mounts the claim.
func withFiles(life records.Life) records.Life {
	life.Template.Spec.Volumes = []spec.VolumeMedia{{Name: "v", PersistentVolumeClaim: &spec.ClaimVolume{ClaimName: "files"}}}
	life.Member.Volumes = []records.MemberVolume{{Claim: "files", ID: vol, Number: 1, Class: "local", Object: true}}
	life.UnusedClaims = []spec.ClaimName{"files"}
	return life
}

func TestTheVolumeOfAClaimIsGivenUpOnlyWhenNoLifeHasIt(t *testing.T) {
	box(t, func(t *testing.T, n *node) {
		n.script.say(wanted(10, withFiles(n.life(5, records.GoalRun))))
		n.wantReady(tok(5))
		if !slices.Contains(n.host.Volumes(), vol) {
			t.Fatal("it was not made")
		}
		n.kill()
		n.run() // an agent that knows of no life yet
		n.script.say(ordered(t, 11, giveUpFiles))
		n.wantSaid(records.VolumeRefused, "VolumeOccupied")
		if !slices.Contains(n.host.Volumes(), vol) {
			t.Fatal("it was taken away from a life that has it")
		}
		n.script.say(wanted(12, withFiles(n.life(5, records.GoalStop))))
		n.wantStopped(tok(5))
		n.script.say(ordered(t, 13, giveUpFiles))
		n.wantSaid(records.VolumeTrashed, "")
	})
}

// The next life of the member does not have the volume any more.
func TestALifeThatWasFollowedByAnotherHasNoVolume(t *testing.T) {
	box(t, func(t *testing.T, n *node) {
		n.script.say(wanted(10, withFiles(n.life(5, records.GoalRun))))
		n.wantReady(tok(5))
		n.script.say(wanted(11, withFiles(n.life(5, records.GoalStop))))
		n.wantStopped(tok(5))
		n.script.say(wanted(12, n.life(6, records.GoalRun)))
		n.wantReady(tok(6))
		n.script.say(ordered(t, 13, giveUpFiles))
		n.wantSaid(records.VolumeTrashed, "")
	})
}

func TestALifeThatWasNotGivenTheVolumeOfItsClaimIsNotStarted(t *testing.T) {
	box(t, func(t *testing.T, n *node) {
		life := withFiles(n.life(5, records.GoalRun))
		life.Member.Volumes = nil
		n.script.say(wanted(10, life))
		n.want("it waits, and says why", tok(5), func(r records.Report) bool {
			return r.Phase == records.PhasePreparing && r.Message != ""
		})
		n.wantStarts(tok(5), 0)
	})
}

func TestTheVolumeOfAClaimThatWasUsedIsNotMadeAnew(t *testing.T) {
	box(t, func(t *testing.T, n *node) {
		life := withFiles(n.life(5, records.GoalRun))
		life.UnusedClaims = nil
		n.script.say(wanted(10, life))
		n.want("it is missed", tok(5), func(r records.Report) bool { return r.Cause == "VolumeMissing" })
		if len(n.host.Volumes()) != 0 {
			t.Error("it was made")
		}
	})
}

// What a life needs to know of its claims comes with it, as documents do.
func TestALifeIsSentWithItsClaims(t *testing.T) {
	sent := withFiles(records.Life{})
	docs, err := wire.Documents([]records.Life{sent})
	must(t, err)
	got, err := wire.ToDocuments[records.Life](docs)
	must(t, err)
	if len(got) != 1 || !got[0].Member.Volumes[0].Object || !slices.Equal(got[0].UnusedClaims, sent.UnusedClaims) ||
		got[0].Template.Spec.Volumes[0].PersistentVolumeClaim.ClaimName != "files" {
		t.Errorf("got %+v", got)
	}
}
