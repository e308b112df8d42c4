package agent

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/stead-project/stead/agent/worker"
	"github.com/stead-project/stead/proto"
	"github.com/stead-project/stead/proto/wire"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
)

// ErrBack: the server's list is older than one that was accepted.
var ErrBack = errors.New("the server's list is older than one this node has accepted; its store may have been restored without a new epoch")

// takeWanted hands orders to the workers. A list that goes back is refused as a
// whole and ends the session. Lives that are not named are left alone (SAFETY S2).
func (a *Agent) takeWanted(w *proto.Wanted) error {
	seq := wire.ToSequence(w.GetSequence())
	if seq.Compare(a.newest) < 0 {
		return fmt.Errorf("%w (told %d.%d, accepted %d.%d)", ErrBack, seq.Epoch, seq.Rev, a.newest.Epoch, a.newest.Rev)
	}
	if seq != a.newest {
		a.newest = seq
		if err := a.c.Home.KeepNewest(seq); err != nil {
			a.log.Warn("sequence not kept", "err", err)
		}
	}
	a.memory.hear(records.Known{At: seq})
	a.takeVolumes(w)
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, h := range w.GetOver() {
		a.worker(wire.ToIdentity(h.GetId())).Over(wire.ToToken(h.GetToken()))
	}
	for _, doc := range w.GetLivesJson() {
		var life records.Life
		if err := json.Unmarshal(doc, &life); err != nil {
			// One life that cannot be read must not hold up the others.
			a.log.Error("life not understood", "err", err)
			continue
		}
		if why := a.notOurs(&life.Member); why != "" {
			a.log.Error("life not ours", "member", life.Member.ID.String(), "token", life.Member.Token.String(), "reason", why)
			continue
		}
		a.worker(life.Member.ID).Tell(life)
	}
	return nil
}

// takeVolumes hands over the orders of a wanted list.
func (a *Agent) takeVolumes(w *proto.Wanted) {
	orders, err := wire.ToDocuments[records.VolumeOrder](w.GetVolumesJson())
	if err != nil {
		// Volumes that stay are no harm; members must not wait for them.
		a.log.Error("orders on volumes not understood", "err", err)
		return
	}
	a.reclaimer.Take(w.GetFull(), orders)
}

// notOurs says why a life is not for this node. Such a life is not even refused: a
// refusal would be proof that it runs nowhere.
func (a *Agent) notOurs(m *records.Member) string {
	switch {
	case m.Token.IsZero() || m.ID.Set == "" || m.ID.Namespace == "":
		return "it has no token or identity"
	case m.Node != a.c.Home.Name():
		return "it is for node " + string(m.Node)
	case m.NodeUID != a.c.Home.UID():
		return "it is for another machine of this name"
	}
	return ""
}

func (a *Agent) takePictures(p *proto.Pictures) error {
	told, err := wire.ToDocuments[records.Snapshot](p.GetPicturesJson())
	if err != nil {
		return err
	}
	histories, err := wire.ToDocuments[records.History](p.GetHistoriesJson())
	if err != nil {
		return err
	}
	seq := wire.ToSequence(p.GetSequence())
	a.memory.hear(records.Known{At: seq})
	changed := map[spec.SetRef]bool{}
	for _, ref := range a.gallery.add(histories) { // first: they are never behind the pictures
		changed[ref] = true
	}
	drawn := a.gallery.put(seq, p.GetFull(), told)
	for _, ref := range drawn {
		changed[ref] = true
	}
	if len(drawn) > 0 {
		a.c.Pictures(a.gallery.all())
	}
	if hosts, moved := a.gallery.admit(p.GetHosts()); moved {
		a.c.Hosts(hosts)
	}
	if len(changed) == 0 {
		return nil
	}
	a.each(func(id spec.Identity, w *worker.Worker) {
		if changed[id.Ref()] {
			w.FilesChanged()
		}
	})
	return nil
}

// confirm moves on the moment until which pictures and histories are confirmed.
func (a *Agent) confirm(until time.Duration) {
	if until <= time.Duration(a.confirmed.Load()) {
		return
	}
	a.confirmed.Store(int64(until)) // the session's receiver alone writes
	a.each(func(_ spec.Identity, w *worker.Worker) { w.Confirmed() })
}

func (a *Agent) takeFiles(f *proto.FilesUpdate) error {
	told, err := wire.ToDocuments[records.Files](f.GetFilesJson())
	if err != nil {
		// Its text could hold a piece of a Secret.
		return errors.New("the server's files are not understood")
	}
	a.book.Put(f.GetFull(), told)
	a.keepBook()
	a.each(func(_ spec.Identity, w *worker.Worker) { w.FilesChanged() })
	return nil
}

// takeStored ends the sending of reports; the end of a token may then be forgotten.
func (a *Agent) takeStored(s *proto.Stored) error {
	for _, r := range s.GetReports() {
		id, token := wire.ToIdentity(r.GetId()), wire.ToToken(r.GetToken())
		if !a.outbox.stored(id, token, r.GetSeq()) {
			continue
		}
		if err := a.ledger.Stored(id, token); err != nil {
			a.log.Error("end not noted as stored", "member", id.String(), "token", token.String(), "err", err)
		}
	}
	return nil
}

// lastReports is what every worker last said.
func (a *Agent) lastReports() []records.Report {
	var out []records.Report
	a.each(func(_ spec.Identity, w *worker.Worker) {
		if r, ok := w.Last(); ok && !r.Phase.Over() {
			out = append(out, r)
		}
	})
	return out
}

func readJSON(path string, into any) error {
	b, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	return json.Unmarshal(b, into)
}
