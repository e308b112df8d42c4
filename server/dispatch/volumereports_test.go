package dispatch

import (
	"slices"
	"testing"
	"time"

	"github.com/stead-project/stead/proto"
	"github.com/stead-project/stead/proto/wire"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/spec/scalar"
	"github.com/stead-project/stead/store"
)

func (n *node) say(full bool, reports ...records.VolumeReport) {
	docs, err := wire.Documents(reports)
	if err != nil {
		n.r.t.Fatal(err)
	}
	n.send(&proto.FromNode{Kind: &proto.FromNode_Volumes{Volumes: &proto.VolumeReports{Full: full, ReportsJson: docs}}})
}

// order waits until the node is told what to do with a volume.
func (n *node) order(volume records.VolumeID, fate records.VolumeFate) (order records.VolumeOrder) {
	n.r.t.Helper()
	n.next("order "+string(fate), func(m *proto.ToNode) bool {
		orders, err := wire.ToDocuments[records.VolumeOrder](m.GetWanted().GetVolumesJson())
		if err != nil {
			n.r.t.Fatal(err)
		}
		for _, o := range orders {
			if o.Volume == volume && o.Fate == fate {
				order = o
				return true
			}
		}
		return false
	})
	return order
}

func TestANodeIsToldWhatBecomesOfItsVolumes(t *testing.T) {
	r := newRig(t)
	r.begin()
	key, said := store.VolumeKey(ident(1), "data"), store.VolumeReportKey(ident(1), "data", "v1")
	volume := records.Volume{
		ID: ident(1), Claim: "data", UID: "v1", Number: 1, Class: "local", Node: "n1", Fate: records.FateDelete,
		TrashAfter: &scalar.Duration{Duration: time.Minute},
	}
	r.Record(key, volume)
	other := volume
	other.ID, other.UID, other.Node, other.Fate = ident(2), "v2", "n2", records.FateReclaiming
	r.Record(store.VolumeKey(ident(2), "data"), other)
	n := r.connect(n1)
	n.welcome()
	if orders := n.wanted().GetVolumesJson(); len(orders) != 0 {
		t.Fatalf("told %s; want no order for what is kept and what is another node's", orders)
	}
	volume.Fate = records.FateReclaiming
	r.Record(key, volume)
	if o := n.order("v1", records.FateReclaiming); o.ID != ident(1) || o.Number != 1 || o.Class != "local" || o.Trash.Duration != time.Minute || !o.Unused {
		t.Errorf("told %+v", o)
	}
	trashed := records.VolumeReport{ID: ident(1), Claim: "data", Volume: "v1", Class: "local", Node: "another", State: records.VolumeTrashed}
	n.say(false, trashed)
	r.until("what it says is stored", func() bool { _, ok := r.Get(said); return ok })
	kv, _ := r.Get(said)
	if got, err := store.Decode[records.VolumeReport](kv); err != nil || got.Node != "n1" || got.State != records.VolumeTrashed {
		t.Errorf("stored %+v, %v; want it from the node that said it", got, err)
	}
	r.Commit(store.Del(key))
	n.order("v1", records.FateGone)
	n.say(false, records.VolumeReport{ID: ident(1), Claim: "data", Volume: "v1", State: records.VolumeErased})
	r.until("it is forgotten", func() bool { _, ok := r.Get(said); return !ok })
}

// A volume that grew is told to its node, and its member lives on meanwhile; one that did not is not.
func TestANodeIsToldThatAVolumeGrew(t *testing.T) {
	r := newRig(t)
	r.begin()
	key := store.VolumeKey(ident(1), "data")
	volume := records.Volume{
		ID: ident(1), Claim: "data", UID: "v1", Number: 1, Class: "local", Node: "n1", Fate: records.FateKeep, SizeBytes: 1 << 30,
	}
	r.Record(key, volume)
	n := r.connect(n1)
	n.welcome()
	if orders := n.wanted().GetVolumesJson(); len(orders) != 0 {
		t.Fatalf("told %s; want nothing of a volume that is as it was made", orders)
	}
	volume.SizeBytes, volume.Grown = 2<<30, true
	r.Record(key, volume)
	if o := n.order("v1", records.FateKeep); o.SizeBytes != 2<<30 || o.ID != ident(1) || o.Class != "local" {
		t.Errorf("told %+v", o)
	}
	volume.SizeBytes = 3 << 30
	r.Record(key, volume)
	if o := n.order("v1", records.FateKeep); o.SizeBytes != 3<<30 {
		t.Errorf("told %+v", o)
	}
	again := r.connect(n1)
	again.welcome()
	if o := again.order("v1", records.FateKeep); o.SizeBytes != 3<<30 {
		t.Errorf("the next session is told %+v", o)
	}
}

// known makes the store know a member of this ordinal.
func (r *rig) known(ordinal int) {
	r.Record(store.IdentityKey(ident(ordinal)), records.IdentityRecord{ID: ident(ordinal)})
}

