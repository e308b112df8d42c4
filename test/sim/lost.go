package sim

import (
	"iter"
	"maps"
	"slices"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/server/plan"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/spec/causes"
	"github.com/stead-project/stead/store"
)

// sayLost has a person say that a volume is lost for good, as control lets it: mostly one
// that is not there, but also one whose disk is away, or that stands where it belongs.
func (w user) sayLost() bool {
	honest := !w.chance(4)
	return w.sayOneLost(w.someRef(), honest)
}

// sayLostOf does it for one claim.
func (w user) sayLostOf(ref spec.SetRef) bool { return w.sayOneLost(ref, !w.chance(4)) }

func (w user) sayOneLost(ref spec.SetRef, honest bool) bool {
	asked := w.mayBeLost(ref, func(n *node, vol *records.Volume) bool { return !honest || !n.there(vol) })
	if len(asked) == 0 {
		return false
	}
	return w.ask(isLost, asked[w.r.IntN(len(asked))])
}

const isLost = "says that volume %s of %s is lost"

// mayBeLost are the volumes of a set for which ok holds and of which control would take it
// that they are lost.
func (w user) mayBeLost(ref spec.SetRef, ok func(*node, *records.Volume) bool) (asked []records.VolumeRequest) {
	x := w.view().World(ref)
	for vol, s := range volumesOf(x) {
		q := request(s, vol, records.VerbLost)
		if n := w.machine(vol.Node); n != nil && ok(n, vol) && plan.Refusal(x, q, nil) == "" {
			asked = append(asked, q)
		}
	}
	return asked
}

// volumesOf yields the volumes of a set in order, each with its slot.
func volumesOf(x plan.World) iter.Seq2[*records.Volume, *plan.Slot] {
	return func(yield func(*records.Volume, *plan.Slot) bool) {
		for _, s := range x.Slots {
			for _, claim := range slices.Sorted(maps.Keys(s.Volumes)) {
				if !yield(s.Volumes[claim], &s) {
					return
				}
			}
		}
	}
}

// request asks something of a volume, knowing all lives that it had.
func request(s *plan.Slot, vol *records.Volume, verb records.VolumeVerb) records.VolumeRequest {
	q := records.VolumeRequest{ID: s.ID, Claim: vol.Claim, Volume: vol.UID, Verb: verb}
	if s.Identity != nil {
		q.Token = s.Identity.LastToken
	}
	return q
}

// ask has a person ask something of a volume; format says what, with its id and its member.
func (w user) ask(format string, q records.VolumeRequest) bool {
	w.note("the user "+format, q.Volume, q.ID.MemberName())
	w.commit(store.Put(store.VolumeRequestKey(q.ID, q.Claim), store.Encode(q)))
	return true
}

// machine is the one that the store knows by a name; nil: there is none.
func (w *Cluster) machine(name spec.NodeName) *node {
	owner := w.ownerOf(name)
	for _, n := range w.nodes {
		if n.uid == owner {
			return n
		}
	}
	return nil
}

// giveUpLost is what an operator does once faults are mended: what died with its disk, or
// is not where its node said, is said to be lost; a life under which its disk died is
// restarted, for it does not say that its volume is missing.
func (w operator) giveUpLost() {
	person := user(w)
	for _, ref := range w.withClaims() {
		for _, q := range person.mayBeLost(ref, func(n *node, vol *records.Volume) bool {
			return !n.there(vol) && (w.judge.volume(vol.UID).destroyed || n.lies[vol.UID])
		}) {
			if !w.has(store.VolumeRequestKey(q.ID, q.Claim)) {
				person.ask(isLost, q)
			}
		}
		for _, m := range w.bereft(ref) {
			w.note("the operator restarts %s %s, whose disk died", m.ID.MemberName(), m.Token)
			w.count("life restarted whose disk died")
			w.commit(store.Put(store.RequestKey(m.ID), store.Encode(records.Request{ID: m.ID, Token: m.Token})))
		}
	}
}

// bereft are the lives of a set that ran on a volume which died with its disk, and was not
// made again since, as one is that its node had not noted yet.
func (w operator) bereft(ref spec.SetRef) (list []*records.Member) {
	for _, s := range w.view().World(ref).Slots {
		m, r := s.Member, s.Report
		if m == nil || r == nil || m.Goal != records.GoalRun || s.Request != nil || r.Ready || r.Cause == "" || r.Phase.Over() {
			continue
		}
		never := r.Cause == causes.VolumeMissing && r.Phase.Rank() <= records.PhasePreparing.Rank()
		n := w.machine(m.Node)
		if !never && slices.ContainsFunc(m.Volumes, func(x records.MemberVolume) bool {
			vol := s.Volumes[x.Claim]
			return !x.Object && w.judge.volume(x.ID).destroyed && (n == nil || vol == nil || !n.there(vol))
		}) {
			list = append(list, m)
		}
	}
	return list
}
