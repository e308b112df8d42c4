package main

import (
	"bytes"
	"context"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/stead-project/stead/proto"
)

// shakyQuorum tells what comes by the channel; "break" ends its stream.
type shakyQuorum struct {
	proto.UnimplementedServersServer
	states chan string
}

// shaky is a server whose store loses its majority, and whose streams break.
type shaky struct {
	proto.UnimplementedControlServer
	proto.UnimplementedAuditServer
	quorum *shakyQuorum

	mu     sync.Mutex
	asked  []int64 // since when logs were asked for
	audits []int64
	seen   int  // watches
	quiet  bool // watches tell nothing
}

func (s *shakyQuorum) Quorum(_ *proto.QuorumRequest, stream proto.Servers_QuorumServer) error {
	for {
		select {
		case <-stream.Context().Done():
			return nil
		case text := <-s.states:
			if text == "break" {
				return status.Error(codes.Unavailable, "the server is stopping")
			}
			if why, is := strings.CutPrefix(text, "refuse: "); is {
				return status.Error(codes.Unavailable, why)
			}
			if err := stream.Send(&proto.QuorumState{Lost: text}); err != nil {
				return err
			}
		}
	}
}

// second reports whether a call is the second of its kind, which ends well.
func (s *shaky) second(of *[]int64, since int64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	*of = append(*of, since)
	return len(*of) > 1
}

var shakyAt = time.Date(2026, 11, 28, 10, 0, 0, 0, time.UTC)

func stamped(at time.Time, text string) []byte {
	return []byte(at.Format(time.RFC3339Nano) + " " + text + "\n")
}

func (s *shaky) Logs(r *proto.LogsRequest, stream proto.Control_LogsServer) error {
	if s.second(&s.asked, r.GetSinceUnixNanos()) {
		line := stamped(shakyAt.Add(time.Second), "two")
		return stream.Send(&proto.Frame{Data: line, Done: true})
	}
	line := append(stamped(shakyAt, "one"), "2026-11-28T10:00:0"...) // the half of a line is told again
	if err := stream.Send(&proto.Frame{Data: line}); err != nil {
		return err
	}
	return status.Error(codes.Unavailable, "connection to the node lost")
}

func (s *shaky) Read(r *proto.AuditRequest, stream proto.Audit_ReadServer) error {
	send := func(at time.Time, verb string) error {
		return stream.Send(&proto.AuditEntry{Json: []byte(`{"at":"` + at.Format(time.RFC3339Nano) + `","verb":"` + verb + `"}`)})
	}
	if s.second(&s.audits, r.GetSinceUnixNanos()) {
		return send(shakyAt.Add(time.Second), "second")
	}
	if err := send(shakyAt, "first"); err != nil {
		return err
	}
	if err := stream.Send(&proto.AuditEntry{Synced: true}); err != nil {
		return err
	}
	return status.Error(codes.Unavailable, "the server is stopping")
}

func (s *shaky) Watch(_ *proto.ListRequest, stream proto.Control_WatchServer) error {
	s.mu.Lock()
	s.seen++
	first := s.seen == 1
	s.mu.Unlock()
	if s.quiet {
		<-stream.Context().Done()
		return nil
	}
	objects := map[bool][][2]string{true: {{"a", "1"}, {"b", "1"}, {"gone", "1"}}, false: {{"a", "1"}, {"b", "2"}}}[first]
	for _, o := range objects {
		object := &proto.Object{Kind: proto.KindConfigMap, Namespace: "default", Name: o[0], Json: []byte(`{"metadata":{"name":"` + o[0] + `","namespace":"default","generation":` + o[1] + `},"spec":{}}`)}
		if err := stream.Send(&proto.WatchEvent{Object: object}); err != nil {
			return err
		}
	}
	if err := stream.Send(&proto.WatchEvent{Synced: true}); err != nil || !first {
		return err
	}
	return status.Error(codes.Unavailable, "the server is stopping")
}

