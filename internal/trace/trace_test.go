package trace

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"strings"
	"testing"
	"time"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	otlp "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/grpc"
)

// receiver is a collector that passes spans on.
type receiver struct {
	collector.UnimplementedTraceServiceServer
	spans chan *otlp.Span
}

func (r *receiver) Export(_ context.Context, m *collector.ExportTraceServiceRequest) (*collector.ExportTraceServiceResponse, error) {
	for _, of := range m.GetResourceSpans() {
		for _, in := range of.GetScopeSpans() {
			for _, s := range in.GetSpans() {
				r.spans <- s
			}
		}
	}
	return &collector.ExportTraceServiceResponse{}, nil
}

func listen(t *testing.T) (*receiver, string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r, g, done := &receiver{spans: make(chan *otlp.Span, 10)}, grpc.NewServer(), make(chan struct{})
	collector.RegisterTraceServiceServer(g, r)
	go func() { defer close(done); _ = g.Serve(l) }()
	t.Cleanup(func() { g.Stop(); <-done })
	return r, "http://" + l.Addr().String()
}

func open(t *testing.T, endpoint string) *Tracer {
	t.Helper()
	tr, err := Open(t.Context(), Config{Endpoint: endpoint, Service: "stead-server", Instance: "s1", Version: "v1", Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	return tr
}

// Spans of two programs form one tree, also when the parent is told last.
func TestSpansOfTwoProgramsAreOneTree(t *testing.T) {
	r, endpoint := listen(t)
	one, other := open(t, endpoint), open(t, endpoint)
	began := time.Now().Add(-time.Minute).Truncate(0)
	root := one.New("")
	life := one.New(root)
	other.Tell(Span{Name: "image", Parent: life, Began: began, Ended: began.Add(time.Second), Err: errors.New("away"), About: []string{"stead.container", "db", "empty", ""}})
	other.Tell(Span{Name: "of nothing"})
	other.Close()
	one.Tell(Span{Name: "start db-0", Self: life, Parent: Within(life, root), Began: began, Ended: began.Add(2 * time.Second)})
	one.Tell(Span{Name: "apply", Self: root, Began: began, Ended: began.Add(3 * time.Second)})
	one.Close()
	got := map[string]*otlp.Span{}
	for range 3 {
		select {
		case s := <-r.spans:
			got[s.GetName()] = s
		case <-time.After(time.Minute):
			t.Fatalf("got %v", got)
		}
	}
	image, start, apply := got["image"], got["start db-0"], got["apply"]
	if image == nil || start == nil || apply == nil {
		t.Fatalf("got %v", got)
	}
	id := string(apply.GetTraceId())
	if string(start.GetTraceId()) != id || string(image.GetTraceId()) != id || len(apply.GetParentSpanId()) > 0 ||
		string(start.GetParentSpanId()) != string(apply.GetSpanId()) || string(image.GetParentSpanId()) != string(start.GetSpanId()) {
		t.Errorf("no tree: %v", got)
	}
	if took := image.GetEndTimeUnixNano() - image.GetStartTimeUnixNano(); took != uint64(time.Second) || image.GetStartTimeUnixNano() != uint64(began.UnixNano()) {
		t.Errorf("image took %d from %d", took, image.GetStartTimeUnixNano())
	}
	if image.GetStatus().GetMessage() != "away" || len(image.GetAttributes()) != 1 {
		t.Errorf("image is %v", image)
	}
}

func TestWithinIsTheParentOfTheSameTrace(t *testing.T) {
	tr := open(t, "http://127.0.0.1:1")
	defer tr.Close()
	parent := tr.New("")
	if child, other := tr.New(parent), tr.New(""); Within(child, parent) != parent || Within(other, parent) != "" || Within(child, "") != "" || Within("", parent) != "" {
		t.Errorf("of %q: %q is %q, %q is %q", parent, child, Within(child, parent), other, Within(other, parent))
	}
}

// Nothing waits for a collector that is away, or takes connections and never answers.
func TestACollectorThatIsAwayDelaysNothing(t *testing.T) {
	hangs, err := net.Listen("tcp", "127.0.0.1:0") // nobody accepts
	if err != nil {
		t.Fatal(err)
	}
	defer hangs.Close()
	for _, endpoint := range []string{"http://127.0.0.1:1", "http://" + hangs.Addr().String()} {
		tr := open(t, endpoint)
		began := time.Now()
		for range 10_000 { // more than are kept
			tr.Tell(Span{Name: "a", Self: tr.New(""), Began: began, Ended: began})
		}
		told := time.Since(began)
		tr.Close()
		if took := time.Since(began) - told; took > closeTime+20*time.Second {
			t.Errorf("%s: closed after %v", endpoint, took)
		}
	}
}

func TestOffCostsNothing(t *testing.T) {
	tr, err := Open(t.Context(), Config{})
	if tr != nil || err != nil {
		t.Fatalf("got %v, %v", tr, err)
	}
	n := testing.AllocsPerRun(100, func() {
		if tr.New("") != "" {
			t.Error("it names a span")
		}
		tr.Tell(Span{Name: "a"})
	})
	tr.Close()
	if n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestCheckEndpoint(t *testing.T) {
	for endpoint, good := range map[string]bool{
		"http://127.0.0.1:4317": true, "https://[::1]:4317/": true, "http://collector:4317": true,
		"": false, "127.0.0.1:4317": false, "http://collector": false, "grpc://collector:1": false, "http://collector:4317/v1/traces": false,
	} {
		if err := CheckEndpoint(endpoint); (err == nil) != good || err != nil && !strings.Contains(err.Error(), "must be http://HOST:PORT") {
			t.Errorf("%q: %v", endpoint, err)
		}
	}
}
