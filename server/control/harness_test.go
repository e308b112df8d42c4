package control

import (
	"bytes"
	"context"
	"log/slog"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"

	"github.com/stead-project/stead/proto"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/server/cache"
	"github.com/stead-project/stead/server/dispatch"
	"github.com/stead-project/stead/server/plan"
	"github.com/stead-project/stead/server/seal"
	"github.com/stead-project/stead/server/servertest"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/store"
)

// patience bounds every wait of a test.
const patience = 3 * time.Minute

// rig is the people's and the nodes' API over memory.
type rig struct {
	shared *shared // of the server's parts
	t      *testing.T
	*servertest.Mirrored
	key  *seal.Key
	plan plan.Plan // what the planner explains
	// nodeless: no node has joined.
	nodeless bool
	api      proto.ControlClient
	nodes    proto.NodesClient
	logs     *servertest.Logs
	ctx      context.Context
}

// Nodes implements Planner: nobody was measured.
func (r *rig) Nodes(v cache.View) []plan.Node { return v.Nodes() }

// World implements Planner: addresses are for all, and where no node has joined there is one,
// n1, which lives.
func (r *rig) World(v cache.View, ref spec.SetRef, now *records.Set) plan.World {
	w := v.World(ref)
	if now != nil {
		w = v.WorldWith(now)
	}
	if len(w.Nodes) == 0 && !r.nodeless {
		w.Nodes = []plan.Node{{Node: &records.Node{Name: "n1", UID: "uid1"}, Session: &records.Session{Node: "n1", UID: "uid1", Boot: "b1", ID: 1}}}
	}
	for i := range 200 {
		w.Free = append(w.Free, netip.AddrFrom4([4]byte{10, 88, 1, byte(i)}))
	}
	return w
}

// happens stores what becomes of the set db if all goes well.
func (r *rig) happens() {
	r.t.Helper()
	var w plan.World
	ref := spec.SetRef{Namespace: "default", Name: "db"}
	r.Cache.Look(func(v cache.View) { w = r.World(v, ref, nil) })
	after := plan.Preview(w).After
	var txn store.Txn
	put := func(key string, record any) { txn.Then = append(txn.Then, store.Put(key, store.Encode(record))) }
	for _, revision := range after.Revisions {
		put(store.RevisionKey(ref, revision.Hash), revision)
	}
	put(store.StatusKey(ref), after.Status)
	for _, slot := range after.Slots {
		if slot.Member == nil {
			txn.Then = append(txn.Then, store.Del(store.MemberKey(slot.ID)), store.Del(store.ReportKey(slot.ID)))
		} else {
			put(store.MemberKey(slot.ID), slot.Member)
			put(store.ReportKey(slot.ID), slot.Report)
		}
		put(store.IdentityKey(slot.ID), slot.Identity)
		for claim, volume := range slot.Volumes {
			put(store.VolumeKey(slot.ID, claim), volume)
		}
	}
	for part := range slices.Chunk(txn.Then, store.MaxOps) {
		rev, err := r.Store.Commit(r.ctx, store.Txn{Then: part})
		if err == nil {
			err = r.Cache.Wait(r.ctx, rev)
		}
		if err != nil {
			r.t.Fatal(err)
		}
	}
}

// Explain implements Planner for any set.
func (r *rig) Explain(spec.SetRef) (plan.Plan, bool) { return r.plan, true }

// newRig waits for a node's answer as long as for anything.
func newRig(t *testing.T) *rig { return newRigThatWaits(t, patience) }

