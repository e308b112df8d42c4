package authorities

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"slices"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/stead-project/stead/proto"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/records/sealing"
	"github.com/stead-project/stead/server/access"
	"github.com/stead-project/stead/server/cache"
	"github.com/stead-project/stead/server/rotation"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/store"
)

var errNone = status.Error(codes.FailedPrecondition, "this cluster has no authority: its server is for its own host only; start it with --listen HOST:PORT, so that others can reach it")

// fresh is what the store has about the authority and those who depend on it, no older than now.
func (s *Service) fresh(ctx context.Context) (a cache.AuthorityState, w rotation.AuthorityWorld, err error) {
	if s.cfg.Authority == nil {
		return a, w, errNone
	}
	rev, _, err := s.cfg.Store.Get(ctx, store.AuthorityKey)
	if err == nil {
		err = s.cfg.Cache.Wait(ctx, rev)
	}
	if err != nil {
		return a, w, err
	}
	a = s.look()
	if a.Record == nil {
		return a, w, errors.New("the authority's record cannot be read")
	}
	clients, err := s.cfg.Authority.Clients(ctx)
	if err != nil {
		return a, w, err
	}
	w = s.decided(a)
	revoked := map[spec.NodeName]bool{}
	for _, n := range a.Nodes {
		revoked[n.Name] = clients.Revoked[n.UID]
	}
	w.Nodes = slices.DeleteFunc(w.Nodes, func(n rotation.CertifiedNode) bool { return revoked[n.Name] })
	for id, c := range clients.Known {
		if !clients.Revoked[id] && time.Now().Before(c.Until) && (c.Authority != "" || a.Record.Retired == nil) {
			w.Clients = append(w.Clients, rotation.CertifiedClient{Name: c.Name, ID: id, By: sealing.AuthorityID(c.Authority)})
		}
	}
	w.Clients = slices.DeleteFunc(w.Clients, func(c rotation.CertifiedClient) bool { return c.By != "" && c.By != w.Now && c.By != w.Next })
	slices.SortFunc(w.Clients, func(a, b rotation.CertifiedClient) int { return cmpClients(a, b) })
	return a, w, nil
}

func cmpClients(a, b rotation.CertifiedClient) int {
	switch {
	case a.Name != b.Name && a.Name < b.Name, a.Name == b.Name && a.ID < b.ID:
		return -1
	case a == b:
		return 0
	}
	return 1
}

// List implements proto.AuthorityServer.
func (s *Service) List(ctx context.Context, _ *proto.ListAuthoritiesRequest) (*proto.ListAuthoritiesResponse, error) {
	a, w, err := s.fresh(ctx)
	if err != nil {
		return nil, err
	}
	out := &proto.ListAuthoritiesResponse{}
	_, out.Wait = rotation.NextAuthority(w)
	show := func(certificate []byte, use string) {
		id := access.AuthorityID(certificate)
		one := &proto.AuthorityState{Id: string(id), Use: use}
		if ca, err := x509.ParseCertificate(certificate); err == nil {
			one.UntilUnix = ca.NotAfter.Unix()
		}
		for _, name := range a.Servers {
			if said := a.Said[name]; said != nil && slices.Contains(said.Trusts, id) {
				one.Servers = append(one.Servers, name)
			}
			if said := a.Said[name]; said != nil && slices.Contains(said.Store, id) {
				one.Stores = append(one.Stores, name)
			}
		}
		for _, n := range w.Nodes {
			if w.Next != "" && use != "retired" && (n.By == w.Next) == (id == w.Next) {
				one.Nodes = append(one.Nodes, string(n.Name))
			}
		}
		for _, c := range w.Clients {
			if use != "retired" && (c.By == id || c.By == "" && id == w.Now) {
				one.Clients = append(one.Clients, fmt.Sprintf("%s(%s)", c.Name, c.ID))
			}
		}
		out.Authorities = append(out.Authorities, one)
	}
	if r := a.Record.Retired; r != nil {
		show(r.Certificate, "retired")
	}
	now, next := "signs", "next"
	if w.Issuing {
		now, next = "trusted", "signs"
	}
	show(a.Record.Certificate, now)
	if a.Record.Next != nil {
		show(a.Record.Next.Certificate, next)
	}
	if w.Issuing {
		out.Wait = "no server, node or client file depends on the old one any more; retire it with 'stead authority retire'"
		if err := rotation.RetireAuthority(w, rotation.Leave{}); err != nil {
			out.Wait = err.Error()
		}
	}
	return out, nil
}

