package server

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/stead-project/stead/proto"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/store"
	"github.com/stead-project/stead/store/memstore"
)

var tooNew = store.Put(store.FormatKey, store.Encode(records.Format{Lowest: store.Format + 1, Why: "a volume flies"}))

func TestAServerOfAnEarlierFormatWritesNothing(t *testing.T) {
	s := memstore.New()
	if _, err := s.Commit(t.Context(), store.Txn{Then: []store.Op{tooNew}}); err != nil {
		t.Fatal(err)
	}
	before, kvs, err := s.Snapshot(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	srv, err := New(config(shortDir(t), s, io.Discard))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := srv.Run(ctx); !errors.Is(err, store.ErrFormat) || !strings.Contains(err.Error(), "a volume flies") {
		t.Errorf("run: %v", err)
	}
	if after, now, err := s.Snapshot(t.Context(), ""); err != nil || after != before || len(now) != len(kvs) {
		t.Errorf("the store is at revision %d with %d keys, was at %d with %d (%v)", after, len(now), before, len(kvs), err)
	}
}

func TestAServerEndsWhenAnotherOneRaisesTheFormat(t *testing.T) {
	s := memstore.New()
	r := start(t, config(shortDir(t), s, nil))
	if _, err := s.Commit(t.Context(), store.Txn{Then: []store.Op{tooNew}}); err != nil {
		t.Fatal(err)
	}
	select {
	case <-time.After(patience):
		t.Fatal("it continues")
	case err := <-r.end:
		if !errors.Is(err, store.ErrFormat) {
			t.Errorf("it ended with %v", err)
		}
	}
}

// Who speaks none of the server's protocols is refused before its call is looked at, and each answer says which these are.
func TestACallerOfAnotherProtocolIsRefused(t *testing.T) {
	r := start(t, config(shortDir(t), memstore.New(), nil))
	conn, err := grpc.NewClient("unix://"+r.srv.cfg.Socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	ctx := metadata.AppendToOutgoingContext(t.Context(), proto.ProtocolKey, "98-99")
	var header metadata.MD
	_, err = proto.NewControlClient(conn).Info(ctx, &proto.InfoRequest{}, grpc.Header(&header))
	if status.Code(err) != codes.FailedPrecondition || !strings.Contains(err.Error(), "upgrade the server") || len(header.Get(proto.ProtocolKey)) != 1 {
		t.Errorf("a call: %v, %v", err, header)
	}
	stream, err := proto.NewNodesClient(conn).Session(ctx)
	if err == nil {
		_, err = stream.Recv()
	}
	if status.Code(err) != codes.FailedPrecondition || !strings.Contains(err.Error(), "upgrade the server") {
		t.Errorf("a stream: %v", err)
	}
	if _, err := proto.NewControlClient(conn).Info(t.Context(), &proto.InfoRequest{}); err != nil {
		t.Errorf("a caller of the first release: %v", err)
	}
}