// newRigThatWaits has a limit for what a node has to answer.
func newRigThatWaits(t *testing.T, answer time.Duration) *rig {
	t.Helper()
	key, err := seal.NewKey(bytes.Repeat([]byte{7}, seal.KeyBytes))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 4*patience)
	r := &rig{t: t, key: key, logs: &servertest.Logs{}, ctx: ctx}
	log := slog.New(slog.NewTextHandler(r.logs, nil))
	r.Mirrored = servertest.Mirror(t, log, store.Put(store.ClusterKey, []byte("c1")), store.Put(store.EpochKey, []byte("1")))
	d, err := dispatch.New(dispatch.Config{Store: r.Store, Cache: r.Cache, Key: key, Name: "s1", Domain: "cluster.local",
		TTL: 10 * patience, AnswerTime: answer, Logger: log})
	if err != nil {
		t.Fatal(err)
	}
	c, err := New(Config{Store: r.Store, Cache: r.Cache, Planner: r, Nodes: d.Broker(), Key: key,
		Classes: map[string]string{"gp3": "ssd"}, ServiceCIDR: netip.MustParsePrefix("10.89.0.0/27"),
		LoadBalancers: []netip.Prefix{netip.MustParsePrefix("203.0.113.0/32"), netip.MustParsePrefix("203.0.113.2/32")},
		ExternalIPs:   []netip.Prefix{netip.MustParsePrefix("198.51.100.0/30")},
		About:         &proto.InfoResponse{Version: "v1", Server: "s1"}, Logger: log})
	if err != nil {
		t.Fatal(err)
	}
	g := grpc.NewServer()
	proto.RegisterNodesServer(g, d)
	proto.RegisterControlServer(g, c)
	lis := bufconn.Listen(1 << 20)
	var wg sync.WaitGroup
	stop, cancelDispatch := context.WithCancel(t.Context())
	wg.Go(func() { _ = g.Serve(lis) })
	wg.Go(func() { _ = d.Run(stop) })
	conn, err := grpc.NewClient("passthrough:///rig", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return lis.DialContext(ctx) }))
	if err != nil {
		t.Fatal(err)
	}
	r.shared = c.objects.shared
	r.api, r.nodes = proto.NewControlClient(conn), proto.NewNodesClient(conn)
	t.Cleanup(func() {
		conn.Close()
		cancelDispatch()
		g.Stop()
		cancel()
		wg.Wait()
	})
	return r
}

func (r *rig) apply(manifests ...string) (*proto.ApplyResponse, error) {
	req := &proto.ApplyRequest{}
	for _, m := range manifests {
		req.Files = append(req.Files, &proto.File{Name: "a.yaml", Content: []byte(m)})
	}
	return r.api.Apply(r.ctx, req)
}

// mustApply applies and returns "kind name outcome" of each object.
func (r *rig) mustApply(manifests ...string) []string {
	r.t.Helper()
	out, err := r.apply(manifests...)
	if err != nil {
		r.t.Fatal(err)
	}
	var lines []string
	for _, a := range out.GetApplied() {
		lines = append(lines, a.GetKind()+" "+a.GetName()+" "+a.GetOutcome())
	}
	return lines
}

func (r *rig) set(name string) (records.Set, bool) {
	r.t.Helper()
	key := store.SetKey(spec.SetRef{Namespace: "default", Name: spec.SetName(name)})
	_, kvs, err := r.Store.Get(r.ctx, key)
	if err != nil {
		r.t.Fatal(err)
	}
	kv, ok := kvs[key]
	if !ok {
		return records.Set{}, false
	}
	s, err := store.Decode[records.Set](kv)
	if err != nil {
		r.t.Fatal(err)
	}
	return s, true
}

// rev is the store's revision: it moves with every write.
func (r *rig) rev() store.Rev {
	r.t.Helper()
	rev, _, err := r.Store.Get(r.ctx, "x")
	if err != nil {
		r.t.Fatal(err)
	}
	return rev
}

// refused checks code and words of an error.
func refused(t *testing.T, err error, code codes.Code, words ...string) {
	t.Helper()
	if status.Code(err) != code {
		t.Fatalf("got %v, want %v", err, code)
	}
	for _, w := range words {
		if !strings.Contains(err.Error(), w) {
			t.Fatalf("got %v, want %q in it", err, w)
		}
	}
}

const setYAML = `
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db}
spec:
  replicas: 3
  selector: {matchLabels: {app: db}}
  template:
    metadata: {labels: {app: db}}
    spec:
      containers:
      - name: main
        image: example.local/db:1
        ports: [{name: client, containerPort: 2379}]
  volumeClaimTemplates:
  - metadata: {name: data}
    spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
`

const filesYAML = `
apiVersion: v1
kind: ConfigMap
metadata: {name: conf, labels: {app: db}}
data: {a.conf: "x=1"}
---
apiVersion: v1
kind: Secret
metadata: {name: pass}
stringData: {password: hunter2-in-clear}
data: {token: c3dvcmRmaXNoLWluLWNsZWFy}
---
apiVersion: v1
kind: Service
metadata: {name: db}
spec: {clusterIP: None, selector: {app: db}, ports: [{name: client, port: 2379}]}
`
