package sim

import (
	"fmt"
	"maps"
	"slices"

	"github.com/stead-project/stead/proto"
	"github.com/stead-project/stead/proto/wire"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/server/cache"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/spec/causes"
	"github.com/stead-project/stead/store"
)

// lie has a node say of volumes what need not be so: of its own, of other nodes', of such
// that never were; or say again what it said before.
func (w *Cluster) lie() bool {
	x := w.some(anySession)
	if x == nil {
		return false
	}
	m := &proto.VolumeReports{Full: w.chance(6)}
	if old := x.n.uttered; len(old) > 0 && w.chance(3) {
		m = old[w.r.IntN(len(old))]
		w.count("fault: late or twice said of a volume")
	} else {
		docs, err := wire.Documents(w.lies(x.n))
		if err != nil {
			panic(err)
		}
		m.ReportsJson = docs
		w.count("fault: lie about a volume")
	}
	x.n.lied(m)
	x.utter(m)
	return true
}

// lied notes of what a message speaks: of all the node's volumes, if that is all that its
// trash is to hold.
func (n *node) lied(m *proto.VolumeReports) {
	reports, err := wire.ToDocuments[records.VolumeReport](m.GetReportsJson())
	if err != nil {
		panic(err)
	}
	for _, r := range reports {
		n.lies[r.Volume] = true
		n.w.note("%s says of volume %s of %s that it is %s, turn %d", n.name, r.Volume, r.ID.MemberName(), r.State, r.Turn)
	}
	if m.GetFull() {
		n.lies[""] = true // also of what it said and the server has not stored
		n.w.view(func(v cache.View) {
			for _, r := range v.VolumeReportsOn(n.name) {
				n.lies[r.Volume] = true
			}
		})
	}
}

// lies are statements about some volumes, each of any kind.
func (w *Cluster) lies(n *node) (lies []records.VolumeReport) {
	var about []records.VolumeReport
	w.view(func(v cache.View) {
		for _, ref := range w.refs {
			for _, s := range v.World(ref).Slots {
				for _, claim := range slices.Sorted(maps.Keys(s.Volumes)) {
					vol := s.Volumes[claim]
					about = append(about, records.VolumeReport{ID: s.ID, Claim: claim, Volume: vol.UID, Number: vol.Number, Class: vol.Class, Turn: vol.Turn})
				}
			}
		}
		for _, x := range w.nodes {
			for _, r := range v.VolumeReportsOn(x.name) {
				about = append(about, *r)
			}
		}
	})
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
	reports, err := wire.ToDocuments[records.VolumeReport](m.GetVolumes().GetReportsJson())
	if err != nil {
		panic(err)
	}
	for _, r := range reports {
		others := false
		x.n.w.view(func(v cache.View) {
			old := v.VolumeReport(r.ID, r.Claim, r.Volume)
			others = old != nil && old.Node != x.n.name
		})
		if r.Node = x.n.name; others && r.State != records.VolumeErased {
			x.n.w.commit(store.Put(store.VolumeReportKey(r.ID, r.Claim, r.Volume), store.Encode(r)))
		}
	}
}
