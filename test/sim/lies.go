package sim

import (
	"fmt"

	"github.com/stead-project/stead/proto"
	"github.com/stead-project/stead/proto/wire"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/spec/causes"
	"github.com/stead-project/stead/store"
)

// lie has a node say of volumes what need not be so: of its own, of other nodes', of such
// that never were; or say again what it said before.
func (x *stream) lie() bool {
	w := x.n.w
	m := &proto.VolumeReports{Full: w.chance(6)}
	if old := x.n.uttered; len(old) > 0 && w.chance(3) {
		m = old[w.r.IntN(len(old))]
		w.count("fault: late or twice said of a volume")
	} else {
		m.ReportsJson = got(wire.Documents(w.lies(x.n)))
		w.count("fault: lie about a volume")
	}
	x.n.lied(m)
	x.utter(m)
	return true
}

// lied notes of what a message speaks: of all the node's volumes, if that is all that its
// trash is to hold.
func (n *node) lied(m *proto.VolumeReports) {
	for _, r := range got(wire.ToDocuments[records.VolumeReport](m.GetReportsJson())) {
		n.lies[r.Volume] = true
		n.w.note("%s says of volume %s of %s that it is %s, turn %d", n.name, r.Volume, r.ID.MemberName(), r.State, r.Turn)
	}
	if m.GetFull() {
		n.lies[""] = true // also of what it said and the server has not stored
		for _, r := range n.w.view().VolumeReportsOn(n.name) {
			n.lies[r.Volume] = true
		}
	}
}

// lies are statements about some volumes, each of any kind.
func (w *Cluster) lies(n *node) (lies []records.VolumeReport) {
	var about []records.VolumeReport
	for _, ref := range w.refs {
		for vol := range volumesOf(w.view().World(ref)) {
			about = append(about, records.VolumeReport{ID: vol.ID, Claim: vol.Claim, Volume: vol.UID, Number: vol.Number, Class: vol.Class, Turn: vol.Turn})
		}
	}
	for _, x := range w.nodes {
		for _, r := range w.view().VolumeReportsOn(x.name) {
			about = append(about, *r)
		}
	}
	about = append(about, records.VolumeReport{
		ID: spec.Identity{Namespace: "default", Set: w.someRef().Name, Ordinal: w.r.IntN(4)}, Claim: spec.ClaimName(claimNames[0]),
		Volume: records.VolumeID(fmt.Sprintf("%032x", 1<<40+w.r.IntN(20))), Number: 1 + w.r.IntN(3), Class: allClasses[w.r.IntN(len(allClasses))],
	})
	states := []records.VolumeState{records.VolumeTrashed, records.VolumeFound, records.VolumeAbsent, records.VolumeRefused, records.VolumeErased, records.VolumeLeft}
	for range 1 + w.r.IntN(3) {
		r := about[w.r.IntN(len(about))]
		r.State, r.Node, r.Unproven = states[w.r.IntN(len(states))], n.name, false
		r.Cause, r.Message = []causes.Cause{"", causes.VolumeMissing}[w.r.IntN(2)], "a lie"
		r.Turn = max(0, r.Turn+w.r.IntN(3)-1)
		lies = append(lies, r)
	}
	return lies
}

// believe is a plant: what a node says of volumes takes the place of what another said.
func (x *stream) believe(m *proto.FromNode) {
	if !x.n.w.plant.BelievesAnyNode || m.GetVolumes() == nil {
		return
	}
	for _, r := range got(wire.ToDocuments[records.VolumeReport](m.GetVolumes().GetReportsJson())) {
		old := x.n.w.view().VolumeReport(r.ID, r.Claim, r.Volume)
		r.Node = x.n.name
		if old != nil && old.Node != x.n.name && r.State != records.VolumeErased {
			x.n.w.commit(store.Put(store.VolumeReportKey(r.ID, r.Claim, r.Volume), store.Encode(r)))
		}
	}
}