// Rotate implements proto.AuthorityServer.
func (s *Service) Rotate(ctx context.Context, r *proto.RotateAuthorityRequest) (*proto.RotateAuthorityResponse, error) {
	a, w, err := s.fresh(ctx)
	if err != nil {
		return nil, err
	}
	for _, name := range r.GetWithout() {
		if !slices.Contains(a.Servers, name) {
			return nil, status.Errorf(codes.NotFound, "no server %s is known; known are %v", name, a.Servers)
		}
		if name == s.cfg.Server {
			return nil, status.Errorf(codes.FailedPrecondition, "server %s is the one that you ask", name)
		}
	}
	_, kvs, err := s.cfg.Store.Get(ctx, store.KeyringKey)
	if err != nil {
		return nil, err
	}
	record := *a.Record
	if next := record.Next; next != nil && len(r.GetWithout()) > 0 {
		more := *next
		more.Without = slices.Compact(slices.Sorted(slices.Values(append(slices.Clone(next.Without), r.GetWithout()...))))
		record.Next = &more
		return &proto.RotateAuthorityResponse{Id: string(w.Next)}, s.commit(ctx, a, record)
	}
	if err := rotation.RotateAuthority(w, r.GetWithout()); err != nil {
		return nil, status.Error(codes.FailedPrecondition, err.Error())
	}
	ring, err := store.DecodeIn[sealing.Ring](kvs, store.KeyringKey)
	if err != nil {
		return nil, err
	}
	if record.Next, err = s.cfg.Authority.Next(ring); err != nil {
		return nil, err
	}
	record.Next.Without, record.Next.At = r.GetWithout(), time.Now().UTC()
	err = s.commit(ctx, a, record, store.Seen(store.KeyringKey, kvs[store.KeyringKey].Mod))
	return &proto.RotateAuthorityResponse{Id: string(access.AuthorityID(record.Next.Certificate))}, err
}

// commit writes the authority as a person wants it.
func (s *Service) commit(ctx context.Context, a cache.AuthorityState, record sealing.Authority, more ...store.Compare) error {
	rev, err := s.cfg.Store.Commit(ctx, store.Txn{
		If:   append(more, store.NotHeld(), store.Seen(store.AuthorityKey, a.Rev)),
		Then: []store.Op{store.Put(store.AuthorityKey, store.Encode(record))},
	})
	switch {
	case errors.Is(err, store.ErrConflict):
		return status.Error(codes.Aborted, "the authority or the keyring changed meanwhile, or the store is held; nothing was written, try again")
	case err != nil:
		return err
	}
	return s.cfg.Cache.Wait(ctx, rev)
}

// Retire implements proto.AuthorityServer.
func (s *Service) Retire(ctx context.Context, r *proto.RetireAuthorityRequest) (*proto.RetireAuthorityResponse, error) {
	a, w, err := s.fresh(ctx)
	if err != nil {
		return nil, err
	}
	leave := rotation.Leave{Clients: r.GetEndClients()}
	for _, name := range r.GetWithoutNodes() {
		if !slices.ContainsFunc(a.Nodes, func(n cache.NodeAuthority) bool { return string(n.Name) == name }) {
			return nil, status.Errorf(codes.NotFound, "there is no node %s", name)
		}
		leave.Nodes = append(leave.Nodes, spec.NodeName(name))
	}
	if err := rotation.RetireAuthority(w, leave); err != nil {
		return nil, status.Error(codes.FailedPrecondition, err.Error())
	}
	tokens, err := s.cfg.Authority.Tokens(ctx)
	if err != nil {
		return nil, err
	}
	tokens = slices.DeleteFunc(tokens, func(t records.JoinToken) bool { return t.UsedBy != "" })
	out := &proto.RetireAuthorityResponse{Id: string(w.Now), Tokens: int32(len(tokens))}
	for _, c := range w.Clients {
		if c.By != w.Next {
			out.Clients = append(out.Clients, fmt.Sprintf("%s (%s)", c.Name, c.ID))
		}
	}
	for _, name := range a.Servers {
		if said := a.Said[name]; said != nil && slices.Contains(said.Store, w.Now) {
			out.Stores = append(out.Stores, name)
		}
	}
	if r.GetDryRun() {
		return out, nil
	}
	record, err := s.cfg.Authority.Retire(*a.Record)
	if err != nil {
		return nil, err
	}
	record.Retired.At = time.Now().UTC()
	if err := s.commit(ctx, a, record); err != nil {
		return nil, err
	}
	s.cfg.Logger.Info("authority retired", "reason", string(w.Now))
	for _, t := range tokens { // they name an authority that no server shows any more
		if _, err := s.cfg.Authority.RevokeToken(ctx, t.ID); err != nil {
			s.cfg.Logger.Warn("join token of the retired authority not removed", "reason", t.ID, "err", err)
		}
	}
	return out, nil
}
