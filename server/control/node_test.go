package control

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/stead-project/stead/proto"
)

// agent joins as n1 and answers each ask with answer in a tunnel.
func (r *rig) agent(answer func(*proto.Ask, proto.Nodes_TunnelClient)) {
	r.t.Helper()
	s, err := r.nodes.Session(r.ctx)
	if err != nil {
		r.t.Fatal(err)
	}
	err = s.Send(&proto.FromNode{Kind: &proto.FromNode_Hello{Hello: &proto.Hello{Node: "n1", Uid: "uid1", Boot: "b1", FactsJson: []byte("{}")}}})
	if err != nil {
		r.t.Fatal(err)
	}
	if _, err := s.Recv(); err != nil {
		r.t.Fatal(err)
	}
	go func() { // ends with the session, which the rig's context ends
		for {
			m, err := s.Recv()
			if err != nil {
				return
			}
			if ask := m.GetAsk(); ask != nil {
				t, err := r.nodes.Tunnel(r.ctx)
				if err != nil {
					return
				}
				answer(ask, t)
				_ = t.CloseSend()
			}
		}
	}()
}

// readLogs reads a log to its end.
func (r *rig) readLogs(req *proto.LogsRequest) (string, error) {
	s, err := r.api.Logs(r.ctx, req)
	if err != nil {
		return "", err
	}
	var text strings.Builder
	for {
		f, err := s.Recv()
		if errors.Is(err, io.EOF) {
			return text.String(), nil
		}
		if err != nil {
			return text.String(), err
		}
		text.Write(f.GetData())
	}
}

// load sends an archive in pieces.
func (r *rig) load(node string, pieces ...string) (*proto.LoadImageResponse, error) {
	s, err := r.api.LoadImage(r.ctx)
	if err != nil {
		return nil, err
	}
	_ = s.Send(&proto.LoadImageRequest{Node: node})
	for _, p := range pieces {
		if s.Send(&proto.LoadImageRequest{Data: []byte(p)}) != nil {
			break // the refusal comes below
		}
	}
	return s.CloseAndRecv()
}

func TestANodeWithoutASessionIsSaidToBeSilent(t *testing.T) {
	r := newRigThatWaits(t, 10*time.Millisecond)
	r.mustApply(setYAML)
	r.live(0, true)
	_, err := r.readLogs(&proto.LogsRequest{Member: "db-0", Tail: -1})
	refused(t, err, codes.Unavailable, "n1 is silent")
	_, err = r.load("")
	refused(t, err, codes.Unavailable, "no node is connected")
	_, err = r.load("n9", "one")
	refused(t, err, codes.Unavailable, "n9 is silent")
}

func TestLogsComeThroughTheNodesTunnel(t *testing.T) {
	r := newRig(t)
	r.mustApply(setYAML)
	r.live(0, true)
	r.agent(func(ask *proto.Ask, tn proto.Nodes_TunnelClient) {
		l := ask.GetLogs()
		if l.GetPrevious() {
			_ = tn.Send(&proto.Frame{Ask: ask.GetId(), Error: "there was no run before", Code: int32(codes.NotFound)})
			return
		}
		_ = tn.Send(&proto.Frame{Ask: ask.GetId(), Data: []byte(l.GetContainer() + ": one\n")})
		for range 20 { // more than the tunnel holds
			_ = tn.Send(&proto.Frame{Data: []byte("more\n")})
		}
		_ = tn.Send(&proto.Frame{Done: true})
	})
	got, err := r.readLogs(&proto.LogsRequest{Member: "db-0", Tail: -1})
	if want := "main: one\n" + strings.Repeat("more\n", 20); err != nil || got != want {
		t.Fatalf("got %q, %v; want %q", got, err, want)
	}
	_, err = r.readLogs(&proto.LogsRequest{Member: "db-0", Previous: true})
	refused(t, err, codes.NotFound, "no run before")
	_, err = r.readLogs(&proto.LogsRequest{Member: "db-0", Container: "sidecar"})
	refused(t, err, codes.NotFound, "it has main")
	_, err = r.readLogs(&proto.LogsRequest{Member: "db-7"})
	refused(t, err, codes.NotFound)
}

