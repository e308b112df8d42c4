package server

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/stead-project/stead/proto"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/server/access"
	"github.com/stead-project/stead/server/servertest"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/spec/quota"
	"github.com/stead-project/stead/spec/scalar"
	"github.com/stead-project/stead/store"
	"github.com/stead-project/stead/store/memstore"
)

// patience bounds every wait of a test.
const patience = 3 * time.Minute

// running is a server under test.
type running struct {
	t    *testing.T
	srv  *Server
	conn *grpc.ClientConn
	api  proto.ControlClient
	stop func() error // stops it and returns what Run returned
	end  <-chan error // what Run returned
	logs *servertest.Logs
}

// shortDir is a directory whose name leaves room for a socket's path.
func shortDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "stead")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

func config(dir string, s store.Store, logs io.Writer) Config {
	return Config{
		Store: s, StoreName: "memory", Name: "s1", Version: "v1", Socket: filepath.Join(dir, "s.sock"),
		KeyFile: filepath.Join(dir, "data", "secret.key"), SeenFile: filepath.Join(dir, "data", "seen.json"), LeaderTTL: 2 * time.Second,
		Logger: slog.New(slog.NewTextHandler(logs, nil)),
	}
}

func start(t *testing.T, cfg Config) *running {
	t.Helper()
	logs := &servertest.Logs{}
	cfg.Logger = slog.New(slog.NewTextHandler(logs, nil))
	s, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	end := make(chan error, 2) // of one who waits for it, and of stop
	go func() {
		err := s.Run(ctx)
		end <- err
		end <- err
	}()
	conn, err := s.Dial()
	if err != nil {
		t.Fatal(err)
	}
	stop := sync.OnceValue(func() error {
		cancel()
		select {
		case err := <-end:
			return err
		case <-time.After(patience):
			return errors.New("the server did not stop")
		}
	})
	t.Cleanup(func() { conn.Close(); _ = stop() })
	select {
	case <-s.Serving():
	case err := <-end:
		t.Fatalf("run: %v", err)
	case <-time.After(patience):
		t.Fatalf("never serving: %s", logs)
	}
	return &running{t, s, conn, proto.NewControlClient(conn), stop, end, logs}
}

const manifests = `
apiVersion: v1
kind: Secret
metadata: {name: pass}
stringData: {password: hunter2}
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db}
spec:
  replicas: 1
  selector: {matchLabels: {app: db}}
  template:
    metadata: {labels: {app: db}}
    spec: {containers: [{name: main, image: "example.local/db:1"}]}
`

func (r *running) apply(text string) (*proto.ApplyResponse, error) {
	ctx, cancel := context.WithTimeout(r.t.Context(), patience)
	defer cancel()
	return r.api.Apply(ctx, &proto.ApplyRequest{Files: []*proto.File{{Name: "a.yaml", Content: []byte(text)}}})
}

