package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/stead-project/stead/proto"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/server"
	"github.com/stead-project/stead/server/access"
	"github.com/stead-project/stead/server/peers"
	"github.com/stead-project/stead/server/seal"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/store/etcdembed"
)

// peering is what a server whose store has peers runs beside it. nil: the store is alone.
type peering struct {
	uid   spec.UID
	peers *etcdembed.Peers
	// authority is that of the port, and of what the store shows its peers.
	authority *access.Authority
	port      *access.PeerPort
	end       context.CancelFunc
	group     sync.WaitGroup
}

// close ends the port, after the store.
func (p *peering) close() {
	if p != nil {
		p.end()
		p.group.Wait()
	}
}

// follow has the port, and what the store shows its peers, be as the authority is.
func (p *peering) follow(now *access.Authority) error {
	p.authority.As(now)
	return p.port.Renew()
}

func (p *peering) store() *etcdembed.Peers {
	if p == nil {
		return nil
	}
	return p.peers
}

// stopped is nil for an error of a start that was asked to end meanwhile.
func stopped(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// memberName is the name of the embedded store's member.
func (o *serverOptions) memberName() string {
	if o.PeerListen == "" {
		return "stead"
	}
	return o.Name
}

func (o *serverOptions) peerFlags(f *pflag.FlagSet) {
	f.StringVar(&o.PeerListen, "peer-listen", "", "HOST:PORT of this host where other servers with an embedded etcd reach this one's, over mutual TLS of servers only; needs --listen (default: off; the store is this server's alone)")
	f.StringSliceVar(&o.Join, "join", nil, "HOST:PORT of --listen of servers of a cluster that this one joins at its first start; needs --peer-listen and a token of 'stead token create --for-server' (repeatable)")
	o.Token.flags(f)
}

func (o *serverOptions) checkPeers() error {
	switch {
	case o.PeerListen == "" && len(o.Join) > 0:
		return misuse("--join needs --peer-listen HOST:PORT, where the other servers reach this one's store")
	case o.PeerListen == "":
		return nil
	case len(o.Etcd.Endpoints) > 0:
		return misuse("--peer-listen is for the embedded etcd; remove --etcd-endpoints")
	case o.Listen == "":
		return misuse("--peer-listen needs --listen HOST:PORT, where servers and agents on other hosts reach this one")
	}
	if err := access.CheckListen(o.PeerListen, nil); err != nil || strings.HasSuffix(o.PeerListen, ":0") {
		return misuse("--peer-listen %q: write the address of this host at which the other servers reach it, and a port", o.PeerListen)
	}
	return nil
}

// openPeers makes the store ready for peers: the server gets its identity, at its first start
// by joining or from its own store, and its port is opened.
func (o *serverOptions) openPeers(ctx context.Context, log *slog.Logger) (*peering, error) {
	if o.PeerListen == "" {
		return nil, nil
	}
	id, err := access.LoadIdentity(o.DataDir)
	if err != nil {
		return nil, err
	}
	has, err := etcdembed.Has(embeddedDir(o.DataDir))
	if err != nil {
		return nil, err
	}
	switch {
	case id == nil && !has && len(o.Join) > 0:
		id, err = peers.Enroll(ctx, o.DataDir, o.KeyFile, o.Name, o.Join, o.token, log)
	case id == nil:
		id, err = o.found(ctx, log)
		has = true
	case !has && len(o.Join) == 0:
		err = fmt.Errorf("the data of this server's store is not in %s: bring it back; if it is lost, run 'stead server replace %s' on another server, "+
			"move %s away, and start this one with --join and the token that was printed", embeddedDir(o.DataDir), o.Name, o.DataDir)
	}
	if err != nil {
		return nil, err
	}
	key, err := seal.Load(o.KeyFile)
	if err != nil {
		return nil, err
	}
	addresses := o.Advertise
	if len(addresses) == 0 {
		addresses = []string{o.Listen}
	}
	a, err := id.Open(access.AuthorityConfig{Key: key, Server: o.Name, Addresses: addresses, Peer: o.PeerListen, Logger: log})
	if err != nil {
		return nil, err
	}
	if has {
		member, at, err := etcdembed.Mark(embeddedDir(o.DataDir))
		if err == nil {
			err = peers.Check(ctx, a, o.DataDir, o.Name, member, at, o.Join)
		}
		if err != nil {
			return nil, err
		}
	}
	p := &peering{uid: id.UID}
	ca, certificate := access.PeerFiles(o.DataDir)
	p.peers = &etcdembed.Peers{Address: o.PeerListen, CAFile: ca, CertFile: certificate}
	if !has {
		self := records.Server{Name: o.Name, UID: id.UID, Peer: o.PeerListen, Addresses: addresses}
		if p.peers.Join, err = peers.Enter(ctx, a, o.Join, self, log); err != nil {
			return nil, err
		}
	}
	port, err := access.OpenPeerPort(ctx, a, o.PeerListen, etcdembed.PeerSocket(embeddedDir(o.DataDir)), o.DataDir, log)
	if err != nil {
		return nil, err
	}
	p.authority, p.port = a, port
	running, end := context.WithCancel(context.WithoutCancel(ctx)) // until the store has ended
	p.end = end
	p.group.Go(func() { port.Run(running) })
	return p, nil
}

// found makes the identity of a server whose store is alone until now.
func (o *serverOptions) found(ctx context.Context, log *slog.Logger) (_ *access.ServerIdentity, err error) {
	opened, err := o.Etcd.open(ctx, o.DataDir, "stead", nil, log)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, opened.close()) }()
	config := o.Config
	config.Store = opened.Store
	s, err := server.New(config)
	if err != nil {
		return nil, err
	}
	id, err := s.Found(ctx, peers.NewUID())
	if err != nil {
		return nil, err
	}
	return &id, id.Save(o.DataDir)
}

