package sim

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/records/moves"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/test/sim/rules"
)

// volumeKey is the place of a volume: one a claim of an identity.
type volumeKey struct {
	id    spec.Identity
	claim spec.ClaimName
}

// dir is a volume in its place, as its owner file has it.
type dir struct {
	id     records.VolumeID
	number int
	class  string
	tree   *tree
}

// bin is a volume in the trash.
type bin struct {
	dir
	key       volumeKey
	turn      int // of the order by which it came there, and its size
	sizeBytes int64
	left      time.Duration // of its time in the trash, at since
	since     time.Time
	moved     time.Time     // and the truth: when it came there,
	least     time.Duration // and how long it is to lie there
}

// fileSystem holds the directory of a storage class.
type fileSystem struct {
	dirs  map[volumeKey]dir
	trash map[spec.NodeName]map[records.VolumeID]*bin // of each node that uses it
	// staging is what moves copy to this disk, by the id that it gets when it arrives.
	staging map[moves.MoveID]map[records.VolumeID]*tree
}

func newFileSystem() *fileSystem {
	return &fileSystem{dirs: map[volumeKey]dir{}, trash: map[spec.NodeName]map[records.VolumeID]*bin{}, staging: map[moves.MoveID]map[records.VolumeID]*tree{}}
}

// places are those where something is, in order.
func (fs *fileSystem) places() []volumeKey {
	return slices.SortedFunc(maps.Keys(fs.dirs), func(a, b volumeKey) int {
		return cmp.Or(a.id.Compare(b.id), cmp.Compare(a.claim, b.claim))
	})
}

// diskClass is a storage class of every node beside spec.LocalClass and rules.SharedClass: on a
// disk of its own, which is mounted.
const diskClass = "ssd"

var allClasses = []string{spec.LocalClass, rules.SharedClass, diskClass}

// class is a storage class of a node. The disk is known again by its mark, which the node
// has noted below its root.
type class struct {
	disk  *fileSystem // that was first used; nil: it died
	shows *fileSystem // what its directory shows now
	under *fileSystem // and with nothing mounted
}

func (w *Cluster) newClasses() map[string]*class {
	classes := map[string]*class{}
	for _, name := range allClasses {
		disk := newFileSystem()
		if name == rules.SharedClass {
			disk = w.shared
		}
		classes[name] = &class{disk: disk, shows: disk, under: newFileSystem()}
	}
	return classes
}

// away: what its directory shows is not its disk.
func (c *class) away() bool { return c.shows != c.disk }

// bins are the node's own trash on a file system.
func (n *node) bins(fs *fileSystem) map[records.VolumeID]*bin {
	if fs.trash[n.name] == nil {
		fs.trash[n.name] = map[records.VolumeID]*bin{}
	}
	return fs.trash[n.name]
}

// trashed are all volumes in the node's trash, in order: the truth, also of disks that are away.
func (n *node) trashed() (list []*bin) {
	for _, name := range allClasses {
		if disk := n.classes[name].disk; disk != nil {
			for _, b := range n.bins(disk) {
				list = append(list, b)
			}
		}
	}
	slices.SortFunc(list, func(a, b *bin) int {
		if a.id < b.id {
			return -1
		}
		return 1
	})
	return list
}

// hasTrashed: the volume lies in the node's trash.
func (n *node) hasTrashed(id records.VolumeID) bool {
	return slices.ContainsFunc(n.trashed(), func(b *bin) bool { return b.id == id })
}

// trashes: a volume lies in the trash of any node on a file system.
func (w *Cluster) trashes(fs *fileSystem, id records.VolumeID) bool {
	return slices.ContainsFunc(w.nodes, func(n *node) bool { return n.bins(fs)[id] != nil })
}

// there: a volume stands in its place on the disk of its class, wherever that is.
func (n *node) there(v *records.Volume) bool {
	disk := n.classes[v.Class].disk
	return disk != nil && disk.dirs[volumeKey{v.ID, v.Claim}].id == v.UID
}
