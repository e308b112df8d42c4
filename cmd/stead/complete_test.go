package main

import (
	"bytes"
	"context"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/grpc"

	"github.com/stead-project/stead/proto"
)

// lister is a server that lists db-0, db-1 and kv-0, or a set db.
type lister struct {
	proto.UnimplementedControlServer
}

func (lister) List(_ context.Context, r *proto.ListRequest) (*proto.ListResponse, error) {
	names := map[string]string{"member": "db-0 db-1 kv-0", "set": "db kv", "volume": "data-db-0 log-db-0"}[r.GetKind()]
	out := &proto.ListResponse{}
	for _, name := range strings.Fields(names) {
		out.Objects = append(out.Objects, &proto.Object{Kind: r.GetKind(), Name: name})
	}
	return out, nil
}

// serveLister returns the address of a server that lists.
func serveLister(t *testing.T) string {
	dir, err := os.MkdirTemp("", "stead-cli-") // short, because socket paths have a limit
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "s")
	lis, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	g := grpc.NewServer()
	proto.RegisterControlServer(g, lister{})
	served := make(chan struct{})
	go func() { defer close(served); _ = g.Serve(lis) }()
	t.Cleanup(func() { g.Stop(); <-served; os.RemoveAll(dir) })
	return "unix://" + path
}

func TestCompletionKnowsKindsAndNames(t *testing.T) {
	server := serveLister(t)
	nowhere := "unix://" + filepath.Join(t.TempDir(), "none.sock")
	for _, c := range []struct {
		server, line, want string
	}{
		{server, "exec db", "db-0 db-1"},
		{server, "logs ", "db-0 db-1 kv-0"},
		{server, "explain k", "kv kv-0"},
		{server, "wait ", "db kv"},
		{server, "get members k", "kv-0"},
		{server, "volume reclaim da", "data-db-0"},
		{server, "get nonsense k", ""},
		{server, "scale db ", ""},
		{server, "describe ", "budget configmap endpoint endpointslice event member networkpolicy node quota revision secret service set volume"},
		{nowhere, "exec db", ""},
	} {
		root := newRoot(&cli{})
		var out, errs bytes.Buffer
		root.SetOut(&out)
		root.SetErr(&errs)
		root.SetArgs(append([]string{"__complete", "--server", c.server}, strings.Split(c.line, " ")...))
		if err := root.ExecuteContext(t.Context()); err != nil {
			t.Errorf("%q: %v", c.line, err)
		}
		words, _, _ := strings.Cut(out.String(), ":4") // no file names
		if got := strings.Join(strings.Fields(words), " "); got != c.want || strings.Contains(errs.String(), "stead:") {
			t.Errorf("%q: got %q, want %q; %s", c.line, got, c.want, errs.String())
		}
	}
}
