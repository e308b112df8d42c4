package control

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"math/big"
	"strconv"
	"strings"
	"time"

	"github.com/stead-project/stead/proto"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/server/cache"
	"github.com/stead-project/stead/server/proof"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/store"
)

// Restore implements proto.ControlServer.
func (s cluster) Restore(ctx context.Context, r *proto.RestoreRequest) (*proto.EditResponse, error) {
	by := cmp.Or(user(ctx), "somebody")
	return s.carryOut(ctx, by, r.GetDryRun(), "what the restore is decided by", func(v cache.View) (decision, error) {
		if len(r.GetOff()) > 0 {
			return excuseDecision(v, r.GetOff(), by)
		}
		if err := mayDeclare(v.Hold(), s.origin(), r.GetEnded()); err != nil {
			return decision{}, err
		}
		return declareDecision(v, by, time.Now().UTC(), randomEpochs())
	})
}

// carryOut writes what is decided about the store as it is now, and decides again when that changed meanwhile; reads names what it is
// decided by. A decision without operations is done already.
func (s cluster) carryOut(ctx context.Context, by string, dryRun bool, reads string, decide func(cache.View) (decision, error)) (*proto.EditResponse, error) {
	for attempt := 1; ; attempt++ {
		if err := s.current(ctx); err != nil {
			return nil, err
		}
		var d decision
		var err error
		s.cfg.Cache.Look(func(v cache.View) { d, err = decide(v) })
		if err != nil {
			return nil, err
		}
		if dryRun || len(d.Then) == 0 {
			return &proto.EditResponse{Effects: d.effects}, nil
		}
		rev, err := s.cfg.Store.Commit(ctx, d.Txn)
		if errors.Is(err, store.ErrConflict) && attempt < restoreAttempts {
			continue
		}
		if err != nil {
			return nil, writeError(reads, err)
		}
		s.cfg.Logger.Warn(d.said, "user", by)
		s.seen(ctx, rev)
		s.endSessions(ctx, d.sessions)
		return &proto.EditResponse{Effects: d.effects}, nil
	}
}

// restoreAttempts is how often a restore is decided again because a node said hello meanwhile:
// after a restore all do, at about the same time.
const restoreAttempts = 10

// current waits until the world shows the store as it is now.
func (s cluster) current(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, waitTime)
	defer cancel()
	_, kvs, err := s.cfg.Store.Get(ctx, store.EpochKey, store.HoldKey, store.CountKey, store.HellosKey)
	if err != nil {
		return err
	}
	var newest store.Rev
	for _, kv := range kvs {
		newest = max(newest, kv.Mod)
	}
	return s.cfg.Cache.Wait(ctx, newest)
}

// decision is what a person said of a restore, and what it means.
type decision struct {
	store.Txn
	effects []string
	said    string
	// sessions are those of the epoch before that Txn has no room for. No node is served
	// under them any more; only its next session would have to wait for their end.
	sessions []store.Txn
}

// mostEpochs bounds the random part of a step between two epochs.
const mostEpochs = 1_000_000

// randomEpochs is at least 1. It makes it unlikely that two restores of one backup, of which
// neither knows of the other, get the same epoch.
func randomEpochs() int64 {
	n, err := rand.Int(rand.Reader, big.NewInt(mostEpochs))
	if err != nil { // never: see crypto/rand
		panic(err)
	}
	return 1 + n.Int64()
}

// declareDecision takes it as said that the store of v was restored.
func declareDecision(v cache.View, by string, at time.Time, step int64) (d decision, err error) {
	held, epoch := v.Hold(), v.Epoch()
	old := v.Count()
	if held == nil && old.Open(epoch) {
		return d, precondition(
			"%s has declared a restore already, and it is in progress; 'stead restore --status' shows which nodes it waits for", old.By)
	}
	if epoch < 1 {
		return d, precondition("the store has no epoch that can be read: it is damaged; restore a backup")
	}
	next := records.Count{Epoch: highestEpoch(v) + step, By: by, At: at, Nodes: expected(v)}
	d.said = "restore declared"
	d.If = []store.Compare{v.Seen(store.EpochKey), v.Seen(store.CountKey), v.Seen(store.HellosKey)}
	if held == nil {
		d.If = append(d.If, store.NotHeld())
	}
	d.Then = []store.Op{
		store.Put(store.EpochKey, []byte(strconv.FormatInt(next.Epoch, 10))), store.Put(store.CountKey, store.Encode(next)),
		store.Del(store.LeaderKey), store.Del(store.HoldKey),
	}
	for _, m := range v.Memories() {
		d.If = append(d.If, store.Seen(store.KnownKey(m.Server), m.Rev))
		d.Then = append(d.Then, store.Del(store.KnownKey(m.Server)))
	}
	for _, n := range v.Nodes() {
		switch key := store.SessionKey(n.Node.Name); {
		case v.ModRev(key) == 0:
		case len(d.Then) < store.MaxOps:
			d.Then = append(d.Then, store.Del(key))
		default:
			d.sessions = append(d.sessions, store.Txn{If: []store.Compare{v.Seen(key)}, Then: []store.Op{store.Del(key)}})
		}
	}
	d.effects = declared(held, next.Nodes)
	return d, nil
}

