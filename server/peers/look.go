package peers

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/stead-project/stead/internal/backoff"
	"github.com/stead-project/stead/proto"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/records/stores"
	"github.com/stead-project/stead/server/cache"
	"github.com/stead-project/stead/server/quorum"
)

// away: the same may succeed later.
func away(err error) error { return status.Error(codes.Unavailable, err.Error()) }

// state is what is known of all servers.
type state struct {
	members []stores.StoreMember
	known   map[string]records.Server
	alive   map[string]bool                  // by the member's id: its server answers
	health  map[string]*proto.HealthResponse // by the member's id
	lost    string                           // what to do, for the store has no majority; "": it has one
}

// look asks all servers. While the store has no majority it goes by what this server knows.
func (s *Service) look(ctx context.Context) (v state, err error) {
	if s.cfg.Members == nil {
		return v, errNoPeers
	}
	v = s.inside()
	members, err := s.cfg.Members.Members(ctx)
	if err == nil {
		v.members = members
	}
	v.members = quorum.Named(v.members, v.known)
	s.ask(ctx, &v)
	if err != nil {
		v.lost = quorum.Lost(v.members, v.alive)
		if v.lost == "" {
			return v, away(fmt.Errorf("the store elects a leader, or does not answer: %w", err))
		}
	}
	return v, nil
}

// inside is what this server knows without asking anybody.
func (s *Service) inside() state {
	v := state{members: s.cfg.Members.Known(), known: map[string]records.Server{}}
	s.cfg.Cache.Look(func(view cache.View) {
		for _, r := range cache.Servers(view) {
			v.known[r.Name] = *r
		}
	})
	return v
}

// electTime is how long an election of the store is waited for.
const electTime = 10 * time.Second

// lookWhole is look for what only a majority can do. Right after the leader of the store was lost it waits for the next one.
func (s *Service) lookWhole(ctx context.Context) (state, error) {
	for until := time.Now().Add(electTime); ; {
		v, err := s.look(ctx)
		if err == nil && v.lost != "" {
			return v, status.Error(codes.Unavailable, v.lost)
		}
		if status.Code(err) != codes.Unavailable || time.Now().After(until) {
			return v, err
		}
		if !backoff.Sleep(ctx, 250*time.Millisecond) {
			return v, err
		}
	}
}

// ask asks all servers how they are. One that runs another member than that of its name, as after 'server recover', does not count.
func (s *Service) ask(ctx context.Context, v *state) {
	v.alive, v.health = map[string]bool{}, map[string]*proto.HealthResponse{}
	var group sync.WaitGroup
	var mu sync.Mutex
	for _, m := range v.members {
		group.Go(func() {
			var h *proto.HealthResponse
			up := true
			if m.ID == s.cfg.Members.Self() {
				h = s.health()
			} else {
				h, up = s.askOne(ctx, v.known[m.Name].Addresses)
				up = up && (h.GetMember() == "" || h.GetMember() == m.ID)
			}
			mu.Lock()
			defer mu.Unlock()
			v.alive[m.ID], v.health[m.ID] = up, h
		})
	}
	group.Wait()
}

// reachTime is how long a server may take to answer a call for its health.
const reachTime = 3 * time.Second

// askOne asks a server; nil: it is up and did not say, for it is of an earlier version.
func (s *Service) askOne(ctx context.Context, addresses []string) (h *proto.HealthResponse, up bool) {
	ctx, cancel := context.WithTimeout(ctx, reachTime)
	defer cancel()
	conn, err := s.cfg.Authority.Connect(ctx, addresses)
	if err != nil {
		return nil, false
	}
	defer conn.Close()
	h, err = proto.NewServersClient(conn).Health(ctx, &proto.HealthRequest{})
	return h, err == nil || status.Code(err) == codes.Unimplemented || status.Code(err) == codes.PermissionDenied
}

func (s *Service) health() *proto.HealthResponse {
	h := s.cfg.Members.Health()
	out := &proto.HealthResponse{
		Member: s.cfg.Members.Self(), Version: s.cfg.Version, Term: h.Term, Index: h.Index, StoreBytes: h.Bytes, UsedBytes: h.UsedBytes, Alarms: h.Alarms,
	}
	if h.Aside.Bytes > 0 {
		out.AsideBytes, out.AsideUnix = h.Aside.Bytes, h.Aside.At.Unix()
	}
	return out
}

// Health implements proto.ServersServer.
func (s *Service) Health(context.Context, *proto.HealthRequest) (*proto.HealthResponse, error) {
	if s.cfg.Members == nil {
		return nil, errNoPeers
	}
	return s.health(), nil
}

// List implements proto.ServersServer.
func (s *Service) List(ctx context.Context, _ *proto.ListServersRequest) (*proto.ListServersResponse, error) {
	v, err := s.look(ctx)
	if err != nil {
		return nil, err
	}
	out, lead := &proto.ListServersResponse{Lost: v.lost}, s.cfg.Members.Leader()
	for _, m := range v.members {
		state := &proto.ServerState{
			Name: m.Name, Peer: m.Peer, Addresses: v.known[m.Name].Addresses,
			Voter: !m.Learner, Leads: m.ID == lead, Reachable: v.alive[m.ID], Health: v.health[m.ID],
		}
		switch {
		case !state.Reachable && m.Learner:
			state.Trouble = "it has not finished joining: start it again with --join, or run 'stead server remove " + m.Name + "'"
		case !state.Reachable:
			state.Trouble = "not reachable: start it, or, if its data is lost, run 'stead server replace " + m.Name + "'"
		case len(state.GetHealth().GetAlarms()) > 0:
			state.Trouble = "its store has the alarm " + strings.Join(state.GetHealth().GetAlarms(), ", ") + "; see 'stead status'"
		}
		out.Servers = append(out.Servers, state)
	}
	for name, r := range v.known {
		if !slices.ContainsFunc(v.members, func(m stores.StoreMember) bool { return m.Name == name }) {
			out.Servers = append(out.Servers, &proto.ServerState{Name: name, Peer: r.Peer, Addresses: r.Addresses,
				Trouble: "no member of the store: make it again with 'stead server replace " + name + "', or run 'stead server remove " + name + "'"})
		}
	}
	slices.SortFunc(out.Servers, func(a, b *proto.ServerState) int { return strings.Compare(a.GetName(), b.GetName()) })
	return out, nil
}
