package sim

import (
	"slices"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/server/plan"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/store"
	"github.com/stead-project/stead/test/sim/rules"
)

// The PersistentVolumeClaims of the namespace, which several sets may mount: one that any number of
// members may have on its node, and one that one life at a time may have.
const (
	manyClaim = "pool"
	oneClaim  = "lone"
)

const claimNamespace = spec.Namespace("default")

var claimObjects = []string{manyClaim, oneClaim}

// share has members of this run mount PersistentVolumeClaims, mostly. It is the third choice of every run.
func (w *Cluster) share() bool {
	w.shares = !w.chance(3)
	if !w.shares {
		return true
	}
	for _, name := range claimObjects {
		w.claimRefs = append(w.claimRefs, spec.ClaimIdentity(claimNamespace, name).Ref())
		w.classOf[claimOfSet{claim: name}] = []string{spec.LocalClass, diskClass}[w.r.IntN(2)]
		user{w}.createClaim(name)
	}
	for _, ref := range w.refs {
		user{w}.changeSet(ref, user{w}.mounts)
	}
	return true
}

// withClaims are the sets, and the identities of the claims, which have volumes as sets have.
func (w *Cluster) withClaims() []spec.SetRef { return slices.Concat(w.refs, w.claimRefs) }

// someClaim is the reference of one of the claims; false: this run has none.
func (w *Cluster) someClaim() (spec.SetRef, bool) {
	if !w.shares {
		return spec.SetRef{}, false
	}
	return w.claimRefs[w.r.IntN(len(w.claimRefs))], true
}

// claimRecord is a stored claim; nil: there is none.
func (w *Cluster) claimRecord(ref spec.SetRef) (*records.ClaimRecord, store.Rev) {
	name, _ := ref.ClaimName()
	v := w.view()
	return v.World(ref).Claim.Record, v.ModRev(store.ClaimKey(ref.Namespace, name))
}

func (w user) createClaim(name string) {
	class := w.classOf[claimOfSet{claim: name}]
	c := records.ClaimRecord{Spec: claimOf(1000)}
	c.Namespace, c.Name, c.Spec.StorageClassName = claimNamespace, name, &class
	c.Spec.AccessModes = []string{spec.ReadWriteOnce}
	if name == oneClaim {
		c.Spec.AccessModes = []string{spec.ReadWriteOncePod}
	}
	w.putClaim(c, 0)
}

func (w user) putClaim(c records.ClaimRecord, seen store.Rev) {
	w.note("the user asks for the claim %s of %d bytes, deleting %v", c.Name, c.Spec.SizeBytes(), c.Deleting)
	key := store.ClaimKey(c.Namespace, c.Name)
	w.write(store.Txn{If: []store.Compare{store.Seen(key, seen)}, Then: []store.Op{store.Put(key, store.Encode(c))}})
}

// claims does something with a claim, or with its volume, as control lets it.
func (w user) claims() bool {
	ref, ok := w.someClaim()
	if !ok {
		return false
	}
	name, _ := ref.ClaimName()
	c, rev := w.claimRecord(ref)
	switch n := w.r.IntN(10); {
	case n < 2:
		return w.bringBackOf(ref)
	case n < 4:
		return w.sayLostOf(ref)
	case c == nil && n == 4:
		return w.giveUpClaim(ref)
	case c == nil:
		w.createClaim(name)
		w.count("claim applied")
		return true
	case c.Deleting:
		return false
	case n == 5:
		grown := spec.Clone(*c)
		grown.Spec.Resources = claimOf(c.Spec.Resources.Requests["storage"].Milli + 1000).Resources
		w.putClaim(grown, rev)
		return true
	}
	gone := *c
	gone.Deleting = true
	w.putClaim(gone, rev)
	w.count("claim deleted")
	return true
}

