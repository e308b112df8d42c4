package server

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/stead-project/stead/proto"
	"github.com/stead-project/stead/server/auth"
	"github.com/stead-project/stead/spec"
)

// gate judges every call before its handler sees it, and every message in which a node
// says who it is or whom it answers.
type gate struct {
	authority *auth.Authority // nil: the socket is the only way in
	// asked is the node that an ask is for; false: nobody waits for such an ask.
	asked func(id string) (spec.NodeName, bool)
	log   *slog.Logger
	book  *refusals

	mu      sync.Mutex
	guests  map[*guest]struct{}
	streams map[spec.UID]int // of guests
}

// guest is a stream of a caller with a certificate, which may end before the stream.
type guest struct {
	uid spec.UID
	end context.CancelCauseFunc
}

var (
	errEnded   = status.Error(codes.Unauthenticated, "the certificate's time is over; come again with the next one")
	errRevoked = status.Error(codes.PermissionDenied, auth.ErrRevoked.Error())
)

func newGate(a *auth.Authority, asked func(string) (spec.NodeName, bool), log *slog.Logger) *gate {
	return &gate{authority: a, asked: asked, log: log, book: &refusals{}, guests: map[*guest]struct{}{}, streams: map[spec.UID]int{}}
}

// let says who calls, and refuses who may not. Its error has a status.
func (g *gate) let(ctx context.Context, method string) (context.Context, caller, error) {
	c, err := callerOf(ctx)
	if err != nil {
		return ctx, c, status.Error(codes.Unauthenticated, err.Error())
	}
	may := allowed[method]
	switch {
	case may&c.role == 0 && c.role == stranger:
		return ctx, c, status.Error(codes.Unauthenticated, "a certificate is needed for this; see 'stead agent --join' and 'stead client create'")
	case may&c.role == 0:
		return ctx, c, status.Errorf(codes.PermissionDenied, "this is not for %ss", c.subject.Role)
	case c.role&(aNode|anAdmin|aServer) != 0:
		if time.Until(c.until) <= 0 {
			return ctx, c, errEnded
		}
		if err := g.authority.Admit(ctx, c.subject); err != nil {
			return ctx, c, toStatus(err)
		}
	}
	if c.role == anAdmin { // who it is stands in the certificate, whatever else is said
		md, _ := metadata.FromIncomingContext(ctx)
		md = md.Copy()
		md.Set(proto.UserKey, c.subject.Name)
		ctx = metadata.NewIncomingContext(ctx, md)
	}
	return context.WithValue(ctx, callerKey{}, c), c, nil
}

// own refuses a message in which a node speaks for another.
func (g *gate) own(c caller, msg any) error {
	if c.role != aNode {
		return nil
	}
	hello, _ := msg.(*proto.Hello)
	if m, ok := msg.(*proto.FromNode); ok {
		hello = m.GetHello()
	}
	if hello != nil && (hello.GetNode() != c.subject.Name || hello.GetUid() != string(c.subject.UID)) {
		return status.Errorf(codes.PermissionDenied, "this certificate is of node %s and speaks for no other", c.subject.Name)
	}
	if m, ok := msg.(*proto.Frame); ok && m.GetAsk() != "" {
		if node, waits := g.asked(m.GetAsk()); waits && string(node) != c.subject.Name {
			return status.Error(codes.PermissionDenied, "another node was asked this")
		}
	}
	return nil
}

// unary judges a call that is no stream.
func (g *gate) unary(ctx context.Context, req any, info *grpc.UnaryServerInfo, call grpc.UnaryHandler) (any, error) {
	ctx, c, err := g.let(ctx, info.FullMethod)
	if err == nil {
		err = g.own(c, req)
	}
	var out any
	if err == nil {
		out, err = call(ctx, req)
	}
	return out, g.note(c, info.FullMethod, toStatus(err))
}

// judged is a stream of which every message is judged.
type judged struct {
	grpc.ServerStream
	ctx   context.Context
	judge func(msg any) error
}

func (j judged) Context() context.Context { return j.ctx }

func (j judged) RecvMsg(msg any) error {
	if err := j.ServerStream.RecvMsg(msg); err != nil {
		return err
	}
	return j.judge(msg)
}

// stream judges a stream and what comes in on it, and ends it with the certificate.
func (g *gate) stream(srv any, stream grpc.ServerStream, info *grpc.StreamServerInfo, call grpc.StreamHandler) error {
	ctx, c, err := g.let(stream.Context(), info.FullMethod)
	if err != nil {
		return g.note(c, info.FullMethod, err)
	}
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	if c.role&(aNode|anAdmin|aServer) != 0 {
		leave, err := g.enter(&guest{c.subject.UID, end})
		if err != nil {
			return g.note(c, info.FullMethod, err)
		}
		defer leave()
		defer time.AfterFunc(time.Until(c.until), func() { end(errEnded) }).Stop()
	}
	err = call(srv, judged{stream, ctx, func(msg any) error {
		err := g.own(c, msg)
		if err != nil {
			end(err)
		}
		return err
	}})
	if cause := context.Cause(ctx); cause != nil && status.Code(cause) != codes.Unknown {
		err = cause // ours, whatever the handler made of it
	}
	return g.note(c, info.FullMethod, toStatus(err))
}

// maxStreams bounds the streams of one certificate: a node has one and another for each log
// or command that somebody follows, a person has what he watches.
const maxStreams = 512

func (g *gate) enter(s *guest) (leave func(), err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if s.uid != "" && g.streams[s.uid] >= maxStreams { // a server has no uid
		g.book.count(limitStreams)
		return nil, status.Errorf(codes.ResourceExhausted, "%d streams are open with this certificate; end some first", maxStreams)
	}
	g.guests[s] = struct{}{}
	g.streams[s.uid]++
	return func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		delete(g.guests, s)
		if g.streams[s.uid]--; g.streams[s.uid] == 0 {
			delete(g.streams, s.uid)
		}
	}, nil
}

// revokeTime is how long a stream under way may outlive a revocation.
const revokeTime = 3 * time.Second

// watch ends streams of those that are revoked, until ctx ends.
func (g *gate) watch(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(revokeTime):
		}
		revoked, err := g.authority.Revoked(ctx)
		if err != nil {
			continue // the store is away; nobody new comes in either
		}
		g.mu.Lock()
		for s := range g.guests {
			if revoked[s.uid] {
				s.end(errRevoked)
			}
		}
		g.mu.Unlock()
	}
}

// note logs a refusal, once for each caller, method and cause. It returns err.
func (g *gate) note(c caller, method string, err error) error {
	if code := status.Code(err); code != codes.PermissionDenied && code != codes.Unauthenticated {
		return err
	}
	if _, known := allowed[method]; !known {
		method = "an unknown method" // its name may be of any length
	}
	g.refused(c.String(), method, err)
	return err
}

func (g *gate) refused(who, method string, err error) {
	g.book.count(limitCall)
	who, method = short(who), short(method)
	text := short(status.Convert(err).Message())
	if now, last := g.book.first(time.Now(), who+"\x00"+method+"\x00"+text); now {
		g.log.Warn("call refused", "reason", who+": "+method, "err", text)
		if last {
			g.log.Warn("more refusals are not logged until a minute is over", "reason", "limit")
		}
	}
}

// options put the gate before every call of a gRPC server.
func (g *gate) options() []grpc.ServerOption {
	return []grpc.ServerOption{grpc.ChainUnaryInterceptor(g.unary), grpc.ChainStreamInterceptor(g.stream)}
}
