package dispatch

import (
	"fmt"
	"slices"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/records/moves"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/store"
)

// host is a volume of db-N that a node names.
func host(ordinal int, id records.VolumeID, change ...func(*records.HostVolume)) records.HostVolume {
	h := records.HostVolume{ID: ident(ordinal), Claim: "data", Volume: id, Number: 1, Class: "local"}
	for _, c := range change {
		c(&h)
	}
	return h
}

func idsOf(list []records.HostVolume) (ids []records.VolumeID) {
	for _, h := range list {
		ids = append(ids, h.Volume)
	}
	return ids
}

// TestAHelloSaysWhichVolumesTheStoreDoesNotKnow: stored is what no record, no move and no order names, and which of the store's are not there.
func TestAHelloSaysWhichVolumesTheStoreDoesNotKnow(t *testing.T) {
	r := newStill(t)
	for i, id := range []records.VolumeID{"here", "gone", "sealed", "unseen", "elsewhere"} {
		node := "n1"
		if id == "elsewhere" {
			node = "n2"
		}
		r.Record(store.VolumeKey(ident(i), "data"), records.Volume{ID: ident(i), Claim: "data", UID: id, Number: 1, Node: spec.NodeName(node), Fate: records.FateKeep})
	}
	said := func(id records.VolumeID, state records.VolumeState) {
		r.Record(store.VolumeReportKey(ident(9), "data", id), records.VolumeReport{ID: ident(9), Claim: "data", Volume: id, Node: "n1", State: state})
	}
	said("left", records.VolumeLeft)
	said("trashed-before", records.VolumeTrashed)
	r.Record(store.MoveKey(ident(8)), moves.Move{ID: ident(8), Move: "m", Claims: []moves.MoveClaim{{Claim: "data", Old: "old", New: "new"}}})
	h := n1
	h.volumes = []records.HostVolume{
		host(7, "unknown"), host(0, "here"), host(2, "sealed", func(h *records.HostVolume) { h.SealedFor = "n2" }), host(3, "unseen", func(h *records.HostVolume) { h.Unseen = true }),
		host(4, "elsewhere"), host(9, "left"), host(9, "trashed-before"), host(8, "old"), host(8, "new"), host(7, "unknown"),
		host(6, "NO ID"),
	}
	se := r.hand(h).se
	facts := r.facts()
	if got, want := fmt.Sprint(idsOf(facts.UnknownVolumes)), "[unknown trashed-before]"; got != want {
		t.Errorf("unknown are %s, want %s", got, want)
	}
	if got, want := fmt.Sprint(facts.AbsentVolumes), "[gone sealed]"; got != want {
		t.Errorf("absent are %s, want %s", got, want)
	}
	hellos, _ := r.Get(store.HellosKey)

	r.Record(store.VolumeKey(ident(7), "data"), records.Volume{ID: ident(7), Claim: "data", UID: "unknown", Number: 1, Node: "n1", Fate: records.FateRestoring})
	said("trashed-before", records.VolumeLeft)
	if _, err := se.storeFacts(nil); err != nil {
		t.Fatal(err)
	}
	if facts := r.facts(); len(facts.UnknownVolumes) != 0 || !slices.Equal(facts.AbsentVolumes, []records.VolumeID{"gone", "sealed"}) {
		t.Errorf("once the store knows them: %+v", facts)
	}
	if kv, _ := r.Get(store.HellosKey); kv.Mod != hellos.Mod {
		t.Error("the key hellos was written for fewer")
	}
}

// TestAnAgentThatListsNoVolumesHasNoneAbsent: of an earlier version, or one whose list is not whole.
func TestAnAgentThatListsNoVolumesHasNoneAbsent(t *testing.T) {
	r := newStill(t)
	r.Record(store.VolumeKey(ident(0), "data"), records.Volume{ID: ident(0), Claim: "data", UID: "v", Number: 1, Node: "n1", Fate: records.FateKeep})
	r.hand(n1)
	if facts := r.facts(); len(facts.AbsentVolumes) != 0 {
		t.Errorf("absent are %v", facts.AbsentVolumes)
	}
}

// TestAHelloWithAnUnknownVolumeIsToldToOthers: a start that was planned before conflicts.
func TestAHelloWithAnUnknownVolumeIsToldToOthers(t *testing.T) {
	r := newRig(t)
	_, first := r.joined(n1)
	with := n1
	with.volumes = []records.HostVolume{host(0, "unknown")}
	_, then := r.joined(with)
	if then <= first {
		t.Error("a node came with a volume that the store does not know, and the key hellos was not written")
	}
	if _, again := r.joined(with); again != then {
		t.Error("nothing changed, and the key hellos was written")
	}
}

func TestANodeWithTooManyUnknownVolumesIsRefused(t *testing.T) {
	r := newStill(t)
	h := n1
	for i := range maxUnknownVolumes + 1 {
		h.volumes = append(h.volumes, host(i, "v"))
	}
	if _, _, err := r.server.join(t.Context(), h.message()); status.Code(err) != codes.ResourceExhausted {
		t.Errorf("got %v", err)
	}
	h.volumes = make([]records.HostVolume, maxHoldings+1)
	if _, _, err := r.server.join(t.Context(), h.message()); status.Code(err) != codes.ResourceExhausted {
		t.Errorf("of more than is read: %v", err)
	}
}