func TestWhatATrashDoesNotHoldIsForgottenWhenItsNodeHasLooked(t *testing.T) {
	r := newRig(t)
	r.begin()
	r.known(1)
	old, mine := store.VolumeReportKey(ident(1), "data", "old"), store.VolumeReportKey(ident(1), "data", "mine")
	others := store.VolumeReportKey(ident(1), "data", "others")
	for volume, node := range map[records.VolumeID]spec.NodeName{"old": "n1", "others": "n2"} {
		r.Record(store.VolumeReportKey(ident(1), "data", volume),
			records.VolumeReport{ID: ident(1), Claim: "data", Volume: volume, Node: node, State: records.VolumeTrashed})
	}
	n := r.connect(n1)
	n.welcome()
	n.say(true, records.VolumeReport{ID: ident(1), Claim: "data", Volume: "mine", State: records.VolumeTrashed})
	r.until("what is new is stored", func() bool { _, ok := r.Get(mine); return ok })
	if _, ok := r.Get(old); !ok {
		t.Error("it is forgotten already: then anybody could say that it is his")
	}
	n.order("old", records.FateGone)
	n.say(false, records.VolumeReport{ID: ident(1), Claim: "data", Volume: "old", State: records.VolumeErased})
	r.until("it is as the node says", func() bool { _, ok := r.Get(old); return !ok })
	if _, ok := r.Get(others); !ok {
		t.Error("what another node said was forgotten")
	}
	n.order("mine", records.FateGone) // the store knows no such volume
	r.Record(store.VolumeKey(ident(1), "data"), records.Volume{ID: ident(1), Claim: "data", UID: "next", Node: "n1", Fate: records.FateKeep})
	n.say(false, records.VolumeReport{ID: ident(1), Claim: "data", Volume: "before", State: records.VolumeTrashed},
		records.VolumeReport{ID: ident(1), Claim: "data", Volume: "next", State: records.VolumeTrashed})
	n.order("before", records.FateGone) // another has its place
	r.until("both are stored", func() bool { _, ok := r.Get(store.VolumeReportKey(ident(1), "data", "next")); return ok })
	for _, m := range n.hold {
		if orders, _ := wire.ToDocuments[records.VolumeOrder](m.GetWanted().GetVolumesJson()); slices.ContainsFunc(orders, func(o records.VolumeOrder) bool { return o.Volume == "next" }) {
			t.Errorf("told %+v; want no order about a volume that is kept", orders)
		}
	}
}

func TestANodeWhoseSessionIsOverSaysNothingOfVolumes(t *testing.T) {
	r := newRig(t)
	r.begin()
	r.known(1)
	n := r.connect(n1)
	n.welcome()
	n.wanted()
	r.server.mu.Lock()
	se := r.server.sessions["n1"]
	r.server.mu.Unlock()
	r.Record(store.SessionKey("n1"), records.Session{Node: "n1", UID: "uid1", Boot: "b1", ID: 99}) // another took it
	if err := n.ended(); err == nil {
		t.Error("the session goes on")
	}
	docs, err := wire.Documents([]records.VolumeReport{{ID: ident(1), Claim: "data", Volume: "v1", State: records.VolumeTrashed}})
	if err != nil {
		t.Fatal(err)
	}
	se.receiveVolumeReports(&proto.VolumeReports{ReportsJson: docs})
	se.ctx = t.Context() // it was on its way when the session ended
	if _, err := se.storeVolumeReports(); err == nil {
		t.Error("it could be said")
	}
	if _, ok := r.Get(store.VolumeReportKey(ident(1), "data", "v1")); ok {
		t.Error("it was stored")
	}
}

// TestWhatAHostWasLeftWithGoesToItsTrash: also when its trash, told whole, holds nothing of
// it, and when it could not be moved at first.
func TestWhatAHostWasLeftWithGoesToItsTrash(t *testing.T) {
	r := newRig(t)
	r.begin()
	r.known(2)
	key := store.VolumeReportKey(ident(1), "data", "left")
	r.Record(key, records.VolumeReport{
		ID: ident(1), Claim: "data", Volume: "left", Number: 3, Node: "n1", State: records.VolumeLeft, Left: scalar.Duration{Duration: time.Hour},
	})
	n := r.connect(n1)
	n.welcome()
	state := func() records.VolumeState {
		kv, _ := r.Get(key)
		got, _ := store.Decode[records.VolumeReport](kv)
		return got.State
	}
	other := records.VolumeReport{ID: ident(2), Claim: "data", Volume: "other", State: records.VolumeTrashed}
	n.say(true, other)
	r.until("the trash is stored", func() bool { _, ok := r.Get(store.VolumeReportKey(ident(2), "data", "other")); return ok })
	if got := state(); got != records.VolumeLeft {
		t.Fatalf("it is %q now", got)
	}
	if o := n.order("left", records.FateReclaiming); o.Trash.Duration != time.Hour || o.Number != 3 || !o.Unused {
		t.Errorf("told %+v", o)
	}
	mine := records.VolumeReport{ID: ident(1), Claim: "data", Volume: "left", State: records.VolumeRefused, Cause: "VolumeOccupied"}
	other.State = records.VolumeErased
	n.say(false, mine, other)
	r.until("what came with it is stored", func() bool { _, ok := r.Get(store.VolumeReportKey(ident(2), "data", "other")); return !ok })
	if got := state(); got != records.VolumeLeft {
		t.Errorf("it is %q; want it to be tried again", got)
	}
	mine.State = records.VolumeTrashed
	n.say(false, mine)
	r.until("it lies in the trash", func() bool { return state() == records.VolumeTrashed })
	n.order("left", records.FateGone)
}
