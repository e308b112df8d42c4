// Package peers has servers with the embedded store form one cluster: how one joins, which
// there are, and how one leaves. What may be done is decided by server/quorum. It alone writes
// the keys servers/<name>.
package peers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/stead-project/stead/proto"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/records/stores"
	"github.com/stead-project/stead/server/access"
	"github.com/stead-project/stead/server/cache"
	"github.com/stead-project/stead/server/quorum"
	"github.com/stead-project/stead/store"
)

// Members are those of the store; etcdembed.Embedded is one of them.
type Members interface {
	Self() string
	Leader() string
	Members(ctx context.Context) ([]stores.StoreMember, error)
	Known() []stores.StoreMember
	Health() stores.StoreHealth
	Acked(id string) stores.Mark
	Removed(id string) bool
	AddLearner(ctx context.Context, peer string) ([]stores.StoreMember, error)
	Remove(ctx context.Context, id, to string) error
}

// Config is what a Service needs.
type Config struct {
	Store     store.Store
	Members   Members // nil: the store is an external one, or has no peers
	Cache     cache.Reader
	Version   string
	Dir       string // of this server, where it keeps how far members have come; "": it keeps nothing
	Authority *access.Authority
	Self      records.Server // this one
	Logger    *slog.Logger
}

// Service answers about servers.
type Service struct {
	proto.UnimplementedServersServer
	cfg   Config
	asked asked
	noted noted
}

// New starts nothing.
func New(cfg Config) *Service { return &Service{cfg: cfg} }

var errNoPeers = status.Error(codes.FailedPrecondition,
	"this server's store has no other members; start it with --peer-listen HOST:PORT, so that others can join")

// Register writes this server's record, if it is not there as it should be. A server whose store has no other member
// may have the name of one that was there when the store was backed up.
func (s *Service) Register(ctx context.Context) error {
	if s.cfg.Members == nil {
		return nil
	}
	members, err := s.cfg.Members.Members(ctx)
	if err != nil {
		return err
	}
	return s.record(ctx, s.cfg.Self, len(members) == 1)
}

// record writes a server's record. It fails when another directory has the name, unless this one is alone.
func (s *Service) record(ctx context.Context, r records.Server, alone bool) error {
	key := store.ServerKey(r.Name)
	for {
		_, kvs, err := s.cfg.Store.Get(ctx, key)
		if err != nil {
			return err
		}
		known, err := store.DecodeIn[records.Server](kvs, key)
		switch {
		case err != nil:
			return err
		case known != nil && known.UID != r.UID && !alone:
			return fmt.Errorf("another server of the cluster has the name %s; give this one another --name", r.Name)
		case known != nil && known.UID == r.UID && known.Peer == r.Peer && slices.Equal(known.Addresses, r.Addresses):
			return nil
		}
		r.At = time.Now().UTC()
		_, err = s.cfg.Store.Commit(ctx, store.Txn{If: []store.Compare{store.Seen(key, kvs[key].Mod)}, Then: []store.Op{store.Put(key, store.Encode(r))}})
		if !errors.Is(err, store.ErrConflict) {
			return err
		}
	}
}

// unsaidFormat is what a server knows that joins and does not say it: the format by which servers came to share a store.
const unsaidFormat = 2

// Add implements proto.ServersServer.
func (s *Service) Add(ctx context.Context, r *proto.AddServerRequest) (*proto.AddServerResponse, error) {
	if s.cfg.Members == nil {
		return nil, errNoPeers
	}
	var self records.Server
	if err := json.Unmarshal(r.GetServerJson(), &self); err != nil || self.Name == "" || self.UID == "" || self.Peer == "" {
		return nil, status.Error(codes.InvalidArgument, "the request names no server")
	}
	key := store.ServerKey(self.Name)
	_, kvs, err := s.cfg.Store.Get(ctx, key, store.FormatKey)
	if err != nil {
		return nil, err
	}
	// Before it is a member of the store: it would end at its start, and be missed by the others.
	if err := store.CheckFormat(kvs, max(int(r.GetKnowsFormat()), unsaidFormat)); err != nil {
		return nil, status.Error(codes.FailedPrecondition, err.Error())
	}
	known, err := store.DecodeIn[records.Server](kvs, key)
	if err != nil {
		return nil, err
	}
	members, err := s.cfg.Members.Members(ctx)
	if err != nil {
		return nil, away(err)
	}
	step, why := quorum.Join(known, members, self)
	if step == quorum.Refuse {
		return nil, status.Error(codes.FailedPrecondition, why)
	}
	if step == quorum.Add { // recorded first: after a crash it is known whose the new member is
		if err := s.record(ctx, self, false); err != nil {
			return nil, away(err)
		}
		if members, err = s.cfg.Members.AddLearner(ctx, self.Peer); err != nil {
			return nil, away(err)
		}
		s.cfg.Logger.Info("server added", "reason", self.Name+" at "+self.Peer)
	}
	return &proto.AddServerResponse{MembersJson: store.Encode(members)}, nil
}

