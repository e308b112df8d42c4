package access

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/stead-project/stead/proto"
	"github.com/stead-project/stead/records/people"
	"github.com/stead-project/stead/server/cache"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/store"
	"github.com/stead-project/stead/trust"
)

// maxClientTTL bounds how long a person's certificate may last.
const maxClientTTL = 366 * 24 * time.Hour

// joinAPI is how machines join; the caller is authorized.
type joinAPI struct {
	proto.UnimplementedJoinServer
	authority *Authority
	log       *slog.Logger
}

// errSocketOnly answers both APIs where there is no authority.
var errSocketOnly = status.Error(codes.FailedPrecondition,
	"this server is for its own host only; start it with --listen HOST:PORT, so that others can reach it")

// Enroll implements proto.JoinServer.
func (j *joinAPI) Enroll(ctx context.Context, r *proto.EnrollRequest) (*proto.Certificate, error) {
	c, _ := ctx.Value(callerKey{}).(caller)
	der, err := j.authority.Enroll(ctx, Enrollment{
		Token: r.GetToken(), Secret: r.GetSecret(), Node: spec.NodeName(r.GetNode()), UID: spec.UID(r.GetUid()), Request: r.GetRequest(), From: c.host,
	})
	if err != nil {
		return nil, err
	}
	return certificate(ctx, j.authority, der, j.authority.Life()), nil
}

// EnrollServer implements proto.JoinServer.
func (j *joinAPI) EnrollServer(ctx context.Context, r *proto.EnrollServerRequest) (*proto.ServerKeys, error) {
	c, _ := ctx.Value(callerKey{}).(caller)
	sealed, err := j.authority.EnrollServer(ctx, r.GetToken(), r.GetSecret(), r.GetServer(), r.GetReceiver(), c.host)
	if err != nil {
		return nil, err
	}
	id, err := j.authority.Stored(ctx)
	return &proto.ServerKeys{Cluster: j.authority.Cluster(), AuthorityJson: store.Encode(id), Key: sealed}, err
}

// Renew implements proto.JoinServer.
func (j *joinAPI) Renew(ctx context.Context, r *proto.RenewRequest) (*proto.Certificate, error) {
	c, _ := ctx.Value(callerKey{}).(caller)
	der, err := j.authority.Renew(ctx, r.GetRequest(), c.subject)
	if err != nil {
		return nil, err
	}
	j.log.Info("certificate renewed", "node", c.subject.Name, "reason", fmt.Sprintf("uid %s, at %s", c.subject.UID, c.host))
	return certificate(ctx, j.authority, der, j.authority.Life()), nil
}

func certificate(ctx context.Context, a *Authority, der []byte, life time.Duration) *proto.Certificate {
	return &proto.Certificate{
		Certificate: der, Ca: a.standing.Load().certificateOf(der), Cluster: a.Cluster(), Servers: a.AllAddresses(ctx), LifeMillis: life.Milliseconds(),
	}
}

// trustAPI is how people give others access, and take it back.
type trustAPI struct {
	proto.UnimplementedTrustServer
	authority *Authority
	cache     cache.Reader
}

// CreateToken implements proto.TrustServer.
func (s *trustAPI) CreateToken(ctx context.Context, r *proto.CreateTokenRequest) (*proto.CreateTokenResponse, error) {
	ttl := time.Duration(r.GetTtlMillis()) * time.Millisecond
	if r.GetServer() != "" {
		if c, ok := ctx.Value(callerKey{}).(caller); !ok || c.role != roleRoot || r.GetNode() != "" {
			return nil, status.Error(codes.PermissionDenied, "a join token for a server carries the cluster's key: only root on a server's host may make it, and it names no node")
		}
		token, err := s.authority.CreateServerToken(ctx, ttl, r.GetServer())
		if err != nil {
			return nil, err
		}
		return &proto.CreateTokenResponse{Id: token.ID, Token: token.Text()}, nil
	}
	var by spec.UID
	if c, ok := ctx.Value(callerKey{}).(caller); !ok || c.role != roleRoot {
		by = c.subject.UID
	}
	token, err := s.authority.CreateToken(ctx, ttl, spec.NodeName(r.GetNode()), by)
	if err != nil {
		return nil, err
	}
	return &proto.CreateTokenResponse{Id: token.ID, Token: token.Text()}, nil
}

// ListTokens implements proto.TrustServer.
func (s *trustAPI) ListTokens(ctx context.Context, _ *proto.ListTokensRequest) (*proto.ListTokensResponse, error) {
	tokens, err := s.authority.Tokens(ctx)
	if err != nil {
		return nil, err
	}
	out := &proto.ListTokensResponse{}
	for _, t := range tokens {
		out.Tokens = append(out.Tokens, &proto.JoinToken{
			Id: t.ID, Node: string(t.Node), UsedBy: string(t.UsedBy), CreatedUnix: t.CreatedAt.Unix(), TtlMillis: t.TTL.Milliseconds(),
			MadeBy: string(t.By), Server: t.Server,
		})
	}
	return out, nil
}

