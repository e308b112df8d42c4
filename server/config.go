package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"path/filepath"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stead-project/stead/internal/trace"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/records/sealing"
	"github.com/stead-project/stead/server/access"
	"github.com/stead-project/stead/server/audit"
	"github.com/stead-project/stead/server/backup"
	"github.com/stead-project/stead/server/dispatch"
	"github.com/stead-project/stead/server/fence"
	"github.com/stead-project/stead/server/peers"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/spec/scalar"
	"github.com/stead-project/stead/store"
)

// Config is what a server needs. Default fills what may be left out.
type Config struct {
	// Store is not closed by the server. StoreName tells people which it is:
	// embedded, or its endpoints.
	Store     store.Store
	StoreName string
	// Backup writes all that the store holds at one moment, as etcdstore.Store.Backup
	// does; nil: it cannot be backed up through this server. Backups says what is made of that.
	Backup  func(context.Context, io.Writer) error
	Backups Backups
	// AuditDir is where this server keeps what was asked of it, AuditBytes how much of that; "": nothing is kept.
	AuditDir   string
	AuditBytes int64
	// Name of this server: who leads, who holds a session. Unique in the cluster.
	Name string
	// Boot is the boot id of its host, as an agent there has it; "": not known. With it the agent of its own host
	// gets a session at once after a reboot.
	Boot    spec.BootID
	Version string
	// Trace tells how members start; nil: traces are off. The caller closes it.
	Trace *trace.Tracer
	// Socket is the path of the unix socket; it is made 0600, its directory 0700 if
	// there is none.
	Socket string
	// Local is served in place of Socket: a listener in memory, whose callers count as those
	// of the socket if its connections are of network "unix". nil: Socket is.
	Local net.Listener
	// KeyFile holds the key of the cluster's Secrets; made when absent. Every server
	// of a cluster needs the same.
	KeyFile string
	// SeenFile holds what this server knows of the store: each server has its own.
	SeenFile string
	// Hold, if given, has the store held at start, and says why: a person knows that it was
	// restored, whether or not that can be noticed.
	Hold string
	// Domain is the cluster's DNS domain; CIDR the range of members' addresses.
	Domain string
	CIDR   netip.Prefix
	// ServiceCIDR is the range of services' addresses, of /12 to /28; zero: the first of
	// DefaultServiceCIDRs that does not overlap CIDR.
	ServiceCIDR netip.Prefix
	// Tunnel is the tunnel between hosts, one of records.TunnelKinds; "": nodes stay with what they were told before.
	Tunnel string
	// LoadBalancers are ranges of addresses for Services of type LoadBalancer, and ExternalIPs those of which
	// Services may write externalIPs. The operator's network leads packets to them to the hosts.
	LoadBalancers, ExternalIPs []netip.Prefix
	// SessionTTL is how long a node's session outlives its last renewal; LeaderTTL
	// how long a silent leader keeps others out.
	SessionTTL time.Duration
	LeaderTTL  time.Duration
	// Classes maps storage classes of manifests to those of nodes: fast-ssd to local.
	Classes map[string]string
	// Host is what the operator lets members do with their hosts.
	Host spec.HostAccess
	// Listen is where other hosts reach the API, host:port, by mTLS only; "": nowhere.
	// Advertise are the addresses by which they do; default: Listen, which then must be one.
	Listen    string
	Advertise []string
	// Members are those of the embedded store that has peers; nil: it has none, or is external.
	// Peer is where other servers reach it, host:port, and UID this server's own.
	Members peers.Members
	Peer    string
	UID     spec.UID
	// PeerAuthorities are those by which the embedded store knows its peers until it is started again. Followed has what listens for these
	// peers, and what the store shows them, be as the authority is; nil: there are none.
	PeerAuthorities []sealing.AuthorityID
	Followed        func(*access.Authority) error
	// FenceCommand is a program that proves silent nodes dead, by its absolute path; "":
	// people do. FenceAfter is how long a node must have been silent, FenceTimeout how long
	// the program may take. Zero: the defaults of package fence.
	FenceCommand             string
	FenceAfter, FenceTimeout time.Duration
	// Metrics is where /metrics and /healthz are served: unix:///path, or a loopback
	// address with port; empty: nowhere.
	Metrics string
	// Debug adds the debug pages there: profiles, and what the planner sees of a set.
	Debug    bool
	Registry *prometheus.Registry
	Logger   *slog.Logger
}

// Backups is how this server makes backups of the store.
type Backups struct {
	// Read goes through a snapshot; Spool is a directory of the server's own for one.
	Read  backup.Snapshots
	Spool string
	// Recipients are those for whom they are encrypted; none: they are not.
	Recipients []backup.PublicKey
	// Dir is where scheduled ones are kept, as Rules say; "": none are made.
	Dir   string
	Rules backup.Rules
}

func (b *Backups) check(c *Config) error {
	switch {
	case b.Dir == "":
		return nil
	case c.Backup == nil || b.Read == nil:
		return errors.New("--backup-dir: this server's store cannot be backed up")
	case !filepath.IsAbs(b.Dir):
		return fmt.Errorf("--backup-dir %q must be an absolute path", b.Dir)
	case b.Rules.Every < time.Minute:
		return fmt.Errorf("--backup-every %s: must be at least 1m", b.Rules.Every)
	case b.Rules.Keep < 1:
		return fmt.Errorf("--backup-keep %d: must be at least 1", b.Rules.Keep)
	case b.Rules.MaxAge != 0 && b.Rules.MaxAge < b.Rules.Every:
		return fmt.Errorf("--backup-max-age %s: must be 0 or at least --backup-every %s", b.Rules.MaxAge, b.Rules.Every)
	}
	return nil
}

