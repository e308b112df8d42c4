package sim

import (
	"maps"
	"slices"
	"time"

	"github.com/stead-project/stead/proto"
	"github.com/stead-project/stead/proto/wire"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
)

// duty is what the agent was told to do with a volume, by a server of that epoch.
type duty struct {
	order  records.VolumeOrder
	epoch  int64
	looked bool // nothing of its member was left, a moment ago
	due    time.Time
	done   bool
}

// stopTrash is what a reboot makes of the time in the trash: it may be counted again.
func (n *node) stopTrash() {
	for _, b := range n.trashed() {
		if n.w.chance(2) {
			b.left = max(0, b.left-n.w.clock.Sub(b.since))
		}
	}
}

func (n *node) startTrash() {
	for _, b := range n.trashed() {
		b.since = n.w.clock
	}
}

// beginTrash forgets what was told in the session before, and tells first what lies in
// the trash, as reclaimer.begin does: that is all of it unless a disk is away.
func (x *session) beginTrash() {
	n := x.n
	clear(n.agent.duties)
	clear(n.agent.said)
	var reports []records.VolumeReport
	whole := true
	for _, b := range n.trashed() {
		if _, cause := n.open(b.class); cause == "" {
			reports = append(reports, records.VolumeReport{
				ID: b.key.id, Claim: b.key.claim, Volume: b.id, Number: b.number, Class: b.class, Turn: b.turn, State: records.VolumeTrashed,
			})
		}
	}
	for _, name := range allClasses {
		whole = whole && !n.classes[name].away()
	}
	x.sendVolumes(whole, reports)
}

func (x *session) sendVolumes(full bool, reports []records.VolumeReport) {
	docs, err := wire.Documents(reports)
	if err != nil {
		panic(err)
	}
	x.utter(&proto.VolumeReports{Full: full, ReportsJson: docs})
}

func (x *session) utter(m *proto.VolumeReports) {
	if m.GetFull() || len(m.GetReportsJson()) > 0 {
		x.n.uttered = append(x.n.uttered[max(0, len(x.n.uttered)-7):], m)
	}
	x.up = append(x.up, &proto.FromNode{Kind: &proto.FromNode_Volumes{Volumes: m}})
}

// sendSaid sends what is said of volumes; false: nothing.
func (x *session) sendSaid() bool {
	said := x.n.agent.said
	var reports []records.VolumeReport
	for _, id := range slices.Sorted(maps.Keys(said)) {
		reports = append(reports, said[id])
	}
	clear(said)
	if len(reports) > 0 {
		x.sendVolumes(false, reports)
	}
	return len(reports) > 0
}

// takeVolumes takes orders; a full list replaces all.
func (x *session) takeVolumes(m *proto.Wanted) {
	orders, err := wire.ToDocuments[records.VolumeOrder](m.GetVolumesJson())
	if err != nil {
		panic(err)
	}
	duties := x.n.agent.duties
	if m.GetFull() {
		clear(duties)
	}
	for _, o := range orders {
		if old := duties[o.Volume]; old == nil || old.order != o {
			duties[o.Volume] = &duty{order: o, epoch: wire.ToSequence(m.GetSequence()).Epoch}
		}
	}
}

// reclaim has an agent do something of what it was told of volumes.
func (w *World) reclaim() bool {
	at := w.r.IntN(len(w.nodes))
	for i := range w.nodes {
		if n := w.nodes[(at+i)%len(w.nodes)]; n.agent != nil && n.reclaim() {
			return true
		}
	}
	return false
}

func (n *node) reclaim() bool {
	a := n.agent
	for _, id := range slices.Sorted(maps.Keys(a.duties)) {
		d := a.duties[id]
		n.takeAny(d)
		if d.done || n.w.clock.Before(d.due) {
			continue
		}
		did := true
		if d.order.Fate.Ordered() {
			n.obey(d)
		} else {
			did = n.erase(d)
		}
		if !did {
			continue
		}
		if n.w.chance(40) && !n.w.judge.settling {
			n.stopAgent("it crashed at a volume")
		}
		return true
	}
	return false
}

// obey looks whether something of the member is left here, and then moves the volume into
// the trash or back; between the two anything may happen.
func (n *node) obey(d *duty) {
	o := d.order
	if !d.looked {
		entry, p := n.agent.led.Look(o.ID), n.place(o.ID)
		p.pass()
		if d.looked = entry.Open.IsZero() && p.alive.IsZero(); !d.looked {
			n.refuse(d, spec.CauseVolumeOccupied)
			return
		}
		if n.w.chance(2) {
			return
		}
	}
	d.looked = false
	fs, cause := n.open(o.Class)
	switch {
	case cause != "":
		n.refuse(d, cause)
	case o.Fate == records.FateRestoring:
		n.bringBack(d, fs)
	case o.Fate == records.FateLost:
		n.lookOnceMore(d, fs)
	default:
		n.giveUp(d, fs)
	}
}

