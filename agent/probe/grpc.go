package probe

import (
	"context"
	"net"
	"strconv"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	"github.com/stead-project/stead/spec"
)

// askHealth asks the gRPC health service at the member's address, without TLS, as Kubernetes does;
// SERVING is success.
func (p *Prober) askHealth(ctx context.Context, t Target, action *spec.GRPCAction, timeout time.Duration) Result {
	address := net.JoinHostPort(t.Address.String(), strconv.Itoa(int(action.Port)))
	var refused lastError
	conn, err := grpc.NewClient("passthrough:///"+address,
		grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithNoProxy(), grpc.WithUserAgent(probeAgent),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
			conn, err := p.c.Dial(ctx, "tcp", address)
			refused.set(err)
			return conn, err
		}))
	if err != nil {
		return failed("%v", err)
	}
	defer conn.Close()
	reply, err := grpc_health_v1.NewHealthClient(conn).Check(ctx, &grpc_health_v1.HealthCheckRequest{Service: action.Service})
	switch s := status.Convert(err); {
	case err == nil && reply.GetStatus() == grpc_health_v1.HealthCheckResponse_SERVING:
		return succeeded
	case err == nil:
		return failed("the health service answers %s", reply.GetStatus())
	case ctx.Err() != nil, s.Code() == codes.DeadlineExceeded: // the server is told of the timeout and may be the first to see it pass
		return failed("no answer within %v", timeout)
	case refused.get() != nil:
		return failed("%s", cause(ctx, refused.get(), timeout))
	case s.Code() == codes.Unimplemented:
		return failed("the server has no gRPC health service (grpc.health.v1.Health)")
	default:
		return Result{Outcome: Failure, Cause: "the health service fails with " + s.Code().String(), Detail: s.Message()}
	}
}

// lastError is how the last attempt ended, from several goroutines.
type lastError struct {
	mu  sync.Mutex
	err error
}

func (l *lastError) set(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.err = err
}

func (l *lastError) get() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.err
}