// RevokeToken implements proto.TrustServer.
func (s *trustAPI) RevokeToken(ctx context.Context, r *proto.RevokeTokenRequest) (*proto.RevokeTokenResponse, error) {
	there, err := s.authority.RevokeToken(ctx, r.GetId())
	if err != nil {
		return nil, err
	}
	if !there {
		return nil, status.Error(codes.NotFound, "there is no such join token; it may have expired")
	}
	return &proto.RevokeTokenResponse{}, nil
}

// CreateClient implements proto.TrustServer.
func (s *trustAPI) CreateClient(ctx context.Context, r *proto.CreateClientRequest) (*proto.Certificate, error) {
	life := time.Duration(r.GetTtlMillis()) * time.Millisecond
	if life < time.Minute || life > maxClientTTL {
		return nil, status.Errorf(codes.InvalidArgument, "a client's certificate lasts from 1m to %s", maxClientTTL)
	}
	random := make([]byte, 8)
	_, _ = rand.Read(random) // never fails: see crypto/rand
	id := hex.EncodeToString(random)
	role := cmp.Or(trust.Role(r.GetRole()), trust.RoleAdmin)
	if !slices.Contains(trust.People, role) {
		return nil, status.Errorf(codes.InvalidArgument, "%q is not a role of people: give it admin, operator or viewer", short(r.GetRole()))
	}
	made := time.Now().UTC()
	client := people.ClientFile{ID: spec.UID(id), Name: r.GetName(), Role: string(role), Namespaces: r.GetNamespaces(), Made: made, Until: made.Add(life)}
	der, err := s.authority.issueClient(ctx, r.GetRequest(),
		trust.Subject{Role: role, Name: r.GetName(), UID: spec.UID(id), Namespaces: strings.Join(r.GetNamespaces(), ",")}, life, client)
	if err != nil {
		return nil, err
	}
	out := certificate(ctx, s.authority, der, life)
	out.Id = id
	return out, nil
}

// Revoke implements proto.TrustServer.
func (s *trustAPI) Revoke(ctx context.Context, r *proto.RevokeRequest) (*proto.RevokeResponse, error) {
	uid := spec.UID(r.GetClient())
	if (uid == "") == (r.GetNode() == "") {
		return nil, status.Error(codes.InvalidArgument, "name a client's id or a node, and not both")
	}
	if r.GetNode() != "" {
		s.cache.Look(func(v cache.View) {
			for _, n := range v.Nodes() {
				if n.Node != nil && string(n.Node.Name) == r.GetNode() {
					uid = n.Node.UID
				}
			}
		})
		if uid == "" {
			return nil, status.Errorf(codes.NotFound, "there is no node %s", r.GetNode())
		}
	}
	if err := (trust.Subject{Cluster: s.authority.Cluster(), Role: trust.RoleAdmin, Name: "any", UID: uid}).Check(); err != nil {
		return nil, status.Error(codes.InvalidArgument, err.Error())
	}
	if r.GetNode() != "" {
		return &proto.RevokeResponse{}, s.authority.Revoke(ctx, uid)
	}
	gone, all, err := s.authority.RevokeClient(ctx, uid, r.GetAlso())
	out := &proto.RevokeResponse{Tokens: gone.Tokens, LetIn: admittedNodes(gone.Nodes), Unrecorded: names(all.Unrecorded)}
	if c, known := all.Known[uid]; known {
		out.Client = c.Name
	}
	for _, n := range gone.Nodes {
		if !n.Revoked {
			out.Nodes = append(out.Nodes, string(n.Name))
		}
	}
	return out, err
}

func admittedNodes(nodes []Admitted) []*proto.AdmittedNode {
	var out []*proto.AdmittedNode
	for _, n := range nodes {
		out = append(out, &proto.AdmittedNode{Name: string(n.Name), Again: n.Again, Revoked: n.Revoked})
	}
	return out
}

func names(nodes []spec.NodeName) []string {
	var out []string
	for _, n := range nodes {
		out = append(out, string(n))
	}
	return out
}

// ListClients implements proto.TrustServer.
func (s *trustAPI) ListClients(ctx context.Context, _ *proto.ListClientsRequest) (*proto.ListClientsResponse, error) {
	all, err := s.authority.Clients(ctx)
	if err != nil {
		return nil, err
	}
	out := &proto.ListClientsResponse{Unrecorded: names(all.Unrecorded)}
	for _, id := range slices.Sorted(maps.Keys(all.LetIn)) {
		c := &proto.Client{Id: string(id), Revoked: all.Revoked[id], Tokens: all.LetIn[id].Tokens, LetIn: admittedNodes(all.LetIn[id].Nodes)}
		if k, known := all.Known[id]; known {
			c.Name, c.Role, c.Namespaces, c.MadeUnix, c.UntilUnix = k.Name, k.Role, k.Namespaces, k.Made.Unix(), k.Until.Unix()
		}
		out.Clients = append(out.Clients, c)
	}
	return out, nil
}
