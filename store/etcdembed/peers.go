package etcdembed

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"go.etcd.io/etcd/client/pkg/v3/transport"
	"go.etcd.io/etcd/server/v3/embed"

	"github.com/stead-project/stead/records/stores"
)

var (
	// ErrAlone: the store has more members, and this one was started without Config.Peers.
	ErrAlone = errors.New("the store has members on other servers: start this server with --peer-listen, as before")
	// ErrSetBack: the member has confirmed votes or writes that its data does not have.
	ErrSetBack = errors.New("the data of this server's store went back: the other servers have more of its log than it has itself; an old copy of it was put in place, " +
		"or its disk lost what it had said to have written. It must not be used, for it has forgotten votes and writes that it had confirmed")
	// ErrJoining: another member is a learner still; one joins at a time.
	ErrJoining = errors.New("another server is just joining; wait until 'stead server ls' shows it as a voter, or remove it")
)

// Peers has the member reached by those of other servers. What comes in is not the member's
// own business: whoever starts it listens for other servers, and leads their connections,
// once it knows them, to the socket at PeerSocket(Config.Dir).
type Peers struct {
	// Address is where other servers reach it, host:port.
	Address string
	// CAFile and CertFile (with the key) are PEM files by which it calls others, and knows
	// them. They are read for each connection; only the authority must stay the same.
	CAFile, CertFile string
	// Join are the members of the cluster that a new member joins, with itself, which has no
	// name yet. It is ignored where the directory has a member; empty: a cluster of its own.
	Join []stores.StoreMember
}

// The raft clock with peers, which may be slow for a moment: etcd's own.
const (
	peerTick     = 100 * time.Millisecond
	peerElection = time.Second
)

// peerScheme is that of the URLs of members that others reach.
const peerScheme = "https"

// PeerSocket is the unix socket on which the member in dir serves its peers, without TLS.
func PeerSocket(dir string) string { return filepath.Join(dir, "peers.sock") }

// Has reports whether dir holds the data of a member.
func Has(dir string) (bool, error) {
	_, err := os.Lstat(filepath.Join(dir, dataDir, "member", "wal"))
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// with sets what differs for a member that has peers.
func (p *Peers) with(c Config, cfg *embed.Config) {
	at := url.URL{Scheme: peerScheme, Host: p.Address}
	cfg.ListenPeerUrls = []url.URL{{Scheme: "unix", Host: PeerSocket(c.Dir)}} // etcd takes the path from Host
	cfg.AdvertisePeerUrls = []url.URL{at}
	cfg.PeerTLSInfo = transport.TLSInfo{CertFile: p.CertFile, KeyFile: p.CertFile, TrustedCAFile: p.CAFile, ClientCertAuth: true}
	cfg.TlsMinVersion = "TLS1.3"
	cfg.TickMs, cfg.ElectionMs = uint(peerTick.Milliseconds()), uint(peerElection.Milliseconds())
	cfg.SnapshotCount, cfg.SnapshotCatchUpEntries = embed.NewConfig().SnapshotCount, embed.NewConfig().SnapshotCatchUpEntries
	cfg.InitialCluster = c.Name + "=" + at.String()
	for i, m := range p.Join {
		if m.Peer != p.Address {
			// Names only tell members apart here; etcd compares the URLs.
			cfg.InitialCluster += fmt.Sprintf(",%d=%s://%s", i, peerScheme, m.Peer)
		}
	}
	if len(p.Join) > 0 {
		cfg.ClusterState = embed.ClusterStateFlagExisting
	}
}

// belongs refuses a member that is none any more, or whose peers would not reach it.
func (e *Embedded) belongs() error {
	cluster, self := e.etcd.Server.Cluster(), e.etcd.Server.MemberID()
	switch {
	case e.logs.gone.Load(), e.etcd.Server.IsIDRemoved(uint64(self)):
		return stores.ErrRemoved
	case e.config.Peers == nil && len(cluster.Members()) > 1:
		return ErrAlone
	}
	return nil
}

// Self is the id of this member, in hex.
func (e *Embedded) Self() string { return e.etcd.Server.MemberID().String() }

// Members are all members of the store, read linearizably.
func (e *Embedded) Members(ctx context.Context) ([]stores.StoreMember, error) {
	ctx, cancel := context.WithTimeout(ctx, e.etcd.Server.Cfg.ReqTimeout())
	defer cancel()
	list, err := e.client.MemberList(ctx)
	if err != nil {
		return nil, plain("list members", err)
	}
	return membersOf(list.Members), nil
}

func membersOf(list []*etcdserverpb.Member) []stores.StoreMember {
	out := make([]stores.StoreMember, len(list))
	for i, m := range list {
		out[i] = stores.StoreMember{ID: strconv.FormatUint(m.ID, 16), Name: m.Name, Learner: m.IsLearner}
		if len(m.PeerURLs) > 0 {
			if u, err := url.Parse(m.PeerURLs[0]); err == nil && u.Scheme == peerScheme {
				out[i].Peer = u.Host
			}
		}
	}
	slices.SortFunc(out, func(a, b stores.StoreMember) int { return strings.Compare(a.Name, b.Name) })
	return out
}

// Known are all members of the store as far as this one knows, also while most are away.
func (e *Embedded) Known() []stores.StoreMember {
	var list []*etcdserverpb.Member
	for _, m := range e.etcd.Server.Cluster().Members() {
		list = append(list, &etcdserverpb.Member{ID: uint64(m.ID), Name: m.Name, PeerURLs: m.PeerURLs, IsLearner: m.IsLearner})
	}
	return membersOf(list)
}

// named lists members for people.
func named(members []stores.StoreMember) string {
	names := make([]string, len(members))
	for i, m := range members {
		names[i] = m.Name
		if m.Peer != "" {
			names[i] += " (" + m.Peer + ")"
		}
	}
	return strings.Join(names, ", ")
}

// AddLearner adds a member that gets all writes and does not vote, and returns all. Errors:
// ErrJoining.
func (e *Embedded) AddLearner(ctx context.Context, peer string) ([]stores.StoreMember, error) {
	var members []stores.StoreMember
	err := settled(ctx, func(ctx context.Context) error {
		added, err := e.client.MemberAddAsLearner(ctx, []string{peerScheme + "://" + peer})
		if err == nil {
			members = membersOf(added.Members)
		}
		return err
	})
	if errors.Is(err, rpctypes.ErrTooManyLearners) {
		return nil, ErrJoining
	}
	return members, plain("add member", err)
}

// settled changes the members, and again while etcd wants them to be connected for 5 s first.
func settled(ctx context.Context, change func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, settleTime)
	defer cancel()
	for {
		err := change(ctx)
		if !errors.Is(err, rpctypes.ErrUnhealthy) {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(promoteEvery):
		}
	}
}

