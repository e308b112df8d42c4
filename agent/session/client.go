package session

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/netip"
	"sync/atomic"
	"time"

	"github.com/stead-project/stead/agent/deadline"
	"github.com/stead-project/stead/agent/files"
	"github.com/stead-project/stead/agent/ledger"
	"github.com/stead-project/stead/agent/reclaim"
	"github.com/stead-project/stead/internal/trouble"
	"github.com/stead-project/stead/proto"
	"github.com/stead-project/stead/proto/wire"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/records/moves"
	"github.com/stead-project/stead/spec"
)

// Workers are the node's lives, as a session needs them. No method blocks.
type Workers interface {
	// Tell hands a life that is assigned to this node to its worker.
	Tell(records.Life)
	// Over hands on that the server knows a life to be over.
	Over(spec.Identity, spec.Token)
	// FilesChanged says that what members read of their sets, for which of is true, has changed.
	FilesChanged(of func(spec.SetRef) bool)
	// SourcesChanged wakes the workers whose lives name a ConfigMap or Secret for which of is true.
	SourcesChanged(of func(files.FileSource) bool)
	// Confirmed says that a server confirmed the node, and perhaps what members read.
	Confirmed()
	// Last are the newest reports of lives that are not over.
	Last() []records.Report
	// Pending are the lives that were ordered here and may begin yet.
	Pending() []spec.LifeID
}

// Home is what a node keeps on its disk of who it is: agent/home.
type Home interface {
	Name() spec.NodeName
	UID() spec.UID
	Cluster() string
	// Belong makes the node a member of the cluster that welcomed it.
	Belong(*proto.Welcome) error
	// Newest is the highest sequence of a wanted list that was accepted.
	Newest() spec.Sequence
	KeepNewest(spec.Sequence) error
}

// Config is what sessions need; all of it, but Deadlines.
type Config struct {
	Home Home
	Boot spec.BootID
	// Facts are what the node says of itself, but for Guards, which Deadlines says.
	Facts records.NodeFacts

	Workers   Workers
	Ledger    *ledger.Ledger
	Deadlines *deadline.Keeper // nil: this node guards no lives
	Reclaimer *reclaim.Reclaimer
	// InPlace lists the volumes that the node has in their places (records.HostVolume), until ctx ends; nil: it does not say.
	InPlace   func(context.Context) ([]records.HostVolume, error)
	Outbox    *Outbox
	Known     *Known
	Snapshots *SnapshotCache
	Interests *Interests
	// Conditions are what the node is short of; nil: it does not say.
	Conditions *Conditions
	// Prepared is what the node says of the preparations that Prepare takes, all of them each time, without blocking. nil,
	// nil: it prepares nothing.
	Prepared *PreparedImages
	Prepare  func([]records.Preparation)
	// MoveReports is what the node says of the moves that TakeMoves takes, all of them each time, of a list of this epoch, without
	// blocking. nil, nil: it moves nothing.
	MoveReports *MoveReports
	TakeMoves   func(orders []moves.MoveOrder, epoch int64)
	// Files are the ConfigMaps and Secrets of the node's lives; FilesChanged is called when
	// they changed, so that they are kept.
	Files        *files.Cache
	FilesChanged func()

	// SnapshotsChanged takes all sets after each change, and when a session begins; Listed before it the sequence of a list
	// of all sets; HostsChanged the addresses of all nodes; TunnelChanged the tunnel between them; ServersTold those of the servers;
	// AuthorityTold the id of the authority that signs certificates, when it takes the place of another. None may block for long, nor change what it is given.
	SnapshotsChanged func([]records.Snapshot)
	Listed           func(spec.Sequence)
	HostsChanged     func([]netip.Addr)
	TunnelChanged    func(*records.HostTunnel)
	ServersTold      func([]string)
	AuthorityTold    func(id string)

	// Clock is the time since boot, Now the wall clock.
	Clock  func() time.Duration
	Now    func() time.Time
	Logger *slog.Logger
}

