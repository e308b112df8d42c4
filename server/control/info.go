package control

import (
	"context"
	"slices"

	"github.com/stead-project/stead/proto"
	"github.com/stead-project/stead/server/cache"
	"github.com/stead-project/stead/store"
)

// Info implements proto.ControlServer. It answers also while the store is full.
func (s *Server) Info(ctx context.Context, _ *proto.InfoRequest) (*proto.InfoResponse, error) {
	about := s.cfg.About
	out := &proto.InfoResponse{
		Version: about.GetVersion(), Domain: about.GetDomain(), Server: about.GetServer(),
		Store: about.GetStore(), Cidr: about.GetCidr(),
	}
	s.cfg.Cache.Look(func(v cache.View) {
		out.Cluster, out.Epoch = v.ClusterID(), v.Epoch()
		out.Leader, _ = v.Leader()
		out.Servers = servers(out.Server, out.Leader, v)
		out.RestoreJson = store.Encode(restoreState(v))
	})
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
