package server

import (
	"context"
	"path/filepath"

	"github.com/stead-project/stead/server/access"
	"github.com/stead-project/stead/server/authorities"
	"github.com/stead-project/stead/server/seal"
)

// openAuthority is the cluster's authority; nil where no other host is listened to.
func (s *Server) openAuthority(ctx context.Context, key *seal.Key) (*access.Authority, error) {
	if s.cfg.Listen == "" {
		return nil, nil
	}
	return access.OpenAuthority(ctx, access.AuthorityConfig{
		Store: s.cfg.Store, Key: key, Server: s.cfg.Name, Addresses: s.addresses, Logger: s.cfg.Logger,
	})
}

// openAuthorities makes what replaces the authority; nothing of it runs yet.
func (s *Server) openAuthorities(a *access.Authority) {
	s.authorities = authorities.New(authorities.Config{
		Store: s.cfg.Store, Cache: s.cache, Authority: a, Server: s.cfg.Name, Started: s.cfg.PeerAuthorities, Logger: s.cfg.Logger,
		Kept: func(ctx context.Context) error {
			err := a.RenewIdentity(ctx, filepath.Dir(s.cfg.SeenFile))
			if err == nil && s.cfg.Followed != nil {
				err = s.cfg.Followed(a)
			}
			return err
		},
	})
}
