package session

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/stead-project/stead/agent/files"
	"github.com/stead-project/stead/proto"
	"github.com/stead-project/stead/proto/wire"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
)

// ErrBack: the server's list is older than one that was accepted.
var ErrBack = errors.New("the server's list is older than one this node has accepted; its store may have been restored without a new epoch")

// takeWanted hands orders to the workers. A list that goes back is refused as a
// whole and ends the session. Lives that are not named are left alone (SAFETY S2).
func (c *Client) takeWanted(w *proto.Wanted) error {
	seq := wire.ToSequence(w.GetSequence())
	if seq.Compare(c.newest) < 0 {
		return fmt.Errorf("%w (received %d.%d, accepted %d.%d)", ErrBack, seq.Epoch, seq.Rev, c.newest.Epoch, c.newest.Rev)
	}
	if seq != c.newest {
		c.newest = seq
		if err := c.cfg.Home.KeepNewest(seq); err != nil {
			c.log.Warn("sequence not saved", "err", err)
		}
	}
	c.cfg.Known.Add(records.Known{At: seq})
	c.takeVolumes(w)
	for _, h := range w.GetOver() {
		c.cfg.Workers.Over(wire.ToIdentity(h.GetId()), wire.ToToken(h.GetToken()))
	}
	c.takePreparations(w.GetPreparations())
	c.takeMoves(w.GetMoves(), seq.Epoch)
	for _, doc := range w.GetLivesJson() {
		var life records.Life
		if err := json.Unmarshal(doc, &life); err != nil {
			// One life that cannot be read must not hold up the others.
			c.log.Error("assignment not decoded; ignored", "err", err)
			continue
		}
		if why := c.notOurs(&life.Member); why != "" {
			c.log.Error("assignment for another node ignored", "member", life.Member.ID.String(), "token", life.Member.Token.String(), "reason", why)
			continue
		}
		c.cfg.Workers.Tell(life)
	}
	return nil
}

// takeVolumes hands over the orders of a wanted list.
func (c *Client) takeVolumes(w *proto.Wanted) {
	orders, err := wire.ToDocuments[records.VolumeOrder](w.GetVolumesJson())
	if err != nil {
		// Volumes that stay are no harm; members must not wait for them.
		c.log.Error("volume orders not decoded; ignored", "err", err)
		return
	}
	c.cfg.Reclaimer.Take(w.GetFull(), orders)
}

// notOurs says why a life is not for this node. Such a life is not even refused: a
// refusal would be proof that it runs nowhere.
func (c *Client) notOurs(m *records.Member) string {
	switch {
	case m.Token.IsZero() || m.ID.Set == "" || m.ID.Namespace == "":
		return "it has no token or identity"
	case m.Node != c.cfg.Home.Name():
		return "it is for node " + string(m.Node)
	case m.NodeUID != c.cfg.Home.UID():
		return "it is for another machine of this name"
	}
	return ""
}

func (s *Session) takeSnapshots(p *proto.Pictures) error {
	c := s.c
	fresh, err := wire.ToDocuments[records.Snapshot](p.GetPicturesJson())
	if err != nil {
		return err
	}
	sets, err := wire.ToSets(p.GetSets())
	if err != nil {
		return err
	}
	histories, err := wire.ToDocuments[records.History](p.GetHistoriesJson())
	if err != nil {
		return err
	}
	more, err := wire.ToHistories(p.GetHistories())
	if err != nil {
		return err
	}
	seq := wire.ToSequence(p.GetSequence())
	c.cfg.Known.Add(records.Known{At: seq})
	changed := map[spec.SetRef]bool{}
	for _, ref := range c.cfg.Snapshots.AddHistories(append(histories, more...)) { // first: they are never behind the snapshots
		changed[ref] = true
	}
	for _, ref := range s.showSnapshots(seq, p.GetFull(), fresh, sets) {
		changed[ref] = true
	}
	if t, err := c.cfg.Snapshots.PutTunnel(p.GetTunnelJson()); err != nil {
		return err
	} else if t != nil {
		c.cfg.TunnelChanged(t)
	}
	if len(p.GetServers()) > 0 {
		c.cfg.ServersTold(p.GetServers())
	}
	if p.GetAuthority() != "" {
		c.cfg.AuthorityTold(p.GetAuthority())
	}
	if hosts, moved := c.cfg.Snapshots.PutHosts(p.GetHosts()); moved {
		c.cfg.HostsChanged(hosts)
	}
	if len(changed) > 0 {
		c.cfg.Workers.FilesChanged(func(ref spec.SetRef) bool { return changed[ref] })
	}
	return nil
}

// showSnapshots takes sets and shows all to DNS: at first also when there is none, which is not known
// before. It returns those that changed.
func (s *Session) showSnapshots(seq spec.Sequence, full bool, fresh []records.Snapshot, sets []*proto.SetDifference) []spec.SetRef {
	c := s.c
	c.cfg.Interests.showing.Lock()
	defer c.cfg.Interests.showing.Unlock()
	replaced := s.putSnapshots(seq, full, fresh, sets)
	if full {
		c.cfg.Listed(c.cfg.Snapshots.Newest())
	}
	if full || len(replaced) > 0 {
		c.cfg.SnapshotsChanged(c.cfg.Snapshots.All())
	}
	c.cfg.Interests.shown(replaced)
	return replaced
}

// putSnapshots takes what a server sent of sets: documents alone, if it does not know differences.
func (s *Session) putSnapshots(seq spec.Sequence, full bool, fresh []records.Snapshot, sets []*proto.SetDifference) []spec.SetRef {
	if len(fresh) > 0 {
		return s.c.cfg.Snapshots.Put(seq, full, fresh)
	}
	changed, gaps := s.c.cfg.Snapshots.Apply(seq, full, sets, s.domain)
	s.askAgain(sets, gaps)
	return changed
}

func (c *Client) takeFiles(f *proto.FilesUpdate) error {
	fresh, err := wire.ToDocuments[records.Files](f.GetFilesJson())
	if err != nil {
		// Its text could hold a piece of a Secret.
		return errors.New("the server's files are not understood")
	}
	changed := c.cfg.Files.Put(f.GetFull(), fresh)
	c.cfg.FilesChanged()
	if len(changed) > 0 {
		c.cfg.Workers.SourcesChanged(func(s files.FileSource) bool { return changed[s] })
	}
	return nil
}

// takeStored ends the sending of reports; the end of a token may then be forgotten.
func (c *Client) takeStored(s *proto.Stored) {
	for _, r := range s.GetReports() {
		id, token := wire.ToIdentity(r.GetId()), wire.ToToken(r.GetToken())
		if !c.cfg.Outbox.Stored(id, token, r.GetSeq()) {
			continue
		}
		if err := c.cfg.Ledger.Stored(id, token); err != nil {
			c.log.Error("end not recorded as stored", "member", id.String(), "token", token.String(), "err", err)
		}
	}
}
