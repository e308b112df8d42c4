package dispatch

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"net"
	"net/netip"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/test/bufconn"

	"github.com/stead-project/stead/proto"
	"github.com/stead-project/stead/proto/wire"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/server/seal"
	"github.com/stead-project/stead/server/servertest"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/store"
)

// patience bounds every wait of a test.
const patience = time.Minute

// rig is a server over memory with what a test puts into the store.
type rig struct {
	t *testing.T
	*servertest.Mirrored
	key    *seal.Key
	server *Server
	client proto.NodesClient
	stop   context.CancelFunc
	done   chan struct{}
	logs   *servertest.Logs
}

// newStill is a rig whose server does not run: what it does a test does by hand.
func newStill(t *testing.T) *rig {
	t.Helper()
	key, err := seal.NewKey(bytes.Repeat([]byte{7}, seal.KeyBytes))
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{t: t, key: key, done: make(chan struct{}), logs: &servertest.Logs{}}
	log := slog.New(slog.NewTextHandler(r.logs, nil))
	r.Mirrored = servertest.Mirror(t, log, store.Put(store.ClusterKey, []byte("c1")), store.Put(store.EpochKey, []byte("1")))
	r.server, err = New(Config{
		Store: r.Cache.Writer(r.Store), Cache: r.Cache, Key: key, Name: "s1", Domain: "cluster.local",
		CIDR: "10.88.0.0/16", TTL: 10 * patience, AnswerTime: patience, Logger: log,
	})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// newRig is a rig whose server runs; before changes it before that.
func newRig(t *testing.T, before ...func(*Server)) *rig {
	t.Helper()
	r := newStill(t)
	for _, change := range before {
		change(r.server)
	}
	ctx, cancel := context.WithCancel(t.Context())
	r.stop = cancel
	g := grpc.NewServer()
	proto.RegisterNodesServer(g, r.server)
	lis := bufconn.Listen(1 << 20)
	var wg sync.WaitGroup
	wg.Go(func() { _ = g.Serve(lis) })
	wg.Go(func() { defer close(r.done); _ = r.server.Run(ctx) })
	conn, err := grpc.NewClient("passthrough:///rig", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return lis.DialContext(ctx) }))
	if err != nil {
		t.Fatal(err)
	}
	r.client = proto.NewNodesClient(conn)
	t.Cleanup(func() {
		conn.Close()
		cancel()
		<-r.done
		g.Stop()
		wg.Wait()
	})
	return r
}

// until waits for cond with a deadline.
func (r *rig) until(what string, cond func() bool) {
	r.t.Helper()
	deadline := time.Now().Add(patience)
	for !cond() {
		if time.Now().After(deadline) {
			r.t.Fatalf("never: %s", what)
		}
		time.Sleep(2 * time.Millisecond)
	}
}

func ident(ordinal int) spec.Identity {
	return spec.Identity{Namespace: "default", Set: "db", Ordinal: ordinal}
}

func token(n int64) spec.Token { return spec.Token{Epoch: 1, Number: n} }

var refDB = spec.SetRef{Namespace: "default", Name: "db"}

func testSet(replicas int32) records.Set {
	return records.Set{Ref: refDB, UID: "u1", Generation: 1, Spec: spec.SetSpec{
		Replicas: &replicas, ServiceName: "dbs", Template: testTemplate(),
	}}
}

func testTemplate() spec.Template {
	return spec.Template{
		Metadata: spec.ObjectMeta{Labels: map[string]string{"app": "db"}},
		Spec: spec.MemberSpec{Containers: []spec.Container{{Name: "main", Image: "x", EnvFrom: []spec.EnvFromSource{
			{SecretRef: &spec.NameRef{Name: "pass"}},
		}}}},
	}
}

func testMember(ordinal int, tok int64, node spec.NodeName, uid spec.UID) records.Member {
	return records.Member{
		ID: ident(ordinal), SetUID: "u1", Token: token(tok), Goal: records.GoalRun, Revision: "r1",
		Node: node, NodeUID: uid, Boot: "b1", Address: addr(ordinal),
	}
}

func addr(ordinal int) netip.Addr { return netip.AddrFrom4([4]byte{10, 88, 0, byte(ordinal + 1)}) }

// begin puts a set with a revision and a life of db-0 on n1.
func (r *rig) begin() {
	r.Record(store.SetKey(refDB), testSet(1))
	r.Record(store.RevisionKey(refDB, "r1"), records.Revision{Ref: refDB, SetUID: "u1", Hash: "r1", Number: 1, Template: testTemplate()})
	r.live(0, 10, "n1", "uid1")
}

func (r *rig) live(ordinal int, tok int64, node spec.NodeName, uid spec.UID) {
	r.Commit(
		store.Put(store.IdentityKey(ident(ordinal)), store.Encode(records.IdentityRecord{ID: ident(ordinal), LastToken: token(tok), Address: addr(ordinal)})),
		store.Put(store.MemberKey(ident(ordinal)), store.Encode(testMember(ordinal, tok, node, uid))),
		store.Del(store.ReportKey(ident(ordinal))),
	)
}

