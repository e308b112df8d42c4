package sim

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/stead-project/stead/agent/runtime"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
)

// hostVolumes does with the file systems of a node what agent/volume does with directories.
type hostVolumes struct {
	runtime.Volumes
	n *node
}

var _ runtime.Volumes = hostVolumes{}

// open is the directory of a class as the agent has it, if it lies on the disk that was
// first used for it.
func (n *node) open(name string) (*fileSystem, error) {
	if c := n.classes[name]; c != nil && !c.away() {
		return c.shows, nil
	}
	return nil, fmt.Errorf("the disk of class %s: %w", name, runtime.ErrNotFound)
}

// Ensure finds a volume, or makes it: once, which is noted before it is handed out.
func (h hostVolumes) Ensure(_ context.Context, id spec.Identity, v records.MemberVolume, fresh bool, _ *runtime.Group) (string, error) {
	n := h.n
	id = v.Owner(id)
	fs, err := n.open(v.Class)
	if n.w.plant.TakesAnyDisk {
		fs, err = n.classes[v.Class].shows, nil
	}
	if err != nil {
		n.w.count("life waits for a disk")
		return "", err
	}
	key := volumeKey{id, v.Claim}
	have, there := fs.dirs[key]
	known := (n.made[v.ID] || n.w.trashes(fs, v.ID)) && !n.w.plant.ForgetsMade
	switch {
	case there && have.id != v.ID:
		n.w.judge.foreign(n, id, v, have)
		return "", runtime.ErrForeign
	case there && have.tree.seal != "":
		n.w.judge.sealed(n, id, v)
		return "", runtime.ErrSealed
	case there:
	case !fresh || known:
		n.w.judge.missing(n, id, v)
		return "", runtime.ErrAbsent
	default:
		n.w.judge.makes(n, id, v)
		fs.dirs[key] = dir{v.ID, v.Number, v.Class, &tree{}}
		if v.Class != spec.LocalClass && n.w.chance(40) && !n.w.judge.settling {
			n.w.count("fault: agent dies before it notes a volume")
			n.crash("before it noted a volume")
		}
	}
	n.made[v.ID] = true
	if v.Object {
		n.w.judge.takes(n, n.agent.notes, v)
	} else {
		n.w.judge.mounted(n, id, n.agent.workers[id].token, v)
	}
	return string(v.ID), nil
}

// NoteUser notes which life of an identity has the volume of a claim.
func (h hostVolumes) NoteUser(_ context.Context, volume records.VolumeID, l spec.LifeID) error {
	h.n.agent.notes = l
	return h.n.act(l.ID, "NoteUser", func() error {
		if h.n.users[volume] == nil {
			h.n.users[volume] = map[spec.Identity]spec.LifeID{}
		}
		h.n.users[volume][l.ID] = l
		return nil
	})
}

// Users are the lives that were noted.
func (h hostVolumes) Users(_ context.Context, volume records.VolumeID) (list []spec.LifeID, err error) {
	for _, id := range sortedKeys(h.n.users[volume]) {
		list = append(list, h.n.users[volume][id])
	}
	return list, nil
}

func (h hostVolumes) Scratch(_ context.Context, s runtime.Scratch) (string, error) {
	return s.Name, h.n.act(s.ID, "Scratch", func() error { h.n.place(s.ID).scratch = true; return nil })
}

func (h hostVolumes) RemoveScratch(_ context.Context, id spec.Identity) error {
	return h.n.act(id, "RemoveScratch", func() error { h.n.place(id).scratch = false; return nil })
}

func (h hostVolumes) Clean(_ context.Context, id spec.Identity) (bool, error) {
	return !h.n.place(id).scratch, nil
}

// Lost looks for a volume that is said to be lost.
func (h hostVolumes) Lost(_ context.Context, o records.VolumeOrder) (records.VolumeState, error) {
	n := h.n
	fs, err := n.open(o.Class)
	if err != nil {
		return "", err
	}
	have, there := fs.dirs[volumeKey{o.ID, o.Claim}]
	switch {
	case there && (have.id != o.Volume || have.number != o.Number):
		return "", runtime.ErrForeign
	case there && !n.w.plant.BelievesLost:
		n.w.count("volume found after all")
		return records.VolumeFound, nil
	case n.bins(fs)[o.Volume] != nil:
		return records.VolumeTrashed, nil
	}
	n.w.count("volume lost")
	return records.VolumeAbsent, nil
}

