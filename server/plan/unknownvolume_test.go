package plan

import (
	"testing"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/server/proof"
	"github.com/stead-project/stead/spec"
)

// unknown: node n2 has a volume of member 0 that the store does not know, in its place and unsealed, with the number of the one that the
// store has on n1; and n1 says that it has its own not.
func unknown(changes ...func(*World, *Slot)) func(*World) {
	return func(w *World) {
		movers(w)
		slot := slotOf(w, spec.Identity{Namespace: "default", Set: "db"})
		slot.Unknown = []UnknownVolume{{Node: "n2", HostVolume: records.HostVolume{
			ID: slot.ID, Claim: "data", Volume: "other", Number: 1, Class: spec.LocalClass,
		}}}
		for i := range w.Nodes {
			w.Nodes[i].Facts.ListsVolumes = true
		}
		if v := slot.Volumes["data"]; v != nil {
			proof.FindNode(w.Nodes, "n1").Facts.AbsentVolumes = []records.VolumeID{v.UID}
		}
		for _, c := range changes {
			c(w, slot)
		}
	}
}

// it is a change of the volume that the store does not know.
func it(change func(*UnknownVolume)) func(*World, *Slot) {
	return func(_ *World, s *Slot) { change(&s.Unknown[0]) }
}

// of is a change of what a node says of itself.
func of(node spec.NodeName, change func(*records.NodeFacts)) func(*World, *Slot) {
	return func(w *World, _ *Slot) { change(proof.FindNode(w.Nodes, node).Facts) }
}

// wants: a person asks for this about the volume.
func wants(verb records.VolumeVerb) func(*World, *Slot) {
	return func(_ *World, s *Slot) {
		s.Asked = map[spec.ClaimName]*records.VolumeRequest{"data": {
			ID: s.ID, Claim: "data", Volume: "other", Verb: verb, Node: "n2", Token: s.Identity.LastToken,
		}}
	}
}

func noneKnown(number int) func(*World, *Slot) {
	return func(_ *World, s *Slot) {
		s.Volumes = nil
		s.Identity.VolumeNumbers = map[spec.ClaimName]int{"data": number}
	}
}

// andAnother is another volume of the member that the store does not know, on n3.
func andAnother(number int) func(*World, *Slot) {
	return func(_ *World, s *Slot) {
		o := s.Unknown[0]
		o.Node, o.Volume, o.Number = "n3", "third", number
		s.Unknown = append(s.Unknown, o)
	}
}

// TestNoLifeStartsBesideAVolumeThatMayBeNewer: while a node has a volume that the store does not know, and that no number and no seal show to be older.
func TestNoLifeStartsBesideAVolumeThatMayBeNewer(t *testing.T) {
	const over, waits, starts = "ordered 1 volumes n1 n2 n3 0:over@n1", "| 0:VolumeUnknown", "start=0/Replace@n1 | 0:Starting"
	check(t, []rule{
		{name: "with the same number, as a move leaves it", world: over, change: unknown(), want: waits,
			says: "node n2 has data-db-0 (other, number 1), which the store does not know, and which may be newer than its volume on node n1; to continue with it: stead volume restore data-db-0 --node n2; to give it up: stead volume reclaim data-db-0 --node n2"},
		{name: "with a later one", world: over, change: unknown(it(func(u *UnknownVolume) { u.Number = 2 })), want: waits},
		{name: "of which nothing is seen, for its disk is not there", world: over, change: unknown(it(func(u *UnknownVolume) { u.Unseen = true })), want: waits},
		{name: "whatever node has the store's", world: over, change: unknown(of("n1", func(f *records.NodeFacts) { f.AbsentVolumes = nil })), want: waits},
		{name: "on a node that is silent", world: "ordered 1 volumes n1 n2~ n3 0:over@n1", change: unknown(), want: waits},
		{name: "sealed for a third node", world: over, change: unknown(it(func(u *UnknownVolume) { u.SealedFor = "n3" })), want: waits},
		{name: "beside none, with the number that was given last", world: over, change: unknown(noneKnown(1)), want: waits, says: "and of which the store has none"},
		{name: "beside none, ever", world: "ordered 1 volumes n1 n2 n3 0:none@n1", change: unknown(func(_ *World, s *Slot) { s.Identity = nil }), want: waits},
		{name: "but for an earlier number", world: over, change: unknown(it(func(u *UnknownVolume) { u.Number = 0 })), want: starts},
		{name: "but for one that was let go of", world: over, change: unknown(noneKnown(2)), want: "start=0/Replace@n1 | 0:Starting"},
		{name: "but for what a move sealed for the node that has the store's", world: over, change: unknown(it(func(u *UnknownVolume) { u.SealedFor = "n1" })), want: starts},
		{name: "but for the store's own", world: over, change: unknown(func(_ *World, s *Slot) { s.Unknown[0].Volume = s.Volumes["data"].UID }), want: starts},
		{name: "but for a claim that the set has not", world: over, change: unknown(it(func(u *UnknownVolume) { u.Claim = "log" })), want: starts},
		{name: "a life that runs is left alone", world: "ordered 1 volumes n1 n2 n3 0:ready@n1", change: unknown(), want: "|"},
	})
}

