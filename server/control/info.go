package control

import (
	"bufio"
	"context"
	"slices"

	"github.com/stead-project/stead/proto"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/server/cache"
	"github.com/stead-project/stead/server/proof"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/store"
)

// Info implements proto.ControlServer. It answers also while the store is full.
func (s cluster) Info(ctx context.Context, _ *proto.InfoRequest) (*proto.InfoResponse, error) {
	about := s.cfg.About
	out := &proto.InfoResponse{
		Version: about.GetVersion(), Domain: about.GetDomain(), Server: about.GetServer(),
		Store: about.GetStore(), Cidr: about.GetCidr(), ServiceCidr: about.GetServiceCidr(), Tunnel: about.GetTunnel(),
	}
	s.cfg.Cache.Look(func(v cache.View) {
		out.Cluster, out.Epoch = v.ClusterID(), v.Epoch()
		out.Leader = v.Leader().Value
		out.Servers = servers(out.Server, out.Leader, v)
		out.RestoreJson = store.Encode(restoreState(v, s.origin()))
		out.StoreFormat, out.KnowsFormat = 1, store.Format
		if f := cache.Format(v); f != nil {
			out.StoreFormat, out.StoreFormatWhy = int32(f.Lowest), f.Why
		}
	})
	if s.cfg.Backups != nil {
		out.BackupJson = store.Encode(s.cfg.Backups.State())
	}
	st, err := s.cfg.Store.Status(ctx)
	if err != nil {
		return nil, err
	}
	out.StoreBytes, out.StoreQuotaBytes = st.SizeBytes, st.QuotaBytes
	out.StoreAlarm, out.StoreVersion = st.Alarm, st.Version
	return out, nil
}

// servers are those that the store tells of, and the one that answers.
func servers(self, leader string, v cache.View) []string {
	names := []string{self}
	if leader != "" {
		names = append(names, leader)
	}
	for _, n := range v.Nodes() {
		if n.Session != nil && n.Session.Server != "" {
			names = append(names, n.Session.Server)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// restoreState tells how it stands with the store's going back and its restore.
func restoreState(v cache.View, origin string) records.RestoreState {
	st := records.RestoreState{State: records.RestoreNever, Epoch: v.Epoch()}
	count := v.Count()
	switch hold := v.Hold(); {
	case hold != nil:
		st.State, st.Cause, st.By, st.At = records.RestoreHeld, hold.Cause, hold.By, hold.At
		st.Next = "members run on. Is this the store that is meant? Start all servers and agents, then run 'stead restore'"
		st.Ended = hold.Ended != ""
		if st.Ended && hold.Ended == origin {
			st.Next = "members run on. Start the servers on the store that was made of the last backup. If no server was ever started on it, 'stead restore --ended' makes this one continue"
		}
		count = &records.Count{Epoch: v.Epoch(), Nodes: expected(v)}
	case count == nil || count.Epoch != st.Epoch:
		return st
	default:
		st.State = records.RestoreComplete
		if !count.Done {
			st.State = records.RestoreCounting
		}
		st.By, st.At = count.By, count.At
	}
	missing := map[spec.UID]records.CountNode{}
	for _, m := range proof.MissingNodes(count.Epoch, count, v.Nodes()) {
		missing[m.UID] = m
	}
	if st.State == records.RestoreHeld { // what was said before counts no more
		for _, n := range count.Nodes {
			missing[n.UID] = n
		}
	}
	all := *count
	for _, m := range missing {
		all = all.With(m.From, map[spec.NodeName]spec.UID{m.Name: m.UID})
	}
	st.Nodes = restoreNodes(v, all.Nodes, missing)
	if st.State == records.RestoreCounting {
		st.Next = nextInCount(st.Nodes)
	}
	return st
}

func restoreNodes(v cache.View, nodes []records.CountNode, missing map[spec.UID]records.CountNode) []records.RestoreNode {
	connected := map[spec.UID]bool{}
	heard := map[spec.UID]bool{}
	for _, n := range v.Nodes() {
		connected[n.Node.UID] = n.Session != nil
		heard[n.Node.UID] = n.Facts != nil && n.Facts.Epoch >= v.Epoch()
	}
	out := make([]records.RestoreNode, len(nodes))
	for i, n := range nodes {
		out[i] = records.RestoreNode{CountNode: n, State: records.NodeHeard, Connected: connected[n.UID]}
		switch _, waited := missing[n.UID]; {
		case waited:
			out[i].State = records.NodeWaited
		case !heard[n.UID] && n.Off != "":
			out[i].State = records.NodeExcused
		}
	}
	return out
}

// nextInCount says what to do about nodes that are waited for.
func nextInCount(nodes []records.RestoreNode) string {
	for _, n := range nodes {
		if n.State == records.NodeWaited {
			return "start the agents of the missing nodes, and let them reach a server. For a node that is off for good: stead restore --off NODE"
		}
	}
	return "nothing: every node was heard or excused, and the leader records it"
}

// backupPart is the size of one message of a backup.
const backupPart = 256 << 10

// Backup implements proto.ControlServer.
func (s cluster) Backup(r *proto.BackupRequest, stream proto.Control_BackupServer) error {
	if s.cfg.Backup == nil || r.GetComplete() && s.cfg.Maker == nil {
		return precondition("the store is an external %s: back it up there, with 'etcdctl snapshot save FILE'", s.cfg.About.GetStore())
	}
	w := bufio.NewWriterSize(parts{stream}, backupPart)
	if r.GetComplete() {
		if _, err := s.cfg.Maker.Make(stream.Context(), w, r.GetPlain()); err != nil {
			return err
		}
	} else if err := s.cfg.Backup(stream.Context(), w); err != nil {
		return err
	}
	return w.Flush()
}

// parts sends what is written.
type parts struct{ stream proto.Control_BackupServer }

func (p parts) Write(b []byte) (int, error) {
	if err := p.stream.Send(&proto.BackupPart{Data: b}); err != nil {
		return 0, err
	}
	return len(b), nil
}
