package plants

import (
	"maps"
	"slices"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/server/plan"
	"github.com/stead-project/stead/spec/causes"
)

// storagePlants are about disks, volumes that are lost or shared, nodes that lie about them,
// and names.
var storagePlants = []Plant{
	// S11: a volume is made once, on the disk of its class; what is there is not lost.
	{Name: "makes-a-volume-twice", Judges: "made once", ForgetsMade: true, TakesAnyDisk: true, Blind: "volumes, progress", Often: disks},
	{Name: "forgets-what-it-made", Rare: true, Judges: "made once", ForgetsMade: true, Often: disks},
	{Name: "takes-any-disk", Judges: "volumes, claims, shares", TakesAnyDisk: true, Often: disks},
	{Name: "erases-what-is-away", Judges: "volumes, claims, shares", ForgetsTrash: true, Often: disks},
	{Name: "believes-a-loss", Judges: "volumes, claims, shares", BelievesLost: true, Often: disks},
	{Name: "loses-at-once", Judges: "volumes, claims, shares", Say: eachFate(func(_ plan.World, v *records.Volume) {
		if v.Fate == records.FateLost {
			v.Fate = records.FateReclaiming
		}
	}), Often: disks, Blind: "progress"},
	{Name: "ends-for-a-loss-that-nobody-sees", Judges: "churn", See: eachSlot(everyVolumeMissing), Often: disks},
	{Name: "counts-volumes-anew", Judges: "volumes, data, claims", Say: each(func(_ plan.World, a *plan.Start) {
		a.Volumes = slices.Clone(a.Volumes)
		for i := range a.Volumes {
			if a.Volumes[i].ID != a.Member.ID {
				continue // of a claim
			}
			a.Volumes[i].Number = 1
			a.Identity.VolumeNumbers = maps.Clone(a.Identity.VolumeNumbers)
			a.Identity.VolumeNumbers[a.Volumes[i].Claim] = 1
		}
		a.Member.Volumes = slices.Clone(a.Member.Volumes)
		for i := range a.Member.Volumes {
			if slices.ContainsFunc(a.Volumes, func(v records.Volume) bool { return v.UID == a.Member.Volumes[i].ID }) {
				a.Member.Volumes[i].Number = 1
			}
		}
	}), Often: disks},
	// S14: volumes that are shared.
	{Name: "shares-what-is-local", Judges: "volumes, claims, shares, churn, moves", See: everyVolumeShared, Often: []string{"cordon", "power-off", "unmount"}, Blind: "made once"},
	{Name: "fears-no-late-write", Judges: "proof, reasons", See: everyVolumeFenced, Often: silences},
	// S21: a node speaks for itself.
	{Name: "believes-any-node", Rare: true, Judges: "volumes, progress, claims, shares", BelievesAnyNode: true, Often: []string{"lie", "give-up", "bring-back", "retain", "scale"}},
	// Names.
	{Name: "forgets-the-former-name", Judges: "names", Say: func(w plan.World, p *plan.Plan) {
		if w.Set != nil {
			p.Status.ServiceName = w.Set.Service()
		}
	}, Often: []string{"rename"}},
}

var disks = []string{"unmount", "mount", "kill-disk", "replace-disk", "lost", "retain", "scale", "reboot"}

// everyVolume changes what is known of volumes, and of those that lives have.
func everyVolume(w *plan.World, change func(*records.Volume), mount func(*records.MemberVolume)) {
	for i := range w.Slots {
		s := &w.Slots[i]
		s.Volumes = maps.Clone(s.Volumes)
		for claim, v := range s.Volumes {
			change(own(&v))
			s.Volumes[claim] = v
		}
		if s.Member == nil {
			continue
		}
		own(&s.Member).Volumes = slices.Clone(s.Member.Volumes)
		for j := range s.Member.Volumes {
			mount(&s.Member.Volumes[j])
		}
	}
}

// everyVolumeShared takes volumes that are on one node for such as go where their member begins.
func everyVolumeShared(w *plan.World) {
	everyVolume(w, func(v *records.Volume) { v.Shared = true }, func(v *records.MemberVolume) { v.Shared = true })
	for i := range w.Nodes {
		if n := &w.Nodes[i]; n.Facts != nil {
			own(&n.Facts).SharedClasses = n.Facts.Classes
		}
	}
}

// everyVolumeFenced takes storage for such as takes no late write of a life that is over.
func everyVolumeFenced(w *plan.World) {
	everyVolume(w, func(*records.Volume) {}, func(v *records.MemberVolume) { v.Fenced = true })
}

// everyVolumeMissing takes any life of which a person says that its volume is lost for one
// that never had it.
func everyVolumeMissing(_ *plan.World, s *plan.Slot) {
	if s.Report != nil && len(s.Volumes) > 0 {
		own(&s.Report).Cause, s.Report.Phase = causes.VolumeMissing, records.PhasePreparing
		s.Asked = askedOfAll(s, records.VerbLost)
	}
}