// declared says what it means to declare a restore.
func declared(held *records.Hold, nodes []records.CountNode) []string {
	var out []string
	if held == nil {
		out = append(out, "no server noticed that the store went back; a restore is needed only if the store was restored from a backup")
	}
	out = append(out, "members run on; the store is taken as it is, and what was changed after the backup was made is to be applied again")
	if len(nodes) == 0 {
		return append(out, "no node is known; the restore waits for nodes that join before it is complete")
	}
	return append(out, fmt.Sprintf("nothing is started, stopped, moved or given up until each of these nodes has said what it runs: %s", countNames(nodes)),
		"the restore does not wait for a node that neither the store nor a server knows, unless its agent connects before: are all agents and all servers started?")
}

// countNames names nodes, and how they are known if not by the store.
func countNames(nodes []records.CountNode) string {
	words := make([]string, len(nodes))
	for i, n := range nodes {
		words[i] = string(n.Name)
		if n.From == records.FromServer {
			words[i] += " (remembered by a server)"
		}
	}
	return strings.Join(words, ", ")
}

// expected are the nodes of which the store or a server knows.
func expected(v cache.View) []records.CountNode {
	known := map[spec.NodeName]spec.UID{}
	for _, n := range v.Nodes() {
		known[n.Node.Name] = n.Node.UID
	}
	c := records.Count{}.With(records.FromStore, known)
	for _, m := range v.Memories() {
		c = c.With(records.FromServer, m.Nodes)
	}
	return c.Nodes
}

// highestEpoch is the highest that the store, a server or a node has ever named.
func highestEpoch(v cache.View) int64 {
	epoch := v.Epoch()
	if c := v.Count(); c != nil {
		epoch = max(epoch, c.Epoch)
	}
	for _, m := range v.Memories() {
		epoch = max(epoch, m.Epoch)
	}
	for _, n := range v.Nodes() {
		if n.Facts == nil {
			continue
		}
		epoch = max(epoch, n.Facts.Epoch)
		if k := n.Facts.Known; k != nil {
			epoch = max(epoch, k.At.Epoch)
		}
		for _, stray := range n.Facts.Strays {
			epoch = max(epoch, stray.Token.Epoch)
		}
	}
	return epoch
}

// excuseDecision takes it as said that nodes are off: the count does not wait for them.
func excuseDecision(v cache.View, off []string, by string) (d decision, err error) {
	count := v.Count()
	if v.Hold() != nil || !count.Open(v.Epoch()) {
		return d, precondition("no restore is waiting for nodes; see 'stead restore --status'")
	}
	missing := proof.MissingNodes(v.Epoch(), count, v.Nodes())
	next := count.With(records.FromStore, nil)
	d.said = "nodes excused from the restore"
	d.If = []store.Compare{v.Seen(store.EpochKey), store.NotHeld(), v.Seen(store.CountKey)}
	for _, name := range off {
		node := spec.NodeName(name)
		found := false
		for _, m := range missing {
			if m.Name != node {
				continue
			}
			seen := v.Seen(store.SessionKey(node))
			if session := v.Session(node); seen.Rev != 0 && (session == nil || session.UID == m.UID) {
				return d, precondition("node %s has a session; a node that is on cannot be excused", node)
			}
			d.If = append(d.If, seen, v.Seen(store.FactsKey(node)))
			next, found = excused(next, m, by), true
		}
		if !found {
			return d, absent("the restore does not wait for a node %s; %s", node, awaited(missing))
		}
		d.effects = append(d.effects, fmt.Sprintf("lives on node %s that this store does not know may be started a second time on another node", node))
		if len(v.MembersOn(node)) > 0 {
			d.effects = append(d.effects, fmt.Sprintf("its members that the store knows still wait; to let them start on another node: stead node fence %s --i-have-powered-off", node))
		}
	}
	d.Then = []store.Op{store.Put(store.CountKey, store.Encode(next))}
	return d, nil
}

func awaited(missing []records.CountNode) string {
	if len(missing) == 0 {
		return "every node was heard or excused"
	}
	return "these are: " + countNames(missing)
}

// excused is c in which a person says that m is off.
func excused(c records.Count, m records.CountNode, by string) records.Count {
	c = c.With(m.From, map[spec.NodeName]spec.UID{m.Name: m.UID})
	for i := range c.Nodes {
		if c.Nodes[i].UID == m.UID {
			c.Nodes[i].Off = by
		}
	}
	return c
}

// endSessions ends what is left of sessions of the epoch before. One that is there still
// ends by itself.
func (s cluster) endSessions(ctx context.Context, sessions []store.Txn) {
	for _, o := range store.CommitAll(ctx, s.cfg.Store, nil, sessions) {
		if o.Err != nil {
			s.cfg.Logger.Info("session of the epoch before left to run out", "err", o.Err)
			return
		}
	}
}

// Declare is what "stead restore" writes, in order, decided by v: for a simulation, which owns
// time and chance. step is how far the epoch is raised above the highest known one.
func Declare(v cache.View, by string, at time.Time, step int64) ([]store.Txn, error) {
	d, err := declareDecision(v, by, at, step)
	return append([]store.Txn{d.Txn}, d.sessions...), err
}

// Excuse is what "stead restore --off" writes, decided by v: for a simulation.
func Excuse(v cache.View, off []string, by string) (store.Txn, error) {
	d, err := excuseDecision(v, off, by)
	return d.Txn, err
}
