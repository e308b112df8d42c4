package sim

import (
	"bytes"
	"encoding/json"

	"github.com/stead-project/stead/agent/files"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
)

const runDir = "/run"

// memberSets shows members their sets; the agent may die at each that it shows first.
type memberSets struct{ a *agent }

func (s memberSets) IsKnown(id spec.Identity, came func()) bool {
	return s.a.sets.IsKnown(id, func() {
		s.a.workers[id].due = true
		came()
	})
}

func (s memberSets) Follow(l *records.Life) error {
	return s.a.n.act(l.Member.ID, "ShowSet", func() error { return s.a.sets.Follow(l) })
}

func (s memberSets) Leave(id spec.Identity) { s.a.sets.Leave(id) }

// setDisk holds what was written for members and shown to them, below a node's run directory.
type setDisk struct {
	n       *node
	written map[files.SetKey]map[string][]byte
	shown   map[string]map[string][]byte // by the directory of a member
}

var _ files.SetDisk = (*setDisk)(nil)

func newSetDisk(n *node) *setDisk {
	return &setDisk{n: n, written: map[files.SetKey]map[string][]byte{}, shown: map[string]map[string][]byte{}}
}

// Head implements files.SetDisk.
func (d *setDisk) Head(p files.Place) (head files.SetHead, until files.Uptime) {
	at := d.shown[p.Stead]
	if b := at[files.SetFile]; b != nil {
		var doc struct {
			Sequence       spec.Sequence
			Event          records.ChangeID
			ConfirmedUntil files.Uptime
		}
		if err := json.Unmarshal(b, &doc); err != nil {
			d.n.w.fail("files", "%s is shown %q", p.Stead, b)
		}
		head.Sequence, head.Event, head.ConfirmedUntil = doc.Sequence, doc.Event, doc.ConfirmedUntil
	}
	if b := at[files.EventsFile]; b != nil {
		lines := bytes.Split(bytes.TrimSpace(b), []byte("\n"))
		var last records.Change
		if err := json.Unmarshal(lines[len(lines)-1], &last); err != nil {
			d.n.w.fail("files", "%s is shown the events %q", p.Stead, b)
		}
		head.Last = last.ID()
	}
	if b := at[files.ConfirmedFile]; b != nil && until.UnmarshalJSON(bytes.TrimSpace(b)) != nil {
		d.n.w.fail("files", "%s is shown as confirmed %q", p.Stead, b)
	}
	return head, until
}

// Write implements files.SetDisk.
func (d *setDisk) Write(set files.SetKey, name string, content []byte) error {
	if d.written[set] == nil {
		d.written[set] = map[string][]byte{}
	}
	d.written[set][name] = bytes.Clone(content)
	return nil
}

// Link implements files.SetDisk. What a member is shown never goes back, and names no event
// that it cannot read.
func (d *setDisk) Link(set files.SetKey, name string, p files.Place, _ bool) error {
	before, until := d.Head(p)
	if d.shown[p.Stead] == nil {
		d.shown[p.Stead] = map[string][]byte{}
	}
	d.shown[p.Stead][name] = d.written[set][name]
	now, nowUntil := d.Head(p)
	if now.Sequence.Compare(before.Sequence) < 0 || now.Event.Compare(before.Event) < 0 || now.ConfirmedUntil < before.ConfirmedUntil ||
		now.Last.Compare(before.Last) < 0 || nowUntil < until || now.Event.Compare(now.Last) > 0 {
		d.n.w.fail("files", "%s: %s is shown %+v until %s after %+v until %s", p.Stead, name, now, nowUntil, before, until)
	}
	d.n.w.count("shown: " + name)
	return nil
}

// IsShown implements files.SetDisk.
func (d *setDisk) IsShown(set files.SetKey, name string, p files.Place) bool {
	return bytes.Equal(d.written[set][name], d.shown[p.Stead][name])
}

// Drop implements files.SetDisk.
func (d *setDisk) Drop(set files.SetKey) error {
	delete(d.written, set)
	return nil
}