// giveUpClaim asks for the end of the volume of a claim that is gone.
func (w user) giveUpClaim(ref spec.SetRef) bool {
	x := w.view().World(ref)
	for vol, s := range volumesOf(x) {
		if q := request(s, vol, records.VerbReclaim); plan.Refusal(x, q, nil) == "" {
			return w.ask("gives up volume %s of %s", q)
		}
	}
	return false
}

// mounts has the members of a set mount a claim, or another one, or none.
func (w user) mounts(s *records.Set) {
	mount(s)
	switch n := w.r.IntN(12); {
	case n < 8:
		mount(s, claimObjects[n%2])
	case n < 10:
		mount(s, claimObjects...)
	}
	if w.chance(2) { // nothing else keeps its members to a node
		s.Spec.VolumeClaimTemplates = nil
	}
}

// remount is mounts, if there are claims in this run.
func (w user) remount(s *records.Set) {
	if w.shares {
		w.mounts(s)
	}
}

// mount has the members of a set mount these claims and no others.
func mount(s *records.Set, names ...string) {
	m := &s.Spec.Template.Spec
	m.Volumes = slices.DeleteFunc(m.Volumes, func(v spec.VolumeMedia) bool { return v.PersistentVolumeClaim != nil })
	c := &m.Containers[0]
	c.VolumeMounts = slices.DeleteFunc(c.VolumeMounts, func(v spec.VolumeMount) bool { return slices.Contains(claimObjects, v.Name) })
	for _, name := range names {
		m.Volumes = append(m.Volumes, spec.VolumeMedia{Name: name, PersistentVolumeClaim: &spec.ClaimVolume{ClaimName: name}})
		c.VolumeMounts = append(c.VolumeMounts, spec.VolumeMount{Name: name, MountPath: "/" + name})
	}
}

// changeSet edits a set that is not being deleted.
func (w user) changeSet(ref spec.SetRef, edit func(*records.Set)) {
	if old, rev := w.set(ref); old != nil && !old.Deleting {
		w.apply(old, rev, edit)
	}
}

// turnClaim has a leader plan for one of the claims.
func (w *Cluster) turnClaim() bool {
	ref, ok := w.someClaim()
	if !ok {
		return false
	}
	for _, s := range w.servers {
		if s.up && s.term != nil {
			s.turn(ref)
			return true
		}
	}
	return false
}

// mendMounts has a set mount only what its members can have: one claim that stays, whose volume is where
// it was, for members that no other volume keeps elsewhere; one for a single life has one member here.
func (w *Cluster) mendMounts(set *records.Set) {
	names := set.Spec.Template.Spec.ClaimNames()
	if len(names) == 0 {
		return
	}
	x := w.view().World(set.Ref)
	own := len(set.Spec.VolumeClaimTemplates) > 0 || slices.ContainsFunc(x.Slots, func(s plan.Slot) bool { return len(s.Volumes) > 0 })
	if own || len(names) > 1 || !w.canMount(names[0]) || names[0] == oneClaim && !w.alone(set, &x) {
		mount(set)
		return
	}
	w.count("claim mounted as faults are mended")
}

func (w *Cluster) canMount(name string) bool {
	ref := spec.ClaimIdentity(claimNamespace, name).Ref()
	c, _ := w.claimRecord(ref)
	if c == nil || c.Deleting || len(w.view().World(ref).Claim.Slot.Asked) > 0 {
		return false
	}
	for vol := range volumesOf(w.view().World(ref)) {
		if n := w.machine(vol.Node); n == nil || vol.Fate != records.FateKeep || !n.there(vol) || w.judge.excused(n, vol.UID) {
			return false
		}
	}
	return true
}

// alone: the set is the first one, and has one member, which is the one that it had.
func (w *Cluster) alone(set *records.Set, x *plan.World) bool {
	wanted := rules.Ordinals(set)
	return set.Ref == w.refs[0] && len(wanted) == 1 && !slices.ContainsFunc(x.Slots, func(s plan.Slot) bool {
		return s.Member != nil && s.ID.Ordinal != wanted[0]
	})
}