// settleTime is how long members may take to be connected before one is added.
const settleTime = 15 * time.Second

// promoteEvery is how often a learner asks to be made a voter.
const promoteEvery = 300 * time.Millisecond

// Promote makes this member a voter, if it is a learner, once it has caught up. It waits for
// that until ctx ends.
func (e *Embedded) Promote(ctx context.Context) error {
	for e.etcd.Server.IsLearner() {
		asking, cancel := context.WithTimeout(ctx, e.etcd.Server.Cfg.ReqTimeout())
		_, err := e.client.MemberPromote(asking, uint64(e.etcd.Server.MemberID()))
		cancel()
		if errors.Is(err, rpctypes.ErrMemberNotFound) {
			return stores.ErrRemoved
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("become a voter: %w: %w", ctx.Err(), err)
		case err := <-e.etcd.Err():
			return fmt.Errorf("become a voter: %w", err)
		case <-e.ended:
			return fmt.Errorf("become a voter: %w", e.Why())
		case <-time.After(promoteEvery):
		}
	}
	return nil
}

// Removed reports whether a member was removed from the store, as far as this one knows.
func (e *Embedded) Removed(id string) bool {
	member, err := strconv.ParseUint(id, 16, 64)
	return err == nil && e.etcd.Server.IsIDRemoved(member)
}

// Learner reports whether this member does not vote yet.
func (e *Embedded) Learner() bool { return e.etcd.Server.IsLearner() }

// Leader is the id of the member that leads, in hex; "": none that this one knows.
func (e *Embedded) Leader() string {
	if lead := e.etcd.Server.Leader(); lead != 0 {
		return lead.String()
	}
	return ""
}

// Remove removes a member for good. One that leads gives that up first, to the voter at to.
func (e *Embedded) Remove(ctx context.Context, id, to string) error {
	member, err := strconv.ParseUint(id, 16, 64)
	if err != nil {
		return fmt.Errorf("remove member %q: %w", id, err)
	}
	if id == e.Self() && e.Leader() == id && to != "" {
		next, err := strconv.ParseUint(to, 16, 64)
		if err != nil {
			return fmt.Errorf("move leadership to %q: %w", to, err)
		}
		if err := e.etcd.Server.MoveLeader(ctx, member, next); err != nil {
			return plain("move leadership", err)
		}
	}
	err = settled(ctx, func(ctx context.Context) error {
		_, err := e.client.MemberRemove(ctx, member)
		return err
	})
	switch {
	case errors.Is(err, rpctypes.ErrMemberNotFound):
		return nil
	case err != nil && id == e.Self() && errors.Is(e.belongs(), stores.ErrRemoved):
		return nil // it ended before it could answer
	}
	return plain("remove member", err)
}

// plain says what was being done; nil stays nil.
func plain(what string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", what, err)
}
