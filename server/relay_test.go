package server

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/stead-project/stead/proto"
	"github.com/stead-project/stead/server/access/accesstest"
	"github.com/stead-project/stead/trust"
)

// answerLoads is a node that says how many bytes each image has that it is given.
func answerLoads(ctx context.Context, nodes proto.NodesClient, session proto.Nodes_SessionClient) error {
	for {
		m, err := session.Recv()
		if err != nil {
			return err
		}
		if m.GetAsk() == nil {
			continue
		}
		tunnel, err := nodes.Tunnel(ctx)
		if err == nil {
			err = tunnel.Send(&proto.Frame{Ask: m.GetAsk().GetId()})
		}
		if err != nil {
			return err
		}
		if m.GetAsk().GetImageLoad() == nil {
			if err := tunnel.Send(&proto.Frame{Error: "it only loads", Code: int32(codes.FailedPrecondition)}); err != nil {
				return err
			}
			continue
		}
		var bytes int64
		for done := false; !done; {
			f, err := tunnel.Recv()
			if err != nil {
				return err
			}
			bytes, done = bytes+int64(len(f.GetData())), f.GetDone()
		}
		doc, err := json.Marshal([]map[string]any{{"Name": "it", "SizeBytes": bytes}})
		if err == nil {
			err = tunnel.Send(&proto.Frame{Data: doc, Done: true})
		}
		if err != nil {
			return err
		}
	}
}

// TestANodeIsAskedThroughAnyServer: whichever of them holds its session.
func TestANodeIsAskedThroughAnyServer(t *testing.T) {
	one, a := listening(t)
	cfg := one.srv.cfg
	cfg.Name, cfg.Socket, cfg.Registry = "s2", strings.Replace(cfg.Socket, "s.sock", "s2.sock", 1), nil
	two := start(t, cfg)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	ident := trust.Subject{Role: trust.RoleNode, Name: "n1", UID: "uid-one"}
	conn := one.as(accesstest.Credential(t, a, ident, time.Hour))
	nodes := proto.NewNodesClient(conn)
	session, err := nodes.Session(ctx)
	if err == nil {
		err = session.Send(hello("n1", "uid-one"))
	}
	if err != nil {
		t.Fatal(err)
	}
	go answerLoads(ctx, nodes, session)
	for name, server := range map[string]*running{"its own": one, "the other": two} {
		load, err := server.api.LoadImage(ctx)
		for range 10 {
			if err == nil {
				err = load.Send(&proto.LoadImageRequest{Node: "n1", Data: make([]byte, 100_000)})
			}
		}
		if err != nil {
			t.Fatal(err)
		}
		if out, err := load.CloseAndRecv(); err != nil || len(out.GetImages()) != 1 || out.GetImages()[0].GetSizeBytes() != 1_000_000 {
			t.Errorf("through %s: got %v, %v", name, out, err)
		}
		if _, err := server.api.Images(ctx, &proto.ImagesRequest{Node: "n1"}); status.Code(err) != codes.FailedPrecondition || !strings.Contains(err.Error(), "it only loads") {
			t.Errorf("what a node says against it, through %s: got %v", name, err)
		}
	}
	for what, c := range map[string]trust.Subject{"a node": ident, "a client": {Role: trust.RoleAdmin, Name: "ann", UID: "id1"}} {
		stream, err := proto.NewPeersClient(one.as(accesstest.Credential(t, a, c, time.Hour))).Relay(ctx)
		if err == nil {
			_, err = stream.Recv()
		}
		if status.Code(err) != codes.PermissionDenied {
			t.Errorf("%s speaks as a server: got %v", what, err)
		}
	}
}
