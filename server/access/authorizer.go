package access

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
	"github.com/stead-project/stead/server/audit"
	"github.com/stead-project/stead/spec"
)

// authorizer judges every call before its handler sees it, and every message in which a node
// says who it is or whom it answers.
type authorizer struct {
	authority *Authority                            // nil: the socket is the only way in
	asked     func(id string) (spec.NodeName, bool) // see Config.Asked
	refusals  *Refusals
	audit     *audit.Trail // nil: none is kept
	log       *slog.Logger

	mu      sync.Mutex
	streams map[*openStream]struct{}
	perUID  map[spec.UID]int // streams
}

// openStream is a stream of a caller whose certificate may end before the stream.
type openStream struct {
	uid spec.UID
	end context.CancelCauseFunc
}

var (
	errEnded      = status.Error(codes.Unauthenticated, "the certificate has expired; connect again with its successor")
	statusRevoked = status.Error(codes.PermissionDenied, ErrRevoked.Error())
)

func newAuthorizer(cfg Config) *authorizer {
	return &authorizer{authority: cfg.Authority, asked: cfg.Asked, refusals: cfg.Refusals, audit: cfg.Audit, log: cfg.Logger,
		streams: map[*openStream]struct{}{}, perUID: map[spec.UID]int{}}
}

// authorize says who calls, and refuses who may not. Its error has a status.
func (a *authorizer) authorize(ctx context.Context, method string) (context.Context, caller, error) {
	c, err := callerOf(ctx)
	if err != nil {
		return ctx, c, status.Error(codes.Unauthenticated, err.Error())
	}
	may := allowed[method]
	switch {
	case may&c.role == 0 && c.role == roleAnonymous:
		return ctx, c, status.Error(codes.Unauthenticated, "a certificate is needed for this; see 'stead agent --join' and 'stead client create'")
	case may&c.role == 0:
		return ctx, c, status.Errorf(codes.PermissionDenied, "this is not for %ss", c.subject.Role)
	case c.role&roleCertified != 0:
		if time.Until(c.until) <= 0 {
			return ctx, c, errEnded
		}
		if err := a.authority.Admit(ctx, c.subject); err != nil {
			return ctx, c, toStatus(err)
		}
	}
	if c.role == roleNode {
		a.authority.Arrivals.Note(spec.NodeName(c.subject.Name), c.subject.UID, c.by)
	}
	if c.role&(roleAdmin|roleOperator|roleViewer) != 0 { // the certificate says who it is and what it may, whatever else is said
		md, _ := metadata.FromIncomingContext(ctx)
		md = md.Copy()
		md.Set(proto.UserKey, c.subject.Name)
		md.Set(proto.NamespacesKey, c.subject.Namespaces)
		md.Set(proto.RoleKey, string(c.subject.Role))
		ctx = metadata.NewIncomingContext(ctx, md)
	}
	return context.WithValue(ctx, callerKey{}, c), c, nil
}

// checkOwn refuses a message in which a node speaks for another, or a person asks for what his role does not have.
func (a *authorizer) checkOwn(c caller, msg any) error {
	switch c.role {
	case roleNode:
	case roleRoot:
		if m, ok := msg.(*proto.FromNode); ok && m.GetHello() != nil && a.authority != nil {
			a.authority.Arrivals.Note(spec.NodeName(m.GetHello().GetNode()), spec.UID(m.GetHello().GetUid()), bySocket)
		}
		return nil
	case roleOperator, roleViewer:
		return checkWithin(c, msg)
	default:
		return nil
	}
	hello, _ := msg.(*proto.Hello)
	if m, ok := msg.(*proto.FromNode); ok {
		hello = m.GetHello()
	}
	if hello != nil && (hello.GetNode() != c.subject.Name || hello.GetUid() != string(c.subject.UID)) {
		return status.Errorf(codes.PermissionDenied, "this certificate is of node %s, which may speak for itself only", c.subject.Name)
	}
	if m, ok := msg.(*proto.Frame); ok && m.GetAsk() != "" {
		if node, pending := a.asked(m.GetAsk()); pending && string(node) != c.subject.Name {
			return status.Error(codes.PermissionDenied, "this request is for another node")
		}
	}
	return nil
}

// unary judges a call that is no stream.
func (a *authorizer) unary(ctx context.Context, req any, info *grpc.UnaryServerInfo, call grpc.UnaryHandler) (any, error) {
	ctx, c, err := a.authorize(ctx, info.FullMethod)
	if err == nil {
		err = a.checkOwn(c, req)
	}
	if err != nil {
		return nil, a.noteRefusal(ctx, c, info.FullMethod, toStatus(err), false)
	}
	kept := a.begin(ctx, c, info.FullMethod)
	kept.Asked(req, false)
	out, err := call(ctx, req)
	err = toStatus(err)
	if c.role == roleAnonymous && err != nil {
		kept = nil // strangers do not fill the audit log
	}
	kept.Done(out, status.Code(err).String(), status.Convert(err).Message())
	return out, a.noteRefusal(ctx, c, info.FullMethod, err, kept != nil)
}