// The defaults of Config.
const (
	DefaultSocket = "/run/stead/stead.sock"
	DefaultDomain = "cluster.local"
	DefaultCIDR   = "10.88.0.0/16"
)

// DefaultServiceCIDRs are such that each range of members leaves one of them free.
var DefaultServiceCIDRs = []string{"10.89.0.0/16", "172.29.0.0/16"}

// Default fills the fields that may be left empty.
func (c *Config) Default() {
	if c.Socket == "" {
		c.Socket = DefaultSocket
	}
	if c.Domain == "" {
		c.Domain = DefaultDomain
	}
	if !c.CIDR.IsValid() {
		c.CIDR = netip.MustParsePrefix(DefaultCIDR)
	}
	for _, text := range DefaultServiceCIDRs {
		if r := netip.MustParsePrefix(text); !c.ServiceCIDR.IsValid() && !r.Overlaps(c.CIDR) {
			c.ServiceCIDR = r
		}
	}
	if c.SessionTTL == 0 {
		c.SessionTTL = dispatch.DefaultTTL
	}
	if c.Registry == nil {
		c.Registry = prometheus.NewRegistry()
	}
	if c.AuditBytes == 0 {
		c.AuditBytes = audit.DefaultBytes
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
}

// checkServices refuses ranges that services have addresses outside of: hosts would lead them no more.
func (c *Config) checkServices(addresses map[netip.Addr]*records.ServiceAddress) error {
	ranges := slices.Concat([]netip.Prefix{c.ServiceCIDR}, c.LoadBalancers, c.ExternalIPs)
	for a, r := range addresses {
		if !r.Freed && !slices.ContainsFunc(ranges, func(p netip.Prefix) bool { return p.Contains(a) }) {
			return fmt.Errorf("service %s/%s has the address %s, which is not in --service-cidr %s, --load-balancer-cidr or --external-ip-cidr: start with the ranges as they were, or delete the Services first",
				r.Namespace, r.Name, a, c.ServiceCIDR)
		}
	}
	return nil
}

// checkOutside tells what is wrong with the ranges for clients outside: each is apart from all others.
func (c *Config) checkOutside() error {
	others := []netip.Prefix{c.CIDR, c.ServiceCIDR}
	for flag, ranges := range map[string][]netip.Prefix{"--load-balancer-cidr": c.LoadBalancers, "--external-ip-cidr": c.ExternalIPs} {
		for _, r := range ranges {
			if !r.IsValid() || !r.Addr().Is4() || r != r.Masked() || r.Bits() < 8 || r.Addr().IsLoopback() || r.Addr().IsLinkLocalUnicast() || r.Addr().IsMulticast() {
				return fmt.Errorf("%s %s must be an IPv4 range of /8 or smaller that clients outside reach, such as 203.0.113.0/28", flag, r)
			}
			if at := slices.IndexFunc(others, r.Overlaps); at >= 0 {
				return fmt.Errorf("%s %s overlaps %s of --cidr, --service-cidr, --load-balancer-cidr or --external-ip-cidr; choose another", flag, r, others[at])
			}
			others = append(others, r)
		}
	}
	return nil
}

// Check tells what is wrong with c.
func (c *Config) Check() error {
	switch {
	case c.Store == nil:
		return errors.New("a store is needed")
	case c.Name == "":
		return errors.New("a name is needed")
	case c.KeyFile == "" || !filepath.IsAbs(c.KeyFile):
		return fmt.Errorf("key file %q must be an absolute path", c.KeyFile)
	case !filepath.IsAbs(c.SeenFile):
		return fmt.Errorf("file %q of what is known of the store must be an absolute path", c.SeenFile)
	case !filepath.IsAbs(c.Socket):
		return fmt.Errorf("socket %q must be an absolute path", c.Socket)
	case !scalar.ValidSubdomain(c.Domain):
		return fmt.Errorf("domain %q: must be a DNS name", c.Domain)
	case !c.ServiceCIDR.IsValid() || !c.ServiceCIDR.Addr().Is4() || c.ServiceCIDR != c.ServiceCIDR.Masked() ||
		c.ServiceCIDR.Bits() < 12 || c.ServiceCIDR.Bits() > 28:
		return fmt.Errorf("--service-cidr %s must be an IPv4 range of /12 to /28, such as %s", c.ServiceCIDR, DefaultServiceCIDRs[0])
	case c.ServiceCIDR.Overlaps(c.CIDR):
		return fmt.Errorf("--service-cidr %s overlaps the members' range %s (--cidr); choose another", c.ServiceCIDR, c.CIDR)
	case c.SessionTTL < time.Second:
		return fmt.Errorf("session TTL %s: must be at least 1s", c.SessionTTL)
	}
	if err := errors.Join(c.checkOutside(), c.Backups.check(c)); err != nil {
		return err
	}
	if err := fence.Check(c.FenceCommand, c.FenceAfter, c.FenceTimeout); err != nil {
		return err
	}
	if err := access.CheckListen(c.Listen, c.Advertise); err != nil {
		return err
	}
	if c.Debug && c.Metrics == "" {
		return errDebugWithoutMetrics
	}
	return CheckMetrics(c.Metrics)
}
