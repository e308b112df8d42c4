package audit

import (
	"context"
	"errors"
	"io"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/stead-project/stead/proto"
)

// OtherServer is another server of the cluster.
type OtherServer struct {
	Name      string
	Addresses []string
}

// Service shows the audit logs of all servers.
type Service struct {
	proto.UnimplementedAuditServer
	// Trail is this server's own; nil: it keeps none.
	Log *Trail
	// Others are the other servers as they are known now, and Connect connects to one; both are nil where there are none.
	Others  func() []OtherServer
	Connect func(ctx context.Context, addresses []string) (*grpc.ClientConn, error)
}

// Read implements proto.AuditServer.
func (s *Service) Read(r *proto.AuditRequest, out proto.Audit_ReadServer) error {
	if s.Log == nil {
		return status.Error(codes.FailedPrecondition, "this server keeps no audit log: it was started with --audit-bytes 0")
	}
	ctx, cancel := context.WithCancel(out.Context())
	defer cancel()
	sources := []*source{begin(ctx, "", func(send func(*proto.AuditEntry) error) error { return s.readHere(ctx, r, send) })}
	if !r.GetHere() && s.Others != nil {
		for _, o := range s.Others() {
			sources = append(sources, begin(ctx, o.Name, func(send func(*proto.AuditEntry) error) error { return s.readOther(ctx, o, r, send) }))
		}
	}
	if err := merge(sources, out.Send); err != nil || !r.GetFollow() {
		return err
	}
	if err := out.Send(&proto.AuditEntry{Synced: true}); err != nil {
		return err
	}
	return follow(cancel, sources, out.Send)
}

func (s *Service) readHere(ctx context.Context, r *proto.AuditRequest, send func(*proto.AuditEntry) error) error {
	var since time.Time
	if r.GetSinceUnixNanos() != 0 {
		since = time.Unix(0, r.GetSinceUnixNanos())
	}
	err := s.Log.Read(ctx, since, r.GetFollow(), func() error { return send(&proto.AuditEntry{Synced: true}) },
		func(at time.Time, line []byte) error {
			return send(&proto.AuditEntry{Json: line, AtUnixNanos: at.UnixNano()})
		})
	if errors.Is(err, ErrSlow) {
		return status.Error(codes.ResourceExhausted, err.Error())
	}
	return err
}

func (s *Service) readOther(ctx context.Context, o OtherServer, r *proto.AuditRequest, send func(*proto.AuditEntry) error) error {
	conn, err := s.Connect(ctx, o.Addresses)
	if err != nil {
		return err
	}
	defer conn.Close()
	in, err := proto.NewAuditClient(conn).Read(ctx, &proto.AuditRequest{SinceUnixNanos: r.GetSinceUnixNanos(), Follow: r.GetFollow(), Here: true})
	if err != nil {
		return err
	}
	for {
		e, err := in.Recv()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := send(e); err != nil {
			return err
		}
	}
}
