package sim

import (
	"fmt"
	"math/rand/v2"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/spec/scalar"
	"github.com/stead-project/stead/store"
	"github.com/stead-project/stead/test/sim/rules"
)

// user is a person who asks something of sets.
type user struct{ *Cluster }

// images of templates: what members that run them do. "good" ones become ready.
var images = []string{"good-1", "good-2", "good-3", "good-4", "crash", "never", "missing"}

// createSet makes a set as control does, from nothing.
func (w user) createSet(ref spec.SetRef) {
	n := int32(w.r.IntN(5))
	grace := int64(w.r.IntN(10))
	w.uids++
	set := records.Set{
		Ref: ref, UID: spec.UID(fmt.Sprintf("%032x", w.uids)), Generation: 1, InitialReplicas: int(n),
		Spec: spec.SetSpec{
			Replicas: &n, PodManagementPolicy: spec.OrderedReady,
			Template: spec.Template{Spec: spec.MemberSpec{
				Containers: []spec.Container{{
					Name: containerName, Image: images[w.r.IntN(4)], ReadinessProbe: &spec.Probe{},
					VolumeMounts: []spec.VolumeMount{{Name: "scratch", MountPath: "/tmp"}},
				}},
				Volumes:                       []spec.VolumeMedia{{Name: "scratch", EmptyDir: &spec.EmptyDir{}}},
				TerminationGracePeriodSeconds: &grace,
			}},
			VolumeClaimTemplates: []spec.ClaimTemplate{{Metadata: spec.ObjectMeta{Name: claimNames[0]}, Spec: claimOf(1000)}},
		},
	}
	if w.chance(2) {
		set.Spec.PodManagementPolicy = spec.Parallel
	}
	if w.chance(3) {
		set.Spec.MinReadySeconds = int32(1 + w.r.IntN(8))
	}
	if w.chance(4) {
		set.Spec.VolumeClaimTemplates = nil
	}
	if w.chance(5) {
		set.Spec.Ordinals = &spec.Ordinals{Start: int32(w.r.IntN(3))}
	}
	if r := rand.New(rand.NewPCG(w.seed, uint64(w.uids))); r.IntN(2) == 0 {
		set.Spec.NodeLoss = someLoss(r)
		if r.IntN(2) == 0 { // nothing keeps its members to a node
			set.Spec.VolumeClaimTemplates = nil
		}
	}
	w.classify(&set)
	if w.composed {
		w.furnish(&set, rand.New(rand.NewPCG(w.seed, uint64(w.uids)+1<<32)))
	}
	if w.hasJobs {
		someJobs(&set, rand.New(rand.NewPCG(w.seed, uint64(w.uids)+2<<32)))
	}
	if w.differs {
		set.Spec.Members = someDifferences(rand.New(rand.NewPCG(w.seed, uint64(w.uids)+3<<32)))
	}
	w.putSet(set, 0)
}

func (w *Cluster) putSet(set records.Set, seen store.Rev) {
	w.note("the user asks for %s", brief(&set))
	w.write(store.Txn{
		If:   []store.Compare{store.Seen(store.SetKey(set.Ref), seen)},
		Then: []store.Op{store.Put(store.SetKey(set.Ref), store.Encode(set))},
	})
}

func brief(s *records.Set) string {
	text := fmt.Sprintf("%s: generation %d, %d from %d, %s, image %s", s.Ref.Name, s.Generation, s.Replicas(), s.Start(),
		s.Spec.PodManagementPolicy, s.Spec.Template.Spec.Containers[0].Image)
	if s.Spec.UpdateStrategy.Type != "" {
		text += ", " + s.Spec.UpdateStrategy.Type
	}
	if r := s.Spec.UpdateStrategy.RollingUpdate; r != nil {
		if r.Partition != nil {
			text += fmt.Sprint(", partition ", *r.Partition)
		}
		if r.MaxUnavailable != nil {
			text += ", at most " + r.MaxUnavailable.String()
		}
	}
	for _, d := range s.Spec.Members {
		text += fmt.Sprintf(", of %v %v %v %v", d.Ordinals, d.Env, d.Args, d.Resources != nil)
	}
	if s.Paused {
		text += ", paused"
	}
	if s.Spec.Disruption != nil {
		text += ", with a floor"
	}
	if s.Spec.Ordinals != nil && len(s.Spec.Ordinals.Reserved) > 0 {
		text += fmt.Sprint(", without ", s.Spec.Ordinals.Reserved)
	}
	if p := s.Spec.Retention; p != nil {
		text += fmt.Sprintf(", %s/%s", p.WhenScaled, p.WhenDeleted)
	}
	if l := s.Spec.NodeLoss; l != nil {
		text += fmt.Sprintf(", %s after %s", l.Policy, l.After.Duration)
	}
	if s.Orphaned {
		text += ", orphaned"
	}
	if s.Deleting {
		text += ", deleting"
	}
	return text
}