// node is a scripted agent.
type node struct {
	r      *rig
	stream proto.Nodes_SessionClient
	cancel context.CancelFunc
	msgs   chan *proto.ToNode
	end    chan error
	hold   []*proto.ToNode // received and not asked for yet
}

type hello struct {
	node, uid, boot, cluster string
	newest                   spec.Sequence
	known                    records.Known
	holds                    []spec.LifeID
	differences, interest    bool
	prepares, moves          bool
	asks                     []spec.SetName       // in namespace default
	volumes                  []records.HostVolume // nil: it does not list them
}

var n1 = hello{node: "n1", uid: "uid1", boot: "b1", cluster: "c1"}

// message is the hello on the wire.
func (h hello) message() *proto.Hello {
	facts, _ := json.Marshal(records.NodeFacts{CPUMillis: 2000, Prepares: h.prepares, Moves: h.moves, ListsVolumes: h.volumes != nil})
	hm := &proto.Hello{Node: h.node, Uid: h.uid, Boot: h.boot, Cluster: h.cluster, FactsJson: facts,
		Newest: wire.Sequence(h.newest), Known: wire.Known(h.known), Inventory: &proto.Inventory{}, Differences: h.differences, Interest: h.interest, Follow: followOf(h.asks...).GetFollow()}
	hm.VolumesJson, _ = wire.Documents(h.volumes)
	for _, l := range h.holds {
		hm.Inventory.Holdings = append(hm.Inventory.Holdings, &proto.Holding{Id: wire.Identity(l.ID), Token: wire.Token(l.Token)})
	}
	return hm
}

func (r *rig) connect(h hello) *node {
	r.t.Helper()
	ctx, cancel := context.WithCancel(r.t.Context())
	stream, err := r.client.Session(ctx)
	if err != nil {
		r.t.Fatal(err)
	}
	n := &node{r: r, stream: stream, cancel: cancel, msgs: make(chan *proto.ToNode, 100), end: make(chan error, 1)}
	r.t.Cleanup(cancel)
	n.send(&proto.FromNode{Kind: &proto.FromNode_Hello{Hello: h.message()}})
	go func() { // ends with the stream, which the test's end cancels
		for {
			m, err := stream.Recv()
			if err != nil {
				n.end <- err
				return
			}
			n.msgs <- m
		}
	}()
	return n
}

func (n *node) send(m *proto.FromNode) {
	n.r.t.Helper()
	if err := n.stream.Send(m); err != nil {
		n.r.t.Fatalf("send: %v", err)
	}
}

func (n *node) report(reports ...records.Report) {
	docs, err := wire.Documents(reports)
	if err != nil {
		n.r.t.Fatal(err)
	}
	n.send(&proto.FromNode{Kind: &proto.FromNode_Reports{Reports: &proto.Reports{ReportsJson: docs}}})
}

func (n *node) ping(id int64) {
	n.send(&proto.FromNode{Kind: &proto.FromNode_Ping{Ping: &proto.Ping{Id: id}}})
}

// next returns the first message that want takes; others are kept.
func (n *node) next(what string, want func(*proto.ToNode) bool) *proto.ToNode {
	n.r.t.Helper()
	for i, m := range n.hold {
		if want(m) {
			n.hold = append(n.hold[:i:i], n.hold[i+1:]...)
			return m
		}
	}
	deadline := time.After(patience)
	for {
		select {
		case m := <-n.msgs:
			if want(m) {
				return m
			}
			n.hold = append(n.hold, m)
		case err := <-n.end:
			n.r.t.Fatalf("waiting for %s: the session ended: %v", what, err)
		case <-deadline:
			n.r.t.Fatalf("never: %s (server says %s)", what, n.r.logs)
		}
	}
}

// ended returns why the session was over.
func (n *node) ended() error {
	n.r.t.Helper()
	deadline := time.After(patience)
	for {
		select {
		case <-n.msgs:
		case err := <-n.end:
			return err
		case <-deadline:
			n.r.t.Fatal("the session never ended")
		}
	}
}

func (n *node) welcome() *proto.Welcome {
	n.r.t.Helper()
	return n.next("welcome", func(m *proto.ToNode) bool { return m.GetWelcome() != nil }).GetWelcome()
}

func (n *node) wanted() *proto.Wanted {
	n.r.t.Helper()
	return n.next("wanted", func(m *proto.ToNode) bool { return m.GetWanted() != nil }).GetWanted()
}

func (n *node) lives(w *proto.Wanted) []records.Life {
	n.r.t.Helper()
	lives, err := wire.ToDocuments[records.Life](w.GetLivesJson())
	if err != nil {
		n.r.t.Fatal(err)
	}
	return lives
}

func (n *node) stored() *proto.StoredReport {
	n.r.t.Helper()
	s := n.next("stored", func(m *proto.ToNode) bool { return m.GetStored() != nil }).GetStored()
	if len(s.GetReports()) != 1 {
		n.r.t.Fatalf("got %v, want one answer", s)
	}
	return s.GetReports()[0]
}

func (n *node) pong() int64 {
	n.r.t.Helper()
	return n.next("pong", func(m *proto.ToNode) bool { return m.GetPong() != nil }).GetPong().GetId()
}