// Remove implements proto.ServersServer.
func (s *Service) Remove(ctx context.Context, r *proto.RemoveServerRequest) (*proto.RemoveServerResponse, error) {
	v, err := s.lookWhole(ctx)
	if err != nil {
		return nil, err
	}
	at := slices.IndexFunc(v.members, func(m stores.StoreMember) bool { return m.Name == r.GetName() })
	if at >= 0 {
		id := v.members[at].ID
		if why := quorum.MayRemove(v.members, v.alive, id); why != "" {
			return nil, status.Errorf(codes.FailedPrecondition, "server %s stays: %s", r.GetName(), why)
		}
		if id == s.cfg.Members.Leader() && id != s.cfg.Members.Self() && v.alive[id] {
			return s.byItself(ctx, id, v.known[r.GetName()].Addresses, r) // it hands over the lead first
		}
		if err := s.forget(ctx, r.GetName()); err != nil {
			return nil, err
		}
		if err := s.cfg.Members.Remove(ctx, id, quorum.Next(v.members, v.alive, id)); err != nil {
			return nil, away(err)
		}
		s.cfg.Logger.Info("server removed", "reason", r.GetName())
		return &proto.RemoveServerResponse{}, nil
	}
	if _, known := v.known[r.GetName()]; !known {
		return nil, status.Errorf(codes.NotFound, "there is no server %s; see 'stead server ls'", r.GetName())
	}
	return &proto.RemoveServerResponse{}, s.forget(ctx, r.GetName())
}

// byItself has the server that leads, whose member is id, remove itself. It ends then, perhaps before it has answered.
func (s *Service) byItself(ctx context.Context, id string, addresses []string, r *proto.RemoveServerRequest) (*proto.RemoveServerResponse, error) {
	conn, err := s.cfg.Authority.Connect(ctx, addresses)
	if err != nil {
		return nil, away(err)
	}
	defer conn.Close()
	out, err := proto.NewServersClient(conn).Remove(ctx, r)
	if status.Code(err) != codes.Unavailable {
		return out, err
	}
	members, looked := s.cfg.Members.Members(ctx)
	if looked != nil || slices.ContainsFunc(members, func(m stores.StoreMember) bool { return m.ID == id }) {
		return nil, err
	}
	return &proto.RemoveServerResponse{}, nil
}

func (s *Service) forget(ctx context.Context, name string) error {
	_, err := s.cfg.Store.Commit(ctx, store.Txn{Then: []store.Op{ // no rotation waits for it
		store.Del(store.ServerKey(name)), store.Del(store.ServerKeysKey(name)), store.Del(store.GivenKeysKey(name)), store.Del(store.ServerAuthoritiesKey(name)),
	}})
	return err
}

// Replace implements proto.ServersServer.
func (s *Service) Replace(ctx context.Context, r *proto.ReplaceServerRequest) (*proto.CreateTokenResponse, error) {
	v, err := s.lookWhole(ctx)
	if err != nil {
		return nil, err
	}
	for _, m := range v.members {
		if m.Name == r.GetName() && v.alive[m.ID] {
			return nil, status.Errorf(codes.FailedPrecondition, "server %s answers, so it is not lost; stop it first, or run 'stead server remove %s'", m.Name, m.Name)
		}
	}
	if _, err := s.Remove(ctx, &proto.RemoveServerRequest{Name: r.GetName()}); err != nil {
		return nil, err
	}
	token, err := s.cfg.Authority.CreateServerToken(ctx, time.Duration(r.GetTtlMillis())*time.Millisecond, r.GetName())
	if err != nil {
		return nil, err
	}
	return &proto.CreateTokenResponse{Id: token.ID, Token: token.Text()}, nil
}
