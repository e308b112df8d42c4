package probe

import (
	"context"
	"net"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"

	"github.com/stead-project/stead/spec"
)

// healthServer serves on loopback until the test ends.
func healthServer(t *testing.T, register func(*grpc.Server)) int32 {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := grpc.NewServer()
	register(s)
	done := make(chan error, 1)
	go func() { done <- s.Serve(l) }()
	t.Cleanup(func() { s.Stop(); <-done })
	return int32(l.Addr().(*net.TCPAddr).Port)
}

// slowHealth does not answer.
type slowHealth struct {
	grpc_health_v1.UnimplementedHealthServer
}

func (slowHealth) Check(ctx context.Context, _ *grpc_health_v1.HealthCheckRequest) (*grpc_health_v1.HealthCheckResponse, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

func TestGRPC(t *testing.T) {
	words := health.NewServer()
	words.SetServingStatus("db", grpc_health_v1.HealthCheckResponse_SERVING)
	words.SetServingStatus("late", grpc_health_v1.HealthCheckResponse_NOT_SERVING)
	served := healthServer(t, func(s *grpc.Server) { grpc_health_v1.RegisterHealthServer(s, words) })
	slow := healthServer(t, func(s *grpc.Server) { grpc_health_v1.RegisterHealthServer(s, slowHealth{}) })
	without := healthServer(t, func(*grpc.Server) {})
	for _, c := range []struct {
		name string
		ask  spec.GRPCAction
		want Result
	}{
		{"the server as a whole", spec.GRPCAction{Port: served}, succeeded},
		{"a service", spec.GRPCAction{Port: served, Service: "db"}, succeeded},
		{"one that does not serve", spec.GRPCAction{Port: served, Service: "late"}, failed("the health service answers NOT_SERVING")},
		{"one that is not known", spec.GRPCAction{Port: served, Service: "x"}, Result{Outcome: Failure, Cause: "the health service fails with NotFound", Detail: "unknown service"}},
		{"a server that does not answer", spec.GRPCAction{Port: slow}, failed("no answer within 1s")},
		{"a server without the service", spec.GRPCAction{Port: without}, failed("the server has no gRPC health service (grpc.health.v1.Health)")},
		{"nobody", spec.GRPCAction{Port: 1}, failed("dial: connect: connection refused")},
	} {
		t.Run(c.name, func(t *testing.T) {
			target := Target{ID: id, Address: netip.MustParseAddr("127.0.0.1")}
			timeout := int32(60)
			if c.ask.Port == slow {
				timeout = 1
			}
			if got := New(Config{}).once(t.Context(), target, spec.Probe{GRPC: &c.ask, TimeoutSeconds: timeout}); got != c.want {
				t.Errorf("got %+v, want %+v", got, c.want)
			}
		})
	}
}

// Initial delays count from when the container was seen to run, also when a hook held up its probes.
func TestAnInitialDelayCountsFromTheStart(t *testing.T) {
	s := &script{code: func(string, int) (int, error) { return 0, nil }}
	synctest.Test(t, func(t *testing.T) {
		told := probe(t, s, Target{Since: time.Now().Add(-20 * time.Second), Container: spec.Container{ReadinessProbe: command("ready", 25, 10)}}, 9*time.Second)
		if len(told) != 2 || told[1] != "SR@5s" {
			t.Errorf("told %v", told)
		}
	})
}