// Restore moves a volume from the trash into its place.
func (h hostVolumes) Restore(_ context.Context, o records.VolumeOrder) error {
	n := h.n
	fs, err := n.open(o.Class)
	if err != nil {
		return err
	}
	key := volumeKey{o.ID, o.Claim}
	have, there := fs.dirs[key]
	b := n.bins(fs)[o.Volume]
	switch {
	case there && have.id == o.Volume:
		return nil
	case b == nil:
		return runtime.ErrAbsent
	case there:
		return runtime.ErrForeign
	}
	n.mayCrash("before a volume comes back")
	b.tree.seal = "" // who brings a copy back that a move left behind says that it is the volume again
	fs.dirs[key] = b.dir
	delete(n.bins(fs), o.Volume)
	n.w.note("%s: volume %s of %s comes back from the trash", n.name, o.Volume, o.ID.MemberName())
	n.w.count("volume came back")
	n.mayCrash("after a volume came back")
	return nil
}

// Grow finds the volume in its place; what is in it has no size here.
func (h hostVolumes) Grow(_ context.Context, o records.VolumeOrder) (bool, error) {
	fs, err := h.n.open(o.Class)
	if err != nil {
		return false, err
	}
	have, there := fs.dirs[volumeKey{o.ID, o.Claim}]
	switch {
	case !there:
		return false, runtime.ErrAbsent
	case have.id != o.Volume:
		return false, runtime.ErrForeign
	}
	h.n.w.count("volume grown")
	return true, nil
}

// Reclaim moves a volume into the trash.
func (h hostVolumes) Reclaim(_ context.Context, o records.VolumeOrder) error {
	n := h.n
	fs, err := n.open(o.Class)
	if err != nil {
		return err
	}
	key := volumeKey{o.ID, o.Claim}
	have, there := fs.dirs[key]
	switch _, binned := n.bins(fs)[o.Volume]; {
	case there && (have.id != o.Volume || have.number != o.Number):
		return runtime.ErrForeign
	case there && binned:
		return runtime.ErrExists
	case there:
		n.mayCrash("before a volume goes to the trash")
		n.w.judge.moved(n, key, have)
		if n.w.plant.SaysGone {
			break
		}
		delete(fs.dirs, key)
		n.bins(fs)[have.id] = &bin{
			dir: have, key: key, turn: o.Turn, sizeBytes: o.SizeBytes, left: o.Trash.Duration, since: n.w.clock,
			moved: n.w.clock, least: o.Trash.Duration,
		}
		n.w.note("%s: volume %s of %s goes to the trash", n.name, have.id, o.ID.MemberName())
		n.w.count("volume moved to the trash")
		n.mayCrash("after a volume went to the trash")
	case binned:
	default:
		if o.Unused {
			n.w.count("volume never made")
		}
		return runtime.ErrAbsent
	}
	return nil
}

// Trash lists what lies there, as far as its disks are.
func (h hostVolumes) Trash(context.Context) (list []runtime.Trashed, err error) {
	for _, b := range h.n.trashed() {
		if _, away := h.n.open(b.class); away == nil {
			list = append(list, runtime.Trashed{
				ID: b.key.id, Claim: b.key.claim, Volume: b.id, Number: b.number, Class: b.class, Left: h.n.left(b),
				Turn: b.turn, SizeBytes: b.sizeBytes,
			})
		}
	}
	for _, name := range allClasses {
		_, away := h.n.open(name)
		err = errors.Join(err, away)
	}
	return list, err
}

// left is how long a volume is to lie in the trash still, by the node's account.
func (n *node) left(b *bin) time.Duration {
	if n.w.plant.ErasesEarly {
		return 0
	}
	return max(0, b.left-n.w.clock.Sub(b.since))
}

// Erase deletes for ever what is forgotten, when its time is over and its disk is there.
func (h hostVolumes) Erase(_ context.Context, class string, id records.VolumeID) error {
	n := h.n
	fs, err := n.open(class)
	if err != nil {
		n.w.count("trash waits for its disk")
		if !n.w.plant.ForgetsTrash {
			return err
		}
		fs = newFileSystem()
	}
	n.w.judge.forgets(n, class, id)
	b := n.bins(fs)[id]
	if b != nil {
		if n.left(b) > 0 {
			return runtime.ErrExists
		}
		n.mayCrash("before a volume is erased")
		n.w.judge.erased(n, n.agent.epochs[id], b)
		delete(n.bins(fs), id)
		n.erased[id] = true
		n.w.note("%s: volume %s of %s is erased", n.name, id, b.key.id.MemberName())
		n.w.count("volume erased")
		n.mayCrash("after a volume was erased")
	}
	n.w.judge.forgot(id)
	delete(n.made, id)
	delete(n.users, id)
	return nil
}

// takeAny is a plant: for a volume that is forgotten the next one in its place is taken.
func (n *node) takeAny(o records.VolumeOrder) {
	key := volumeKey{o.ID, o.Claim}
	have, there := n.classes[o.Class].shows.dirs[key]
	if n.w.plant.TakesAnyVolume && o.Fate == records.FateGone && there && n.agent.led.Look(key.id).Open.IsZero() {
		n.w.judge.moved(n, key, have)
	}
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
