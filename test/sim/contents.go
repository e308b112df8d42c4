package sim

import (
	"fmt"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/records/moves"
	"github.com/stead-project/stead/spec"
)

// fileCount is of how many files a volume is made, each of which is written alone: what is copied while its member writes is
// of several moments.
const fileCount = 3

// tree is the directory of a volume, wherever it lies: each file has the number of its last write. The seal is in the owner
// file, and names the move; "": it is not sealed.
type tree struct {
	files [fileCount]int
	seal  moves.MoveID
	// compared: it is a copy of which the target of a move has noted that it is all of the sealed source.
	compared bool
}

// sum is that of the content.
func (t *tree) sum() string {
	return fmt.Sprintf("%016x%016x%016x%016x", t.files[0], t.files[1], t.files[2], 0)
}

// mounted is a volume as a container has it: whatever is renamed later.
type mounted struct {
	id   records.VolumeID
	tree *tree
}

// mountsOf are the volumes of a life that belong to its identity alone, as a container that is created finds them.
func (n *node) mountsOf(id spec.Identity, token spec.Token) (list []mounted) {
	for _, v := range n.lifeOf(id, token).Member.Volumes {
		if d := n.classes[v.Class].shows.dirs[volumeKey{v.Owner(id), v.Claim}]; !v.Object && d.id == v.ID {
			list = append(list, mounted{v.ID, d.tree})
		}
	}
	return list
}

// write has a member write to its volumes, and know that it is on disk.
func (b *box) write() {
	for _, m := range b.mounts {
		b.p.n.w.judge.writes(b, m)
	}
}

// lineage is the truth about the content of a volume, and of its copies that moves make: what its members were told is on disk.
type lineage struct {
	newest [fileCount]int
	writes int
	// anew: a person put back what was there once, or the disk died: what is found next is right.
	anew   bool
	byHand bool // an operator put it in its place, or broke its seal, after a restore
	// back: a move of it went back to what it was when its member was stopped, in place of lost, on which a life may begin only when a
	// store is restored that does not know that, before one has begun on the other.
	back, begun bool
	lost        [fileCount]int
	// fills: who did that has all that was written be there before its next life begins.
	fills bool
}

// lineage is that of a volume, which its copies share.
func (j *judge) lineage(id records.VolumeID) *lineage { return entry(j.lineages, id) }

// writes is one write of a process.
func (j *judge) writes(b *box, m mounted) {
	l := j.lineage(m.id)
	if m.tree.seal != "" {
		j.w.fail("moves", "%s %s writes to volume %s on %s, which the move %s sealed", b.p.id, b.alive, m.id, b.p.n.name, m.tree.seal)
	}
	l.writes++
	l.begun = true
	m.tree.files[l.writes%fileCount] = l.writes
	l.newest = m.tree.files
}

// finds judges that a process begins on all that was ever written to its volumes, and on none that is sealed.
func (j *judge) finds(b *box, token spec.Token) {
	for _, m := range b.mounts {
		l := j.lineage(m.id)
		switch {
		case m.tree.seal != "":
			j.w.fail("moves", "%s %s begins on %s with volume %s, which the move %s sealed", b.p.id, token, b.p.n.name, m.id, m.tree.seal)
		case l.fills:
			m.tree.files, l.fills = l.newest, false
		case l.anew || j.excused(b.p.n, m.id):
			l.newest, l.anew = m.tree.files, false
		case l.undone(m.tree):
			l.newest, l.begun = m.tree.files, true
		case m.tree.files != l.newest:
			j.w.fail("moves", "%s %s begins on %s with volume %s, which has %v; %v was written", b.p.id, token, b.p.n.name, m.id, m.tree.files, l.newest)
		}
	}
}

// undone: a tree is what went back, or that of which it did, and no life has begun on either since.
func (l *lineage) undone(t *tree) bool { return l.back && !l.begun && t.files == l.lost }

// putByHand notes that an operator made this the volume after a restore.
func (l *lineage) putByHand() { l.byHand, l.fills = true, true }

// holdsNewest: a tree has all that was written to a volume, as far as anybody can say.
func (j *judge) holdsNewest(id records.VolumeID, t *tree) bool {
	l := j.lineage(id)
	return l.anew || l.fills || t != nil && (t.files == l.newest || l.undone(t))
}