// begin is the call's entry of the audit log.
func (a *authorizer) begin(ctx context.Context, c caller, method string) *audit.Call {
	return a.audit.Begin(auditCaller(ctx, c), method)
}

// auditCaller is the caller as the audit log names it. Of root's program it keeps for whom it says that it calls.
func auditCaller(ctx context.Context, c caller) audit.Caller {
	out := audit.Caller{From: c.host}
	switch c.role {
	case roleRoot:
		out.Who = "root"
		if said := metadata.ValueFromIncomingContext(ctx, proto.UserKey); len(said) > 0 {
			out.User = said[0]
		}
	case roleAnonymous, 0:
		out.Who = "no certificate"
	default:
		out.Who = c.subject.String()
	}
	return out
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
func (a *authorizer) stream(srv any, stream grpc.ServerStream, info *grpc.StreamServerInfo, call grpc.StreamHandler) error {
	ctx, c, err := a.authorize(stream.Context(), info.FullMethod)
	if err != nil {
		return a.noteRefusal(ctx, c, info.FullMethod, err, false)
	}
	kept := a.begin(ctx, c, info.FullMethod)
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	if c.role&roleCertified != 0 {
		remove, err := a.addStream(&openStream{c.subject.UID, end})
		if err != nil {
			return a.noteRefusal(ctx, c, info.FullMethod, err, false)
		}
		defer remove()
		defer time.AfterFunc(time.Until(c.until), func() { end(errEnded) }).Stop()
	}
	err = call(srv, judged{stream, ctx, func(msg any) error {
		err := a.checkOwn(c, msg)
		if err != nil {
			end(err)
			return err
		}
		kept.Asked(msg, true)
		return nil
	}})
	if cause := context.Cause(ctx); cause != nil && status.Code(cause) != codes.Unknown {
		err = cause // ours, whatever the handler made of it
	}
	err = toStatus(err)
	kept.Done(nil, status.Code(err).String(), status.Convert(err).Message())
	return a.noteRefusal(ctx, c, info.FullMethod, err, kept != nil)
}

// maxStreams bounds the streams of one certificate: a node has one and another for each log
// or command that somebody follows, a person has what he watches.
const maxStreams = 512

func (a *authorizer) addStream(s *openStream) (remove func(), err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if s.uid != "" && a.perUID[s.uid] >= maxStreams { // a server has no uid
		a.refusals.count(limitStreams)
		return nil, status.Errorf(codes.ResourceExhausted, "%d streams are open with this certificate; end some first", maxStreams)
	}
	a.streams[s] = struct{}{}
	a.perUID[s.uid]++
	return func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		delete(a.streams, s)
		a.perUID[s.uid]--
		if a.perUID[s.uid] == 0 {
			delete(a.perUID, s.uid)
		}
	}, nil
}

// revokeTime is how long a stream under way may outlive a revocation.
const revokeTime = 3 * time.Second

// watch ends streams of those that are revoked, until ctx ends.
func (a *authorizer) watch(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(revokeTime):
		}
		revoked, err := a.authority.Revoked(ctx)
		if err != nil {
			continue // the store is away; no new call is authorized either
		}
		a.mu.Lock()
		for s := range a.streams {
			if revoked[s.uid] {
				s.end(statusRevoked)
			}
		}
		a.mu.Unlock()
	}
}

// noteRefusal counts and logs a refusal, once for each caller, method and cause, also in the audit log, unless that has it. It returns err.
func (a *authorizer) noteRefusal(ctx context.Context, c caller, method string, err error, kept bool) error {
	if code := status.Code(err); code != codes.PermissionDenied && code != codes.Unauthenticated {
		return err
	}
	if _, known := allowed[method]; !known {
		method = "an unknown method" // its name may be of any length
	}
	if a.logRefusal(c.String(), method, err) && !kept {
		a.audit.Refused(auditCaller(ctx, c), method, status.Code(err).String(), status.Convert(err).Message())
	}
	return err
}

// logRefusal reports whether it is the first of its kind for a while.
func (a *authorizer) logRefusal(who, method string, err error) bool {
	a.refusals.count(limitCall)
	who, method = short(who), short(method)
	text := short(status.Convert(err).Message())
	now, last := a.refusals.first(time.Now(), who+"\x00"+method+"\x00"+text)
	if now {
		a.log.Warn("call refused", "reason", who+": "+method, "err", text)
	}
	if last {
		a.log.Warn("more refusals not logged in this minute", "reason", "limit")
	}
	return now
}

// options put the authorizer before every call of a gRPC server.
func (a *authorizer) options() []grpc.ServerOption {
	return []grpc.ServerOption{grpc.ChainUnaryInterceptor(a.unary), grpc.ChainStreamInterceptor(a.stream)}
}