func serverList(c *cli) *cobra.Command {
	return &cobra.Command{
		Use:     "ls",
		Short:   "List the servers with the embedded etcd, and whether they can be reached",
		Example: "  stead server ls",
		Args:    exactly(0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			list, err := c.servers.List(cmd.Context(), &proto.ListServersRequest{})
			if err != nil {
				return err
			}
			return printServerList(cmd.OutOrStdout(), list)
		},
	}
}

// printServerList prints one line a server: BEHIND is by how many writes its member of the store is behind the others.
func printServerList(out io.Writer, list *proto.ListServersResponse) error {
	var newest uint64
	for _, s := range list.GetServers() {
		newest = max(newest, s.GetHealth().GetIndex())
	}
	show := newTable(out, "NAME", "ADDRESS", "STORE", "VOTES", "LEADS", "REACHABLE", "BEHIND", "SIZE", "VERSION", "TROUBLE")
	for _, s := range list.GetServers() {
		behind, size := "", ""
		if h := s.GetHealth(); h != nil {
			behind, size = fmt.Sprint(newest-h.GetIndex()), bytesText(h.GetStoreBytes())
		}
		show.row(s.GetName(), strings.Join(s.GetAddresses(), ","), s.GetPeer(), yesNo(s.GetVoter()), yesNo(s.GetLeads()), yesNo(s.GetReachable()),
			behind, size, s.GetHealth().GetVersion(), s.GetTrouble())
	}
	if err := show.flush(); err != nil || list.GetLost() == "" {
		return err
	}
	_, err := fmt.Fprintf(out, "\n%s\n", list.GetLost())
	return err
}

// printPeers prints, for 'status', the servers with the embedded store of which something is to be told.
func (c *cli) printPeers(ctx context.Context, out io.Writer) {
	list, err := c.servers.List(ctx, &proto.ListServersRequest{})
	if err != nil || len(list.GetServers()) == 0 {
		return // an external store, or one that is alone; what is wrong with the store is told elsewhere
	}
	voters, up := 0, 0
	for _, s := range list.GetServers() {
		if s.GetVoter() {
			voters++
			if s.GetReachable() {
				up++
			}
		}
	}
	fact(out, "quorum", "%d of %d servers that vote can be reached", up, voters)
	if list.GetLost() != "" {
		fact(out, "", "LOST: %s", list.GetLost())
	}
	for _, s := range list.GetServers() {
		if s.GetTrouble() != "" {
			fact(out, "", "%s: %s", s.GetName(), s.GetTrouble())
		}
		if h := s.GetHealth(); h.GetAsideBytes() > 0 {
			fact(out, "", "%s: what it had before 'server recover' (%s, %s old) is in etcd/data.before-recover; remove it when the restore is complete",
				s.GetName(), bytesText(h.GetAsideBytes()), age(time.Unix(h.GetAsideUnix(), 0)))
		}
	}
}

func serverRemove(c *cli) *cobra.Command {
	var yes bool
	cmd := &cobra.Command{
		Use:   "remove NAME",
		Short: "Remove a server for good, if the others keep their quorum",
		Long: `Remove a server for good, if the others keep their quorum. Its process ends and does not
start again; members and agents are not touched, and agents go to the others. Erase its data
directory then: it holds the key of the cluster.`,
		Example: "  stead server remove s3",
		Args:    exactly(1, "the name of a server"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := confirm(cmd, "Remove server "+args[0]+" for good?", yes); err != nil {
				return err
			}
			_, err := c.servers.Remove(cmd.Context(), &proto.RemoveServerRequest{Name: args[0]})
			if err == nil {
				fmt.Fprintf(cmd.OutOrStdout(), "server %s removed; erase its data directory, which holds the key of the cluster\n", args[0])
			}
			return err
		},
	}
	cmd.Flags().BoolVar(&yes, "yes", false, "do not ask for confirmation")
	return cmd
}

func serverReplace(c *cli) *cobra.Command {
	var yes bool
	var ttl time.Duration
	cmd := &cobra.Command{
		Use:   "replace NAME",
		Short: "Remove a server whose data is lost, and create the token for its successor",
		Long: `Remove a server whose data is lost, and create the token with which a server of its name
joins, with an empty data directory. A server that lost its data never continues as the same
member of the store: the store would forget votes and writes that it had confirmed.`,
		Example: "  stead server replace s3",
		Args:    exactly(1, "the name of a server"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := confirm(cmd, "Is the data of server "+args[0]+" lost for good?", yes); err != nil {
				return err
			}
			made, err := c.servers.Replace(cmd.Context(), &proto.ReplaceServerRequest{Name: args[0], TtlMillis: ttl.Milliseconds()})
			if err == nil {
				fmt.Fprintln(cmd.OutOrStdout(), made.GetToken())
			}
			return err
		},
	}
	cmd.Flags().BoolVar(&yes, "yes", false, "do not ask for confirmation")
	cmd.Flags().DurationVar(&ttl, "ttl", 15*time.Minute, "how long the token is valid; at most 1h")
	return cmd
}