// TestAPersonSaysWhatBecomesOfAVolumeThatTheStoreDoesNotKnow: it is the member's only where it is known that no newer one is anywhere.
func TestAPersonSaysWhatBecomesOfAVolumeThatTheStoreDoesNotKnow(t *testing.T) {
	const over = "ordered 1 volumes n1 n2 n3 0:over@n1"
	restore, reclaim := wants(records.VerbRestore), wants(records.VerbReclaim)
	check(t, []rule{
		{name: "instead of one that its node has not", world: over, change: unknown(restore), want: "restore=0 | 0:VolumeRestoring"},
		{name: "beside none", world: over, change: unknown(noneKnown(1), restore), want: "restore=0 | 0:VolumeRestoring"},
		{name: "beside an older one that the store does not know", world: over, change: unknown(andAnother(0), restore), want: "restore=0 | 0:VolumeRestoring"},
		{name: "not while a life may use the other", world: "ordered 1 volumes n1 n2 n3 0:ready@n1", change: unknown(restore), want: "void=0 |", says: "may still use it"},
		{name: "not beside an unknown life", world: "ordered 1 volumes n1 n2 n3 0:over@n1", change: unknown(restore, func(_ *World, s *Slot) {
			s.Strays = []NodeStray{{Node: "n2", Stray: spec.LifeID{ID: s.ID, Token: spec.Token{Epoch: 1, Number: 9}}}}
		}), want: "void=0 | 0:Stray", says: "node n2 runs a life of it"},
		{name: "not when the other is in its place", world: over, change: unknown(of("n1", func(f *records.NodeFacts) { f.AbsentVolumes = nil }), restore), want: "void=0 | 0:VolumeUnknown",
			says: "in its place, or its disk is not there, so that it is not known which is newer"},
		{name: "not when the other's node has said nothing since the restore", world: over, change: unknown(of("n1", func(f *records.NodeFacts) { f.Epoch = 0 }), restore), want: "void=0 | 0:VolumeUnknown",
			says: "it is not known which is newer; start the agent of node n1"},
		{name: "not when the other's node does not list its volumes", world: over, change: unknown(of("n1", func(f *records.NodeFacts) { f.ListsVolumes = false }), restore), want: "void=0 | 0:VolumeUnknown"},
		{name: "not when the other's name belongs to another machine", world: over, change: unknown(of("n1", func(f *records.NodeFacts) { f.UID = "another" }), restore), want: "void=0 | 0:VolumeUnknown"},
		{name: "not on the word of before the restore", world: over, change: unknown(of("n2", func(f *records.NodeFacts) { f.Epoch = 0 }), restore), want: "void=0 | 0:VolumeUnknown", says: "node n2 is unreachable"},
		{name: "not of a silent node", world: "ordered 1 volumes n1 n2~ n3 0:over@n1", change: unknown(restore), want: "void=0 | 0:VolumeUnknown", says: "node n2 is unreachable"},
		{name: "not while its disk is not there", world: over, change: unknown(it(func(u *UnknownVolume) { u.Unseen = true }), restore), want: "void=0 | 0:VolumeUnknown", says: "mount it"},
		{name: "not a sealed one", world: over, change: unknown(it(func(u *UnknownVolume) { u.SealedFor = "n3" }), restore), want: "void=0 | 0:VolumeUnknown", says: "its copy may be newer"},
		{name: "not beside another of the same number", world: over, change: unknown(andAnother(1), restore), want: "void=0 | 0:VolumeUnknown", says: "node n3 has another one that the store does not know (third, number 1)"},
		{name: "not beside a later one", world: over, change: unknown(andAnother(2), restore), want: "void=0 | 0:VolumeUnknown"},
		{name: "not an older one", world: over, change: unknown(it(func(u *UnknownVolume) { u.Number = 0 }), restore), want: "start=0/Replace@n1 void=0 | 0:Starting"},
		{name: "not while the other is looked for", world: "ordered 1 volumes n1 n2 n3 0:over@n1=Lost", change: unknown(restore), want: "void=0 | 0:VolumeUnknown"},
		{name: "given up where it is", world: over, change: unknown(reclaim), want: "leave=0@n2 | 0:VolumeUnknown"},
		{name: "given up though its node is silent", world: "ordered 1 volumes n1 n2~ n3 0:over@n1", change: unknown(reclaim), want: "leave=0@n2 | 0:VolumeUnknown"},
		{name: "given up while a life has the other", world: "ordered 1 volumes n1 n2 n3 0:ready@n1", change: unknown(reclaim), want: "leave=0@n2 |"},
		{name: "not given up while it may be used", world: over, change: unknown(reclaim, func(_ *World, s *Slot) {
			s.Strays = []NodeStray{{Node: "n2", Stray: spec.LifeID{ID: s.ID, Token: spec.Token{Epoch: 1, Number: 9}}}}
		}), want: "void=0 | 0:Stray"},
		{name: "a request about one volume gives up no other", world: "ordered 0 volumes n1 n2 n3 0:volume@n1", change: unknown(reclaim), want: "leave=0@n2 |"},
	})

	w := world(t, over)
	unknown(restore)(&w)
	old := *slotOf(&w, spec.Identity{Namespace: "default", Set: "db"}).Volumes["data"]
	a, is := Next(w).Actions[0].(RestoreVolume)
	if !is || !a.Unknown || a.Volume.UID != "other" || a.Volume.Node != "n2" || a.Volume.Number != 1 || a.Volume.SizeBytes < old.SizeBytes || a.Identity.VolumeReady["data"] != 1 {
		t.Fatalf("it does %+v", a)
	}
	if len(a.Left) != 1 || a.Left[0].Volume != old.UID || a.Left[0].Node != "n1" || a.Left[0].State != records.VolumeLeft {
		t.Errorf("what is left of the other: %+v", a.Left)
	}
}
