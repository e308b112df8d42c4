package access

import (
	"context"
	"errors"
	"log/slog"
	"math"
	"runtime/debug"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/status"

	"github.com/stead-project/stead/proto"
	"github.com/stead-project/stead/store"
)

const (
	// never keeps gRPC from asking whether a client is still there: see proto.Listen.
	never = time.Duration(math.MaxInt64)
	// callTime bounds a call that is no stream.
	callTime = 30 * time.Second
	// StopTime bounds how long calls may still take when the server stops.
	StopTime = 5 * time.Second
	// connectTime bounds the handshakes of a connection.
	connectTime = 10 * time.Second
	// headerBytes bounds the headers of a call, whose own are below 1 KiB.
	headerBytes = 16 << 10
	// connStreams bounds the calls that one connection has at once.
	connStreams = 256
)

// newGRPC makes a gRPC server: no panic of a call ends the process, every call
// has a time limit, and streams end with UNAVAILABLE when ctx does. lost is as in Config.
func newGRPC(ctx context.Context, log *slog.Logger, lost func(context.Context) string, more ...grpc.ServerOption) *grpc.Server {
	return grpc.NewServer(append([]grpc.ServerOption{
		grpc.MaxRecvMsgSize(proto.MaxMessageBytes), grpc.MaxSendMsgSize(proto.MaxMessageBytes),
		grpc.MaxHeaderListSize(headerBytes), grpc.MaxConcurrentStreams(connStreams), grpc.ConnectionTimeout(connectTime), proto.ExactBuffers(),
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: never}),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: 2 * time.Second, PermitWithoutStream: true}),
		grpc.ChainUnaryInterceptor(fits, unary(log, lost)),
		grpc.ChainStreamInterceptor(streamFits, streams(ctx, log, lost)),
	}, more...)...)
}

func unary(log *slog.Logger, lost func(context.Context) string) grpc.UnaryServerInterceptor {
	return func(ctx context.Context, req any, info *grpc.UnaryServerInfo, call grpc.UnaryHandler) (out any, err error) {
		ctx, cancel := context.WithTimeout(ctx, callTime)
		defer cancel()
		defer rescue(log, info.FullMethod, &err)
		out, err = call(ctx, req)
		return out, withLost(ctx, lost, toStatus(err))
	}
}

// lostTime bounds how long it is looked why a call failed.
const lostTime = 5 * time.Second

// withLost says what to do when a call failed because the store has no majority.
func withLost(ctx context.Context, lost func(context.Context) string, err error) error {
	if code := status.Code(err); lost == nil || code != codes.Unavailable && code != codes.DeadlineExceeded {
		return err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lostTime)
	defer cancel()
	if text := lost(ctx); text != "" {
		return status.Error(codes.Unavailable, text)
	}
	return err
}

// boundStream is a stream whose context also ends with the server.
type boundStream struct {
	grpc.ServerStream
	ctx context.Context
}

func (b boundStream) Context() context.Context { return b.ctx }

func streams(stopping context.Context, log *slog.Logger, lost func(context.Context) string) grpc.StreamServerInterceptor {
	return func(srv any, stream grpc.ServerStream, info *grpc.StreamServerInfo, call grpc.StreamHandler) (err error) {
		ctx, cancel := context.WithCancel(stream.Context())
		defer cancel()
		defer context.AfterFunc(stopping, cancel)()
		defer rescue(log, info.FullMethod, &err)
		err = call(srv, boundStream{stream, ctx})
		if stopping.Err() != nil && ctx.Err() != nil {
			return status.Error(codes.Unavailable, "the server is stopping")
		}
		return withLost(ctx, lost, toStatus(err))
	}
}

// rescue turns a panic into an error of one call. What it says may hold content of
// users, so it goes to the log only, and there without the value.
func rescue(log *slog.Logger, method string, err *error) {
	if r := recover(); r != nil {
		log.Error("call panicked", "reason", method, "err", string(debug.Stack()))
		*err = status.Error(codes.Internal, "the server has a bug here; its log tells where")
	}
}

// fullHint says to a person what a full store means and what to do.
const fullHint = "; nothing was written, and what runs is not affected: delete ConfigMaps and Secrets that are not needed, " +
	"or start the server with a larger --store-quota-bytes (of an external etcd: compact, defragment and disarm it)"

// toStatus gives an error its gRPC code; one that has a code keeps it. The client's
// side reads codes only.
func toStatus(err error) error {
	if err == nil {
		return nil
	}
	if _, ok := status.FromError(err); ok {
		return err
	}
	if errors.Is(err, store.ErrNoSpace) {
		return status.Error(codes.ResourceExhausted, err.Error()+fullHint)
	}
	for _, k := range []struct {
		kind error
		code codes.Code
	}{
		{ErrToken, codes.PermissionDenied},
		{ErrRevoked, codes.PermissionDenied},
		{ErrJoined, codes.PermissionDenied},
		{ErrForgotten, codes.PermissionDenied},
		{ErrTaken, codes.AlreadyExists},
		{ErrMachine, codes.AlreadyExists},
		{ErrRequest, codes.InvalidArgument},
		{store.ErrConflict, codes.Aborted},
		{store.ErrUnknown, codes.Unavailable},
		{store.ErrUnavailable, codes.Unavailable},
		{store.ErrLeaseGone, codes.Aborted},
		{store.ErrCompacted, codes.Unavailable},
		{store.ErrTooLarge, codes.InvalidArgument},
		{context.DeadlineExceeded, codes.DeadlineExceeded},
		{context.Canceled, codes.Canceled},
	} {
		if errors.Is(err, k.kind) {
			return status.Error(k.code, err.Error())
		}
	}
	return status.Error(codes.Internal, err.Error())
}