// shakyServer serves one, and returns how commands reach it.
func shakyServer(t *testing.T) (s *shaky, stead func(ctx context.Context, out, errOut *output, args ...string) (code int)) {
	t.Helper()
	s = &shaky{quorum: &shakyQuorum{states: make(chan string)}}
	dir, err := os.MkdirTemp("", "stead-cli-") // short, because socket paths have a limit
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	socket := filepath.Join(dir, "s")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	g := grpc.NewServer()
	proto.RegisterServersServer(g, s.quorum)
	proto.RegisterControlServer(g, s)
	proto.RegisterAuditServer(g, s)
	done := make(chan struct{})
	go func() { defer close(done); _ = g.Serve(l) }()
	t.Cleanup(func() { g.Stop(); <-done })
	return s, func(ctx context.Context, out, errOut *output, args ...string) int {
		return run(ctx, append([]string{"--server", "unix://" + socket}, args...), out, errOut)
	}
}

// output is written and read at once.
type output struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.String()
}

// TestStreamsGoOnWhereTheyWere: nothing is shown twice, and nothing is left out.
func TestStreamsGoOnWhereTheyWere(t *testing.T) {
	s, stead := shakyServer(t)
	show := func(args ...string) string {
		t.Helper()
		var out, errOut output
		if code := stead(t.Context(), &out, &errOut, args...); code != exitDone {
			t.Errorf("%s: code %d\n%s%s", args, code, &out, &errOut)
		}
		return out.String()
	}
	if text := show("logs", "db-0", "-f"); text != "one\ntwo\n" {
		t.Errorf("logs -f:\n%s", text)
	}
	want := []int64{0, shakyAt.UnixNano() + 1}
	if !slices.Equal(s.asked, want) {
		t.Errorf("it asked for logs since %v; want %v", s.asked, want)
	}
	if text := show("audit", "-f", "--since", "0"); strings.Count(text, " first ") != 1 || strings.Count(text, " second ") != 1 {
		t.Errorf("audit -f:\n%s", text)
	}
	if !slices.Equal(s.audits, want) {
		t.Errorf("it asked for entries since %v; want %v", s.audits, want)
	}
	if text := show("get", "cm", "-w", "-o", "name"); strings.Count(text, "/a\n") != 1 || strings.Count(text, "/b\n") != 2 || strings.Count(text, "gone is gone") != 1 {
		t.Errorf("get -w:\n%s", text)
	}
}

// TestWhoFollowsIsToldOfALostMajority: while nothing comes, and when it is over.
func TestWhoFollowsIsToldOfALostMajority(t *testing.T) {
	s, stead := shakyServer(t)
	s.quiet = true
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var out, errOut output
	done := make(chan struct{})
	go func() {
		defer close(done)
		stead(ctx, &out, &errOut, "wait", "--for=delete", "cm/none")
	}()
	const over = "stead: the store can be reached again; this continues\n"
	told := ""
	for _, c := range [][2]string{
		{"", ""},
		{"the store has no majority: start s2", "stead: the store has no majority: start s2\n"},
		{"the store has no majority: start s2", ""},
		{"", over},
		{"break", "stead: the connection to the server is lost, and is tried again\n"},
		{"", over},
		{"the store has no majority: start s3", "stead: the store has no majority: start s3\n"},
		{"break", "stead: the connection to the server is lost, and is tried again\n"},
		{"refuse: the store has no majority: start s4", "stead: the store has no majority: start s4\n"},
		{"refuse: the store has no majority: start s4", ""},
		{"", over},
	} {
		s.quorum.states <- c[0]
		told += c[1]
		for deadline := time.Now().Add(patience); errOut.String() != told; time.Sleep(5 * time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatalf("it says\n%s\nwant\n%s", errOut.String(), told)
			}
		}
	}
	cancel()
	<-done
}
