package peers

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/stead-project/stead/internal/backoff"
	"github.com/stead-project/stead/internal/durable"
	"github.com/stead-project/stead/internal/trouble"
	"github.com/stead-project/stead/proto"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/records/stores"
	"github.com/stead-project/stead/server/access"
	"github.com/stead-project/stead/server/seal"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/spec/scalar"
	"github.com/stead-project/stead/store"
	"github.com/stead-project/stead/trust"
)

// callTime bounds one try to reach a server and have its answer.
const callTime = 45 * time.Second

// asking is what a server that joins keeps until it has its identity: should the answer be
// lost, the same receiver asks again.
type asking struct {
	UID      spec.UID     `json:"uid"`
	Receiver scalar.Bytes `json:"receiver"`
}

// NewUID makes the uid of a data directory.
func NewUID() spec.UID {
	random := make([]byte, 8)
	_, _ = rand.Read(random) // never fails: see crypto/rand
	return spec.UID(hex.EncodeToString(random))
}

// Enroll gets the server in dir its identity and the cluster's key (in keyFile), for a join
// token, from the first of servers that answers. It tries again until one answers or ctx
// ends, and fails when one refuses.
func Enroll(ctx context.Context, dir, keyFile, name string, servers []string, token string, log *slog.Logger) (*access.ServerIdentity, error) {
	if token == "" {
		return nil, errors.New("this server has not joined yet; give it a join token, made on another server by 'stead token create --for-server " + name + "': --token-file FILE, or STEAD_TOKEN")
	}
	t, err := trust.ParseJoinToken(token)
	if err != nil {
		return nil, err
	}
	path := filepath.Join(dir, "join.json")
	var as asking
	if err := durable.GetJSON(path, &as); errors.Is(err, fs.ErrNotExist) {
		r, err := seal.NewReceiver()
		if err != nil {
			return nil, err
		}
		as = asking{UID: NewUID(), Receiver: r.Bytes()}
		if err := durable.PutJSON(path, as); err != nil {
			return nil, err
		}
	} else if err != nil {
		return nil, err
	}
	receiver, err := seal.ParseReceiver(as.Receiver)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w; remove it", path, err)
	}
	var given *proto.ServerKeys
	err = insist(ctx, log, servers, func(address string) (*tls.Config, error) {
		host, err := trust.Host(address)
		return t.Pin.TLS(host), err
	}, func(ctx context.Context, conn *grpc.ClientConn) (err error) {
		given, err = proto.NewJoinClient(conn).EnrollServer(ctx, &proto.EnrollServerRequest{
			Token: t.ID, Secret: t.Secret, Server: name, Receiver: receiver.Public(),
		})
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("join the cluster: %w", err)
	}
	id := access.ServerIdentity{Cluster: given.GetCluster(), UID: as.UID}
	if err := json.Unmarshal(given.GetAuthorityJson(), &id.Authority); err != nil {
		return nil, fmt.Errorf("join the cluster: %w", err)
	}
	if _, err := receiver.Take(given.GetKey(), keyFile); err != nil {
		return nil, fmt.Errorf("join the cluster: %w", err)
	}
	if err := id.Save(dir); err != nil {
		return nil, err
	}
	return &id, os.Remove(path)
}

// Enter has a server of the cluster add self to the members of the store, and returns these.
// It tries again until one answers or ctx ends, and fails when one refuses.
func Enter(ctx context.Context, a *access.Authority, servers []string, self records.Server, log *slog.Logger) ([]stores.StoreMember, error) {
	var members []stores.StoreMember
	err := insist(ctx, log, servers, a.CallTLS, func(ctx context.Context, conn *grpc.ClientConn) error {
		given, err := proto.NewServersClient(conn).Add(ctx, &proto.AddServerRequest{ServerJson: store.Encode(self), KnowsFormat: store.Format})
		if err != nil {
			return err
		}
		return json.Unmarshal(given.GetMembersJson(), &members)
	})
	if err != nil {
		return nil, fmt.Errorf("join the store: %w", err)
	}
	return members, nil
}

// insist calls until a server answers, or refuses what would be refused again.
func insist(ctx context.Context, log *slog.Logger, servers []string, secure func(string) (*tls.Config, error), call func(context.Context, *grpc.ClientConn) error) error {
	var last trouble.Last
	for failures, next := 1, 0; ; failures++ {
		err := func() error {
			ctx, cancel := context.WithTimeout(ctx, callTime)
			defer cancel()
			conn, at, err := proto.ConnectAny(ctx, servers, next, secure)
			if err != nil {
				return err
			}
			defer conn.Close()
			next = at + 1
			return call(ctx, conn)
		}()
		switch status.Code(err) {
		case codes.OK:
			return nil
		case codes.PermissionDenied, codes.Unauthenticated, codes.InvalidArgument, codes.FailedPrecondition, codes.Unimplemented:
			return errors.New(status.Convert(err).Message())
		}
		if ctx.Err() != nil {
			return errors.Join(ctx.Err(), err)
		}
		if last.Is(err.Error()) {
			log.Warn("no server answered yet", "err", err)
		}
		backoff.Sleep(ctx, backoff.After(time.Second, 10*time.Second, failures))
	}
}