// Client is a node's side of its sessions, of which it has one at a time. Its methods are for
// the goroutine that runs sessions, but those that say otherwise.
type Client struct {
	cfg      Config
	log      *slog.Logger
	unlisted trouble.Last // of volumes
	contact  contact
	newest   spec.Sequence // of the wanted lists that were accepted
	guards   bool          // the last hello said that this node guards lives
	// confirmed is the moment, on Clock, until which snapshots and histories are.
	confirmed atomic.Int64
}

// NewClient returns a client without a session.
func NewClient(c Config) *Client {
	return &Client{cfg: c, log: c.Logger, newest: c.Home.Newest(), contact: contact{now: c.Now}}
}

// ConfirmedUntil is the moment, on Clock, until which snapshots and histories are confirmed.
// Safe for concurrent use.
func (c *Client) ConfirmedUntil() time.Duration { return time.Duration(c.confirmed.Load()) }

// Contact is the age of the present session, and how long until it counts as lost unless a
// server answers; both are zero when there is none. Safe for concurrent use.
func (c *Client) Contact() (age, margin time.Duration) { return c.contact.look() }

// Hello is the first message of a session.
func (c *Client) Hello(ctx context.Context) (*proto.FromNode, error) {
	facts := c.cfg.Facts
	c.guards = c.cfg.Deadlines.Watched()
	facts.Guards = c.guards
	facts.Conditions = c.cfg.Conditions.all()
	facts.Prepares, facts.Prepared = c.cfg.Prepared != nil, c.cfg.Prepared.all()
	facts.Hooks, facts.Jobs = true, true
	facts.Moves, facts.MoveReports = c.cfg.MoveReports != nil, c.cfg.MoveReports.all()
	facts.MovesBack = facts.Moves
	kept, err := c.inPlace(ctx, &facts)
	if err != nil {
		return nil, err
	}
	doc, err := json.Marshal(facts)
	if err != nil {
		return nil, fmt.Errorf("encode the node's facts: %w", err)
	}
	// What is not open yet may be before the server has read this, and it may be a store
	// that never heard of it. Open ones are read last, for a pending one becomes open.
	inventory := &proto.Inventory{}
	for _, l := range c.cfg.Workers.Pending() {
		inventory.Holdings = append(inventory.Holdings, &proto.Holding{Id: wire.Identity(l.ID), Token: wire.Token(l.Token)})
	}
	for _, e := range c.cfg.Ledger.Entries() {
		if !e.Open.IsZero() {
			inventory.Holdings = append(inventory.Holdings, &proto.Holding{Id: wire.Identity(e.ID), Token: wire.Token(e.Open)})
		}
	}
	return &proto.FromNode{Kind: &proto.FromNode_Hello{Hello: &proto.Hello{
		Node: string(c.cfg.Home.Name()), Uid: string(c.cfg.Home.UID()), Boot: string(c.cfg.Boot), Cluster: c.cfg.Home.Cluster(),
		FactsJson: doc, Inventory: inventory, Newest: wire.Sequence(c.newest),
		Known: wire.Known(c.cfg.Known.Now()), Differences: true,
		Interest: true, Follow: c.cfg.Interests.all(), VolumesJson: kept,
	}}}, nil
}

// lookTime is how long a hello waits for a disk.
const lookTime = 2 * time.Second

// inPlace are the node's volumes for a hello. A list that is not whole does not count as one.
func (c *Client) inPlace(ctx context.Context, facts *records.NodeFacts) ([][]byte, error) {
	if c.cfg.InPlace == nil {
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(ctx, lookTime)
	defer cancel()
	list, err := c.cfg.InPlace(ctx)
	if c.unlisted.IsErr(err) {
		c.log.Warn("volumes not listed", "err", err)
	}
	facts.ListsVolumes = err == nil
	return wire.Documents(list)
}
