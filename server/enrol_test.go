package server

import (
	"context"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/stead-project/stead/proto"
	"github.com/stead-project/stead/server/access/accesstest"
	"github.com/stead-project/stead/server/cache"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/trust"
)

func TestAMachineEntersByTokenAndTheRestOfItsLifeByCertificate(t *testing.T) {
	r, _ := listening(t)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	people := proto.NewTrustClient(r.conn)
	made, err := people.CreateToken(ctx, &proto.CreateTokenRequest{TtlMillis: time.Hour.Milliseconds()})
	if err != nil {
		t.Fatal(err)
	}
	token, err := trust.ParseJoinToken(made.GetToken())
	if err != nil {
		t.Fatal(err)
	}
	door, err := proto.Connect(ctx, r.srv.Addresses()[0], token.Pin.TLS("127.0.0.1"))
	if err != nil {
		t.Fatal(err)
	}
	defer door.Close()
	mine, err := trust.NewCredential(r.srv.Addresses())
	if err != nil {
		t.Fatal(err)
	}
	request, err := mine.Request()
	if err != nil {
		t.Fatal(err)
	}
	e := &proto.EnrollRequest{Token: token.ID, Secret: []byte("wrong"), Node: "n1", Uid: "u1", Request: request}
	if _, err := proto.NewJoinClient(door).Enroll(ctx, e); status.Code(err) != codes.PermissionDenied {
		t.Fatalf("forged: got %v", err)
	}
	e.Secret = token.Secret
	given, err := proto.NewJoinClient(door).Enroll(ctx, e)
	if err == nil {
		err = mine.Take(given.GetCertificate(), given.GetCa())
	}
	if err != nil {
		t.Fatal(err)
	}
	// It is seen before it has said anything, and can be revoked.
	r.nodeIs("n1", cache.NodeEnrolled)
	conn := r.as(mine)
	if w, err := proto.NewNodesClient(conn).Join(ctx, hello("n1", "u1").GetHello()); err != nil || w.GetCluster() != given.GetCluster() {
		t.Fatalf("got %v, %v", w, err)
	}
	again, err := proto.NewJoinClient(conn).Renew(ctx, &proto.RenewRequest{Request: request})
	if err == nil {
		err = mine.Take(again.GetCertificate(), again.GetCa())
	}
	if err != nil {
		t.Fatal(err)
	}
	if who, err := mine.Subject(); err != nil || who != (trust.Subject{Cluster: given.GetCluster(), Role: trust.RoleNode, Name: "n1", UID: "u1"}) {
		t.Fatalf("renewed: got %+v, %v", who, err)
	}
	r.logged("certificate renewed")
	r.logged("uid u1, at 127.0.0.1")
	if list, err := people.ListTokens(ctx, &proto.ListTokensRequest{}); err != nil || len(list.GetTokens()) != 1 || list.GetTokens()[0].GetUsedBy() != "n1" {
		t.Fatalf("got %v, %v", list, err)
	}
	if _, err := people.Revoke(ctx, &proto.RevokeRequest{Node: "n1"}); err != nil {
		t.Fatalf("it cannot be revoked: %v", err)
	}
	if _, err := proto.NewJoinClient(conn).Renew(ctx, &proto.RenewRequest{Request: request}); status.Code(err) != codes.PermissionDenied {
		t.Fatalf("revoked: got %v", err)
	}
	for _, s := range []string{token.Text(), string(token.Secret), token.Text()[13:56]} {
		if strings.Contains(r.logs.String(), s) {
			t.Fatal("the log shows the token")
		}
	}
}

// nodeIs waits until a node is in this state.
func (r *running) nodeIs(name spec.NodeName, state string) {
	r.t.Helper()
	is := ""
	for deadline := time.Now().Add(patience); is != state; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			r.t.Fatalf("node %s is %q; want %q", name, is, state)
		}
		r.srv.cache.Look(func(v cache.View) {
			for _, n := range cache.NodeStates(v, v.Nodes()) {
				if n.Node.Node.Name == name {
					is = n.State
				}
			}
		})
	}
}

// What a client may let in ends with it; what it is told says what is left to do.
func TestAClientsTokensAreShownAndEndWithIt(t *testing.T) {
	r, a := listening(t)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	ann := proto.NewTrustClient(r.as(accesstest.Credential(t, a, trust.Subject{Role: trust.RoleAdmin, Name: "ann", UID: "id1"}, time.Hour)))
	if _, err := ann.CreateToken(ctx, &proto.CreateTokenRequest{TtlMillis: 2 * time.Hour.Milliseconds()}); status.Code(err) != codes.InvalidArgument {
		t.Errorf("for two hours: got %v", err)
	}
	made, err := ann.CreateToken(ctx, &proto.CreateTokenRequest{TtlMillis: time.Hour.Milliseconds()})
	if err != nil {
		t.Fatal(err)
	}
	people := proto.NewTrustClient(r.conn)
	if list, err := people.ListTokens(ctx, &proto.ListTokensRequest{}); err != nil || len(list.GetTokens()) != 1 || list.GetTokens()[0].GetMadeBy() != "id1" {
		t.Errorf("got %v, %v", list, err)
	}
	gone, err := people.Revoke(ctx, &proto.RevokeRequest{Client: "id1"})
	if err != nil || len(gone.GetTokens()) != 1 || gone.GetTokens()[0] != made.GetId() {
		t.Errorf("got %v, %v", gone, err)
	}
}