func TestAServerAppliesPlansAndTellsANodeWhatToRun(t *testing.T) {
	dir := shortDir(t)
	r := start(t, config(dir, memstore.New(), nil))
	if info, err := os.Stat(filepath.Join(dir, "s.sock")); err != nil || info.Mode().Perm() != 0o600 {
		t.Fatalf("socket: got %v, %v", info, err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	session, err := proto.NewNodesClient(r.conn).Session(ctx)
	if err != nil {
		t.Fatal(err)
	}
	err = session.Send(&proto.FromNode{Kind: &proto.FromNode_Hello{Hello: &proto.Hello{Node: "n1", Uid: "u1", Boot: "b1", FactsJson: []byte(`{"cpuMillis":4000,"memoryBytes":1000000000}`)}}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.apply(manifests); err != nil {
		t.Fatal(err)
	}
	for {
		m, err := session.Recv()
		if err != nil {
			t.Fatalf("no life was told: %v (%s)", err, r.logs)
		}
		if lives := m.GetWanted().GetLivesJson(); len(lives) == 1 {
			if !strings.Contains(string(lives[0]), `"set":"db"`) {
				t.Fatalf("got %s", lives[0])
			}
			break
		}
	}
	if err := r.stop(); err != nil {
		t.Fatal(err)
	}
	for err == nil {
		_, err = session.Recv()
	}
	if status.Code(err) != codes.Unavailable {
		t.Fatalf("got %v, want UNAVAILABLE", err)
	}
}

func TestAStopIsQuickAndWatchersAreToldToComeBack(t *testing.T) {
	s := memstore.New()
	dir := shortDir(t)
	r := start(t, config(dir, s, nil))
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	w, err := r.api.Watch(ctx, &proto.ListRequest{Kind: "set"})
	if err != nil {
		t.Fatal(err)
	}
	if ev, err := w.Recv(); err != nil || !ev.GetSynced() {
		t.Fatalf("got %v, %v", ev, err)
	}
	began := time.Now()
	if err := r.stop(); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(began); took > access.StopTime {
		t.Fatalf("the stop took %s", took)
	}
	if _, err := w.Recv(); status.Code(err) != codes.Unavailable {
		t.Fatalf("got %v, want UNAVAILABLE", err)
	}
	if _, err := os.Stat(filepath.Join(dir, "s.sock")); !errors.Is(err, os.ErrNotExist) {
		t.Fatalf("the socket was left: %v", err)
	}
	again := start(t, config(dir, s, nil))
	if info, err := again.api.Info(ctx, &proto.InfoRequest{}); err != nil || info.GetVersion() != "v1" || info.GetCidr() != DefaultCIDR {
		t.Fatalf("got %v, %v", info, err)
	}
}

func TestOneSocketOneServer(t *testing.T) {
	dir := shortDir(t)
	// A server that was killed leaves its socket and its lock file behind.
	dead, err := net.ListenUnix("unix", &net.UnixAddr{Name: filepath.Join(dir, "s.sock"), Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	dead.SetUnlinkOnClose(false)
	dead.Close()
	if err := os.WriteFile(filepath.Join(dir, "s.sock.lock"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	r := start(t, config(dir, memstore.New(), nil))
	second, err := New(config(dir, memstore.New(), io.Discard))
	if err != nil {
		t.Fatal(err)
	}
	if err := second.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "another server answers") {
		t.Fatalf("got %v", err)
	}
	if _, err := r.apply(manifests); err != nil {
		t.Fatalf("the first server was hurt: %v", err)
	}
}

func TestAKeyThatIsNotTheClustersIsRefused(t *testing.T) {
	dir := shortDir(t)
	s := memstore.New()
	r := start(t, config(dir, s, nil))
	if _, err := r.apply(manifests); err != nil {
		t.Fatal(err)
	}
	if err := r.stop(); err != nil {
		t.Fatal(err)
	}
	key := filepath.Join(dir, "data", "secret.key")
	run := func() error {
		again, err := New(config(dir, s, io.Discard))
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		return again.Run(ctx)
	}
	if err := os.WriteFile(key, bytes.Repeat([]byte{9}, 32), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := run(); err == nil || !strings.Contains(err.Error(), "opens none of the 1 Secrets") {
		t.Fatalf("got %v", err)
	}
	if err := os.Remove(key); err != nil {
		t.Fatal(err)
	}
	if err := run(); !errors.Is(err, os.ErrNotExist) {
		t.Fatalf("got %v, want no new key made beside sealed Secrets", err)
	}
}

func TestMetricsAndHealth(t *testing.T) {
	dir := shortDir(t)
	cfg := config(dir, memstore.New(), nil)
	cfg.Metrics = "unix://" + filepath.Join(dir, "m.sock")
	r := start(t, cfg)
	if _, err := r.apply(manifests); err != nil {
		t.Fatal(err)
	}
	h := &http.Client{Timeout: patience, Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", filepath.Join(dir, "m.sock"))
	}}}
	defer h.CloseIdleConnections()
	get := func(path string) string {
		t.Helper()
		var body []byte
		deadline := time.Now().Add(patience)
		for {
			res, err := h.Get("http://stead" + path)
			if err == nil {
				body, err = io.ReadAll(res.Body)
				res.Body.Close()
			}
			if err == nil && res.StatusCode == http.StatusOK {
				return string(body)
			}
			if time.Now().After(deadline) {
				t.Fatalf("get %s: %v %s", path, err, body)
			}
			time.Sleep(5 * time.Millisecond)
		}
	}
	if got := get("/healthz"); got != "ok\n" {
		t.Fatalf("got %q", got)
	}
	tells := func(lines ...string) {
		t.Helper()
		for deadline := time.Now().Add(time.Minute); ; time.Sleep(5 * time.Millisecond) {
			got, missing := get("/metrics"), ""
			for _, l := range lines {
				if !strings.Contains(got, "\n"+l) {
					missing = l
				}
			}
			if missing == "" {
				return
			}
			if time.Now().After(deadline) {
				t.Fatalf("never %s in\n%s", missing, got)
			}
		}
	}
	tells("stead_sets 1\n", "stead_leader 1\n", "stead_store_bytes ", "stead_store_answer_seconds ", "stead_store_alarm 0\n",
		"stead_plan_seconds_count ", "stead_plan_seconds_bucket{le=\"0.001\"} ", "stead_commit_seconds_sum ",
		`stead_members_blocked{reason="NoNode"} `, `stead_nodes{state="live"} 0`)

	id := spec.Identity{Namespace: "default", Set: "db", Ordinal: 0}
	put := func(ops ...store.Op) {
		t.Helper()
		if _, err := cfg.Store.Commit(t.Context(), store.Txn{Then: ops}); err != nil {
			t.Fatal(err)
		}
	}
	team := records.QuotaRecord{Meta: records.Meta{Namespace: "default", Name: "team"}, Spec: quota.ResourceQuotaSpec{Hard: map[string]scalar.Quantity{"pods": {Milli: 5000}, "cpu": {Milli: 2500}}}}
	put(store.Put(store.QuotaKey("default", "team"), store.Encode(team)))
	tells(`stead_quota_used{namespace="default",quota="team",resource="pods"} 1`+"\n", `stead_quota_hard{namespace="default",quota="team",resource="pods"} 5`+"\n",
		`stead_quota_hard{namespace="default",quota="team",resource="requests.cpu"} 2.5`+"\n")
	put(store.Put(store.NodeKey("n1"), store.Encode(records.Node{Name: "n1", UID: "x"})),
		store.Put(store.FactsKey("n1"), store.Encode(records.NodeFacts{Name: "n1", UID: "x", Boot: "b"})),
		store.Put(store.SessionKey("n1"), store.Encode(records.Session{Node: "n1", UID: "x", Boot: "b", ID: 1})))
	tells(`stead_members{phase="Assigned"} 1`, `stead_members_blocked{reason="Starting"} 1`, "stead_members_wanted 1\n", "stead_members_ready 0\n", `stead_nodes{state="live"} 1`)
	_, kvs, err := cfg.Store.Get(t.Context(), store.MemberKey(id))
	if err != nil {
		t.Fatal(err)
	}
	m, err := store.Decode[records.Member](kvs[store.MemberKey(id)])
	if err != nil {
		t.Fatal(err)
	}
	put(store.Put(store.ReportKey(id), store.Encode(records.Report{ID: id, Token: m.Token, Session: 1, Phase: records.PhaseRunning, Ready: true,
		Containers: []records.ContainerReport{{Restarts: 2}, {Restarts: 1}}})))
	tells(`stead_members{phase="Running"} 1`, "stead_members_ready 1\n", "stead_member_restarts 3\n")
	put(store.Del(store.SessionKey("n1")), store.Put(store.NodeKey("n2"), store.Encode(records.Node{Name: "n2", UID: "y"})),
		store.Put(store.FactsKey("n2"), store.Encode(records.NodeFacts{Name: "n2", UID: "y", Boot: "b"})),
		store.Put(store.SessionKey("n2"), store.Encode(records.Session{Node: "n2", UID: "y", Boot: "b", ID: 2})))
	tells("stead_members_ready 0\n", `stead_nodes{state="silent"} 1`)
	for _, bad := range []string{"0.0.0.0:9000", ":9000", "192.0.2.1:9000", "localhost", "unix://x"} {
		if err := CheckMetrics(bad); err == nil {
			t.Fatalf("%q was taken", bad)
		}
	}
}