func TestAnImageIsPassedOnToTheOnlyNode(t *testing.T) {
	r := newRig(t)
	r.agent(func(ask *proto.Ask, tn proto.Nodes_TunnelClient) {
		_ = tn.Send(&proto.Frame{Ask: ask.GetId()})
		if ask.GetImages() != nil {
			_ = tn.Send(&proto.Frame{Data: []byte(`[{"Name":"a:1","Digest":"sha256:x","SizeBytes":7}]`), Done: true})
			return
		}
		var archive strings.Builder
		for {
			f, err := tn.Recv()
			if err != nil {
				return
			}
			archive.Write(f.GetData())
			if strings.HasPrefix(archive.String(), "bad") {
				_ = tn.Send(&proto.Frame{Error: "this is no archive", Code: int32(codes.InvalidArgument)})
				return
			}
			if f.GetDone() {
				break
			}
		}
		_ = tn.Send(&proto.Frame{Data: []byte(`[{"Name":"` + archive.String() + `"}]`), Done: true})
	})
	out, err := r.load("", "one", "two", "three")
	if err != nil || len(out.GetImages()) != 1 || out.GetImages()[0].GetName() != "onetwothree" || out.GetImages()[0].GetNode() != "n1" {
		t.Fatalf("got %v, %v", out, err)
	}
	many := make([]string, 200)
	for i := range many {
		many[i] = "bad" + strings.Repeat("x", 10_000)
	}
	_, err = r.load("n1", many...)
	refused(t, err, codes.InvalidArgument, "no archive")
	images, err := r.api.Images(r.ctx, &proto.ImagesRequest{})
	if err != nil || len(images.GetImages()) != 1 || images.GetImages()[0].GetSizeBytes() != 7 {
		t.Fatalf("got %v, %v", images, err)
	}
}

func TestACommandGoesThroughTheNodesTunnel(t *testing.T) {
	r := newRig(t)
	r.mustApply(setYAML)
	r.live(0, true)
	gone := make(chan struct{})
	r.agent(func(ask *proto.Ask, tn proto.Nodes_TunnelClient) {
		e := ask.GetExec()
		switch e.GetCommand()[0] {
		case "nope":
			_ = tn.Send(&proto.Frame{Ask: ask.GetId(), Error: "no such command", Code: int32(codes.InvalidArgument), Done: true})
		case "hang":
			_ = tn.Send(&proto.Frame{Ask: ask.GetId(), Channel: 1, Data: []byte("hangs")})
			for {
				if _, err := tn.Recv(); err != nil {
					close(gone)
					return
				}
			}
		default:
			_ = tn.Send(&proto.Frame{Ask: ask.GetId()})
			f, _ := tn.Recv()
			text := fmt.Sprint(e.GetContainer(), e.GetCommand(), e.GetStdin(), e.GetTerminal().GetRows(), string(f.GetData()))
			_ = tn.Send(&proto.Frame{Channel: 2, Data: []byte(text)})
			_ = tn.Send(&proto.Frame{Channel: 3, Done: true, ExitCode: 9})
		}
	})
	run := func(ctx context.Context, start *proto.ExecStart, frames ...*proto.Frame) (proto.Control_ExecClient, error) {
		t.Helper()
		s, err := r.api.Exec(ctx)
		if err == nil {
			err = s.Send(&proto.ExecRequest{Start: start})
		}
		for _, f := range frames {
			_ = s.Send(&proto.ExecRequest{Frame: f})
		}
		return s, err
	}
	s, err := run(r.ctx, &proto.ExecStart{Member: "db-0", Command: []string{"a", "b"}, Stdin: true, Terminal: &proto.Size{Rows: 24}},
		&proto.Frame{Data: []byte("in")})
	if err != nil {
		t.Fatal(err)
	}
	if f, err := s.Recv(); err != nil || string(f.GetData()) != "main[a b] true 24in" || f.GetChannel() != 2 {
		t.Fatalf("got %v, %v", f, err)
	}
	if f, err := s.Recv(); err != nil || f.GetExitCode() != 9 || !f.GetDone() {
		t.Fatalf("got %v, %v", f, err)
	}
	for _, c := range []struct {
		start *proto.ExecStart
		code  codes.Code
		word  string
	}{
		{&proto.ExecStart{Member: "db-0", Command: []string{"nope"}}, codes.InvalidArgument, "no such command"},
		{&proto.ExecStart{Member: "db-0"}, codes.InvalidArgument, "name a command"},
		{&proto.ExecStart{Member: "db-0", Container: "x", Command: []string{"a"}}, codes.NotFound, "it has main"},
		{&proto.ExecStart{Member: "db-9", Command: []string{"a"}}, codes.NotFound, "db-9"},
	} {
		s, err := run(r.ctx, c.start)
		if err == nil {
			_, err = s.Recv()
		}
		refused(t, err, c.code, c.word)
	}
	ctx, cancel := context.WithCancel(r.ctx)
	s, err = run(ctx, &proto.ExecStart{Member: "db-0", Command: []string{"hang"}})
	if err == nil {
		_, err = s.Recv()
	}
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	select {
	case <-gone:
	case <-r.ctx.Done():
		t.Fatal("the node did not hear that the person went away")
	}
}