// lookOnceMore looks for a volume that is said to be lost, as agent/volume's Lost does.
func (n *node) lookOnceMore(d *duty, fs *fileSystem) {
	o := d.order
	have, there := fs.dirs[volumeKey{o.ID, o.Claim}]
	switch {
	case there && (have.id != o.Volume || have.number != o.Number):
		n.refuse(d, spec.CauseVolumeForeign)
	case there && !n.w.plant.BelievesLost:
		n.say(d, records.VolumeFound)
		n.w.did("volume found after all")
	case n.bins(fs)[o.Volume] != nil:
		n.say(d, records.VolumeTrashed)
	default:
		n.say(d, records.VolumeAbsent)
		n.w.did("volume lost")
	}
}

// bringBack moves a volume from the trash into its place.
func (n *node) bringBack(d *duty, fs *fileSystem) {
	o := d.order
	key := volumeKey{o.ID, o.Claim}
	have, there := fs.dirs[key]
	b := n.bins(fs)[o.Volume]
	switch {
	case there && have.id == o.Volume:
	case b == nil:
		n.say(d, records.VolumeAbsent)
		return
	case there:
		n.refuse(d, spec.CauseVolumeForeign)
		return
	default:
		fs.dirs[key] = b.dir
		delete(n.bins(fs), o.Volume)
		n.w.note("%s: volume %s of %s comes back from the trash", n.name, o.Volume, o.ID.MemberName())
		n.w.did("volume came back")
	}
	n.say(d, records.VolumeFound)
}

// giveUp moves a volume into the trash.
func (n *node) giveUp(d *duty, fs *fileSystem) {
	o := d.order
	key := volumeKey{o.ID, o.Claim}
	have, there := fs.dirs[key]
	switch _, binned := n.bins(fs)[o.Volume]; {
	case there && (have.id != o.Volume || have.number != o.Number):
		n.refuse(d, spec.CauseVolumeForeign)
		return
	case there && binned:
		n.refuse(d, spec.CauseVolumeOccupied)
		return
	case there:
		n.w.judge.moved(n, key, have)
		if n.w.plant.SaysGone {
			break
		}
		delete(fs.dirs, key)
		n.bins(fs)[have.id] = &bin{dir: have, key: key, turn: o.Turn, left: o.Trash.Duration, since: n.w.clock, moved: n.w.clock, least: o.Trash.Duration}
		n.w.note("%s: volume %s of %s goes to the trash", n.name, have.id, o.ID.MemberName())
		n.w.did("volume moved to the trash")
	case binned:
	case o.Unused:
		n.say(d, records.VolumeAbsent)
		n.w.did("volume never made")
		return
	default:
		n.refuse(d, spec.CauseVolumeMissing)
		return
	}
	n.say(d, records.VolumeTrashed)
}

// takeAny is a plant: for a volume that is forgotten the next one in its place is taken.
func (n *node) takeAny(d *duty) {
	key := volumeKey{d.order.ID, d.order.Claim}
	have, there := n.classes[d.order.Class].shows.dirs[key]
	if n.w.plant.TakesAnyVolume && d.order.Fate == records.FateGone && there && n.agent.led.Look(key.id).Open.IsZero() {
		n.w.judge.moved(n, key, have)
	}
}

// say tells what became of a volume, and that is that.
func (n *node) say(d *duty, state records.VolumeState) {
	o := d.order
	d.done = true
	n.agent.said[o.Volume] = records.VolumeReport{ID: o.ID, Claim: o.Claim, Volume: o.Volume, Number: o.Number, Class: o.Class, Turn: o.Turn, SizeBytes: o.SizeBytes, State: state}
}

// refuse says why a volume stays, and tries again later.
func (n *node) refuse(d *duty, cause spec.Cause) {
	n.say(d, records.VolumeRefused)
	r := n.agent.said[d.order.Volume]
	r.Cause, r.Message = cause, string(cause)
	n.agent.said[d.order.Volume] = r
	d.done, d.due = false, n.w.clock.Add(time.Second)
	n.w.did("volume refused: " + string(cause))
}

// erase deletes for ever what is forgotten, when its time is over and its disk is there;
// false: it is not.
func (n *node) erase(d *duty) bool {
	fs, cause := n.open(d.order.Class)
	if cause != "" {
		if n.w.did("trash waits for its disk"); !n.w.plant.ForgetsTrash {
			d.due = n.w.clock.Add(time.Second)
			return false
		}
		fs = newFileSystem()
	}
	n.w.judge.forgets(n, d)
	b := n.bins(fs)[d.order.Volume]
	if b != nil {
		if n.w.clock.Sub(b.since) < b.left && !n.w.plant.ErasesEarly {
			d.due = b.since.Add(b.left)
			return false
		}
		n.w.judge.erased(n, d, b)
		delete(n.bins(fs), d.order.Volume)
		n.w.note("%s: volume %s of %s is erased", n.name, d.order.Volume, d.order.ID.MemberName())
		n.w.did("volume erased")
	}
	delete(n.made, d.order.Volume)
	n.say(d, records.VolumeErased)
	return true
}
