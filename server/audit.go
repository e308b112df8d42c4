package server

import (
	"github.com/stead-project/stead/server/access"
	"github.com/stead-project/stead/server/audit"
	"github.com/stead-project/stead/server/cache"
)

// openAudit opens this server's audit log; nil: it keeps none.
func (c *Config) openAudit() (*audit.Trail, error) {
	if c.AuditDir == "" {
		return nil, nil
	}
	return audit.Open(audit.Config{Dir: c.AuditDir, Bytes: c.AuditBytes, Server: c.Name, Logger: c.Logger})
}

// audits shows the audit logs of all servers.
func (s *Server) audits(authority *access.Authority) *audit.Service {
	a := &audit.Service{Log: s.audit}
	if authority != nil {
		a.Connect = authority.Connect
		a.Others = func() (others []audit.OtherServer) {
			s.cache.Look(func(v cache.View) {
				for _, r := range cache.Servers(v) {
					if r.Name != s.cfg.Name {
						others = append(others, audit.OtherServer{Name: r.Name, Addresses: r.Addresses})
					}
				}
			})
			return others
		}
	}
	return a
}
