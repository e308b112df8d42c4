package sim

import (
	"slices"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/test/sim/rules"
)

// claimOfSet names a claim of a set.
type claimOfSet struct {
	ref   spec.SetRef
	claim string
}

// choose has the sets' volumes be of other storage classes than the local one, of which
// no disk is ever away. It is the first choice of every run.
func (w *Cluster) choose() bool {
	for _, ref := range w.refs {
		for _, claim := range claimNames {
			w.classOf[claimOfSet{ref, claim}] = allClasses[w.r.IntN(len(allClasses))]
		}
		old, rev := w.set(ref)
		if old == nil || old.Generation > 1 || len(old.Spec.VolumeClaimTemplates) == 0 {
			continue
		}
		set := spec.Clone(*old)
		w.classify(&set)
		w.putSet(set, rev)
	}
	w.fences = w.chance(2)
	return true
}

// classify gives claims without a class the one that was chosen.
func (w *Cluster) classify(set *records.Set) {
	for i := range set.Spec.VolumeClaimTemplates {
		c := &set.Spec.VolumeClaimTemplates[i]
		if class, chosen := w.classOf[claimOfSet{set.Ref, c.Metadata.Name}]; chosen && c.Spec.StorageClassName == nil {
			c.Spec.StorageClassName = &class
		}
	}
}

// unmount has the disk of a class not be there for a while, as after a boot without it:
// what shows is an empty mount point.
func (n *node) unmount() bool {
	name := []string{diskClass, diskClass, rules.SharedClass}[n.w.r.IntN(3)]
	c := n.classes[name]
	if c.away() {
		return false
	}
	c.shows = c.under
	n.w.note("%s: the disk of class %s is away", n.name, name)
	return true
}

// mount brings a disk back.
func (n *node) mount() (did bool) {
	for _, name := range allClasses {
		if c := n.classes[name]; c.away() && c.disk != nil {
			c.shows, did = c.disk, true
			n.w.note("%s: the disk of class %s is back", n.name, name)
		}
	}
	return did
}

// killDisk ends a disk with all that is on it.
func (n *node) killDisk() bool {
	w := n.w
	c := n.classes[diskClass]
	if c.disk == nil {
		return false
	}
	for _, d := range c.disk.dirs {
		w.judge.volume(d.id).destroyed = true
	}
	for id := range n.bins(c.disk) {
		w.judge.volume(id).destroyed = true
	}
	for _, copies := range c.disk.staging {
		for id := range copies {
			w.judge.volume(id).destroyed = true
		}
	}
	c.disk, c.shows = nil, c.under
	w.note("%s: the disk of class %s dies", n.name, diskClass)
	for _, id := range sortedKeys(n.places) { // what wrote to it fails
		l, p := n.tmpfs.lives[id], n.places[id]
		if p.alive() == l.Member.Token && slices.ContainsFunc(l.Member.Volumes, func(v records.MemberVolume) bool { return v.Class == diskClass }) {
			for _, b := range p.running() {
				b.exits = w.clock
			}
		}
	}
	return true
}

// replaceDisk is the operator's part: a new disk, and stead agent accept-disk.
func (n *node) replaceDisk() bool {
	c := n.classes[diskClass]
	if c.disk != nil {
		return false
	}
	c.disk = newFileSystem()
	c.shows = c.disk
	n.w.note("%s: a new disk is accepted for class %s", n.name, diskClass)
	return true
}
