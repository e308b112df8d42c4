package control

import (
	"context"
	"errors"
	"slices"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/stead-project/stead/proto"
	"github.com/stead-project/stead/server/world"
	"github.com/stead-project/stead/store"
)

// Info implements proto.ControlServer. It answers also while the store is full.
func (s *Server) Info(ctx context.Context, _ *proto.InfoRequest) (*proto.InfoResponse, error) {
	about := s.cfg.About
	out := &proto.InfoResponse{
		Version: about.GetVersion(), Domain: about.GetDomain(), Server: about.GetServer(),
		Store: about.GetStore(), Cidr: about.GetCidr(),
	}
	s.cfg.World.Look(func(v world.View) {
		out.Cluster, out.Epoch = v.ClusterID(), v.Epoch()
		out.Leader, _ = v.Leader()
		out.Servers = servers(out.Server, out.Leader, v)
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
func servers(self, leader string, v world.View) []string {
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

// ShrinkStore implements proto.ControlServer.
func (s *Server) ShrinkStore(ctx context.Context, _ *proto.ShrinkStoreRequest) (*proto.ShrinkStoreResponse, error) {
	before, err := s.cfg.Store.Status(ctx)
	if err != nil {
		return nil, err
	}
	err = s.cfg.Store.Shrink(ctx)
	if errors.Is(err, store.ErrNoSpace) {
		return nil, status.Errorf(codes.ResourceExhausted,
			"what is stored alone fills the store (%s), so nothing can be changed still; delete what is not needed (ConfigMaps, Secrets), or give it more room: restart the server with a larger --store-quota", store.NoSpaceAlarm)
	}
	if err != nil {
		return nil, err
	}
	after, err := s.cfg.Store.Status(ctx)
	if err != nil {
		return nil, err
	}
	return &proto.ShrinkStoreResponse{BeforeBytes: before.SizeBytes, AfterBytes: after.SizeBytes, QuotaBytes: after.QuotaBytes}, nil
}