// set is the stored one as the user reads it.
func (w *Cluster) set(ref spec.SetRef) (set *records.Set, rev store.Rev) {
	v := w.view()
	return v.Set(ref), v.ModRev(store.SetKey(ref))
}

// anything does one thing that a person may do.
func (w user) anything() bool {
	ref := w.someRef()
	old, rev := w.set(ref)
	if old == nil {
		w.createSet(ref)
		return true
	}
	if old.Deleting {
		return false
	}
	if w.chance(6) {
		return w.askRestart(ref)
	}
	w.apply(old, rev, w.edit)
	return true
}

// edit changes one thing of a set, sometimes more.
func (w user) edit(set *records.Set) {
	u := &set.Spec.UpdateStrategy
	for again := true; again; again = w.chance(3) {
		switch w.r.IntN(20) {
		case 0, 1, 2:
			w.scale(set)
		case 3, 4, 5, 6:
			set.Spec.Template.Spec.Containers[0].Image = images[w.r.IntN(len(images))]
		case 7:
			p := int32(w.r.IntN(4))
			rolling(u).Partition = &p
		case 8:
			limit := scalar.IntOrPercent{Number: int32(1 + w.r.IntN(3))}
			if w.chance(3) {
				limit = scalar.IntOrPercent{Number: int32(10 * (1 + w.r.IntN(10))), Percent: true}
			}
			rolling(u).MaxUnavailable = &limit
		case 9:
			*u = spec.UpdateStrategy{Type: spec.OnDeleteStrategy}
		case 10:
			*u = spec.UpdateStrategy{}
		case 11:
			set.Spec.PodManagementPolicy = []spec.ManagementPolicy{spec.OrderedReady, spec.Parallel}[w.r.IntN(2)]
		case 12:
			set.Spec.MinReadySeconds = int32(w.r.IntN(6))
		case 13:
			limit := int32(w.r.IntN(3))
			set.Spec.RevisionHistoryLimit = &limit
		case 14:
			u.ReplaceBroken = []string{"", spec.ReplaceBrokenNever}[w.r.IntN(2)]
		case 15:
			if w.chance(3) {
				set.Deleting = true
			}
		case 16, 17:
			set.Paused = !set.Paused && w.chance(2)
		case 18:
			*u = spec.UpdateStrategy{Type: spec.RecreateStrategy}
		case 19:
			set.Spec.Disruption = w.floor()
		}
	}
}

// floor is how many members must stay, or none of it.
func (w user) floor() *spec.Disruption {
	limit := &scalar.IntOrPercent{Number: int32(w.r.IntN(4))}
	if w.chance(3) {
		limit = &scalar.IntOrPercent{Number: int32(10 * w.r.IntN(11)), Percent: true}
	}
	switch w.r.IntN(3) {
	case 0:
		return &spec.Disruption{MinAvailable: limit}
	case 1:
		return &spec.Disruption{MaxUnavailable: limit}
	}
	return nil
}

func rolling(u *spec.UpdateStrategy) *spec.RollingUpdate {
	u.Type = ""
	if u.RollingUpdate == nil {
		u.RollingUpdate = &spec.RollingUpdate{}
	}
	return u.RollingUpdate
}

// askRestart asks for the restart of one life, as control does.
func (w user) askRestart(ref spec.SetRef) bool {
	var m *records.Member
	if slots := w.view().World(ref).Slots; len(slots) > 0 {
		m = slots[w.r.IntN(len(slots))].Member
	}
	if set, _ := w.set(ref); m == nil || m.Goal != records.GoalRun || rules.Orphaned(set) {
		return false
	}
	w.note("the user asks for the restart of %s %s", m.ID.MemberName(), m.Token)
	w.commit(store.Put(store.RequestKey(m.ID), store.Encode(records.Request{ID: m.ID, Token: m.Token, Now: w.chance(8)})))
	return true
}

// cordon keeps new lives off a node, or lets them come again.
func (n *node) cordon() bool { return n.setCordon(func(old bool) bool { return !old }) }

func (n *node) setCordon(to func(bool) bool) bool {
	var record records.Node
	for _, x := range n.w.view().Nodes() {
		if x.Node.Name == n.name {
			record = *x.Node
		}
	}
	if record.Name == "" || record.Cordon == to(record.Cordon) {
		return false
	}
	record.Cordon = to(record.Cordon)
	if !record.Cordon {
		record.Drain = nil
	}
	n.w.commit(store.Put(store.NodeKey(n.name), store.Encode(record)))
	return true
}

// drain has the members of a node stop, now and then all at once.
func (n *node) drain() bool {
	for _, x := range n.w.view().Nodes() {
		if x.Node.Name != n.name || x.Node.Drain != nil {
			continue
		}
		record := *x.Node
		record.Cordon, record.Drain = true, &records.Drain{AtOnce: n.w.chance(4)}
		n.w.note("%s is to be drained (at once: %v)", n.name, record.Drain.AtOnce)
		n.w.commit(store.Put(store.NodeKey(n.name), store.Encode(record)))
		return true
	}
	return false
}
