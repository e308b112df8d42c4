package access

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/stead-project/stead/proto"
	"github.com/stead-project/stead/store/memstore"
	"github.com/stead-project/stead/trust"
)

// TestTheTableOfRoles is the table as OPERATIONS has it: each method of people, and the least role that has it.
func TestTheTableOfRoles(t *testing.T) {
	least := map[string]string{
		"viewer":   "Control: Info Get List Watch Explain Logs Usage Images Servers: List Quorum",
		"operator": "Control: Apply Scale Undo Pause DecideJob Restart Move Rebalance Delete ReclaimVolume RestoreVolume Exec Forward",
		"admin": "Control: EditNode DrainNode FenceNode RemoveNode Restore End Backup LoadImage Servers: Health Remove Audit: Read " +
			"Trust: CreateToken ListTokens RevokeToken Revoke ListClients Join: Enroll EnrollServer Keyring: List Rotate Remove Authority: List Rotate Retire",
		"root": "Trust: CreateClient Servers: Replace",
	}
	roles := map[string]role{"viewer": roleViewer, "operator": roleOperator, "admin": roleAdmin, "root": roleRoot}
	order := []string{"viewer", "operator", "admin", "root"}
	listed := map[string]bool{}
	for i, name := range order {
		service := ""
		for _, word := range strings.Fields(least[name]) {
			if s, is := strings.CutSuffix(word, ":"); is {
				service = s
				continue
			}
			method := "/stead.v1." + service + "/" + word
			listed[method] = true
			for j, who := range order {
				if may := allowed[method]&roles[who] != 0; may != (j >= i) {
					t.Errorf("%s may call %s: %t", who, method, may)
				}
			}
		}
	}
	for method, may := range allowed {
		if may&(roleViewer|roleOperator|roleAdmin) != 0 && !listed[method] {
			t.Errorf("%s is not in the table", method)
		}
	}
}

// TestARoleEndsAtItsNamespaces: whoever is limited to shop gets what is there, and what is about nothing in particular.
func TestARoleEndsAtItsNamespaces(t *testing.T) {
	a := newAuthority(t, memstore.New())
	g := newAuthorizer(Config{Authority: a, Refusals: &Refusals{}, Logger: slog.New(slog.DiscardHandler)})
	who := map[string]context.Context{}
	for name, s := range map[string]trust.Subject{
		"operator of shop": {Role: trust.RoleOperator, Namespaces: "other,shop"}, "operator": {Role: trust.RoleOperator},
		"viewer of shop": {Role: trust.RoleViewer, Namespaces: "shop"}, "viewer": {Role: trust.RoleViewer}, "admin": {Role: trust.RoleAdmin},
	} {
		s.Name, s.UID = "ann", "id1"
		who[name] = metadata.NewIncomingContext(from(t, credential(t, a, s, time.Hour)), metadata.Pairs(proto.NamespacesKey, "all,of,them", proto.RoleKey, "admin"))
	}
	const all, limited, secrets = "operator of shop, operator, viewer of shop, viewer, admin", "operator, viewer, admin", "operator of shop, operator, admin"
	operators := func(who string) string { // of these, who may call it at all
		return strings.NewReplacer("viewer of shop, ", "", "viewer, ", "").Replace(who)
	}
	cases := []struct {
		method string
		msg    any
		want   string
	}{
		{proto.Control_Info_FullMethodName, &proto.InfoRequest{}, all},
		{proto.Servers_List_FullMethodName, &proto.ListServersRequest{}, all},
		{proto.Servers_Quorum_FullMethodName, &proto.QuorumRequest{}, all},
		{proto.Control_Get_FullMethodName, &proto.GetRequest{Kind: proto.KindSet, Namespace: "shop"}, all},
		{proto.Control_Get_FullMethodName, &proto.GetRequest{Kind: proto.KindSet, Namespace: "sho"}, limited},
		{proto.Control_Get_FullMethodName, &proto.GetRequest{Kind: proto.KindSet}, limited}, // default
		{proto.Control_Get_FullMethodName, &proto.GetRequest{Kind: proto.KindNode, Name: "n1"}, all},
		{proto.Control_Get_FullMethodName, &proto.GetRequest{Kind: proto.KindSecret, Namespace: "shop"}, secrets},
		{proto.Control_List_FullMethodName, &proto.ListRequest{Kind: proto.KindSecret, Namespace: "shop"}, secrets},
		{proto.Control_List_FullMethodName, &proto.ListRequest{Kind: proto.KindSecret, AllNamespaces: true}, "operator, admin"},
		{proto.Control_List_FullMethodName, &proto.ListRequest{Kind: proto.KindSet, Namespace: "shop", AllNamespaces: true}, limited},
		{proto.Control_List_FullMethodName, &proto.ListRequest{Kind: proto.KindNode}, all},
		{proto.Control_Watch_FullMethodName, &proto.ListRequest{Kind: proto.KindMember, Namespace: "shop"}, all},
		{proto.Control_Watch_FullMethodName, &proto.ListRequest{Kind: proto.KindMember, Namespace: "x"}, limited},
		{proto.Control_Explain_FullMethodName, &proto.ExplainRequest{Namespace: "shop"}, all},
		{proto.Control_Explain_FullMethodName, &proto.ExplainRequest{Namespace: "x"}, limited},
		{proto.Control_Logs_FullMethodName, &proto.LogsRequest{Namespace: "shop"}, all},
		{proto.Control_Logs_FullMethodName, &proto.LogsRequest{Namespace: "x"}, limited},
		{proto.Control_Usage_FullMethodName, &proto.UsageRequest{}, limited},
		{proto.Control_Images_FullMethodName, &proto.ImagesRequest{}, limited},
		{proto.Control_Apply_FullMethodName, &proto.ApplyRequest{Namespace: "x"}, operators(all)}, // and control looks at each object
		{proto.Control_Scale_FullMethodName, &proto.ScaleRequest{Namespace: "shop"}, operators(all)},
		{proto.Control_Scale_FullMethodName, &proto.ScaleRequest{Namespace: "x"}, operators(limited)},
		{proto.Control_Undo_FullMethodName, &proto.UndoRequest{Namespace: "x"}, operators(limited)},
		{proto.Control_Pause_FullMethodName, &proto.PauseRequest{Namespace: "x"}, operators(limited)},
		{proto.Control_DecideJob_FullMethodName, &proto.DecideJobRequest{Namespace: "x"}, operators(limited)},
		{proto.Control_Restart_FullMethodName, &proto.RestartRequest{Namespace: "x"}, operators(limited)},
		{proto.Control_Move_FullMethodName, &proto.MoveRequest{Namespace: "x"}, operators(limited)},
		{proto.Control_Rebalance_FullMethodName, &proto.RebalanceRequest{Namespace: "shop"}, operators(all)},
		{proto.Control_Rebalance_FullMethodName, &proto.RebalanceRequest{Namespace: "shop", AllNamespaces: true}, operators(limited)},
		{proto.Control_Delete_FullMethodName, &proto.DeleteRequest{Namespace: "x"}, operators(limited)},
		{proto.Control_ReclaimVolume_FullMethodName, &proto.ReclaimVolumeRequest{Namespace: "x"}, operators(limited)},
		{proto.Control_RestoreVolume_FullMethodName, &proto.RestoreVolumeRequest{Namespace: "x"}, operators(limited)},
		{proto.Control_Exec_FullMethodName, &proto.ExecRequest{Start: &proto.ExecStart{Namespace: "shop"}}, operators(all)},
		{proto.Control_Exec_FullMethodName, &proto.ExecRequest{Start: &proto.ExecStart{Namespace: "x"}}, operators(limited)},
		{proto.Control_Exec_FullMethodName, &proto.ExecRequest{Frame: &proto.Frame{}}, operators(all)},
		{proto.Control_Forward_FullMethodName, &proto.ForwardRequest{Start: &proto.ForwardStart{Namespace: "x"}}, operators(limited)},
		{proto.Control_Forward_FullMethodName, &proto.ForwardRequest{Frame: &proto.Frame{}}, operators(all)},
	}
	covered := map[string]bool{}
	for _, c := range cases {
		covered[c.method] = true
		for name, ctx := range who {
			_, err := g.unary(ctx, c.msg, &grpc.UnaryServerInfo{FullMethod: c.method}, func(ctx context.Context, _ any) (any, error) {
				if said := metadata.ValueFromIncomingContext(ctx, proto.NamespacesKey); len(said) != 1 || strings.Contains(said[0], "all,of,them") {
					t.Errorf("%s: the handler is told of namespaces %q", name, said)
				}
				if said := metadata.ValueFromIncomingContext(ctx, proto.RoleKey); len(said) != 1 || !strings.HasPrefix(name, said[0]) {
					t.Errorf("%s: the handler is told of the role %q", name, said)
				}
				return nil, nil
			})
			if may := strings.Contains(", "+c.want+",", ", "+name+","); may != (err == nil) || err != nil && status.Code(err) != codes.PermissionDenied {
				t.Errorf("%s, %s of %v: got %v", name, c.method, c.msg, err)
			}
		}
	}
	for method, may := range allowed {
		if may&(roleOperator|roleViewer) != 0 && !covered[method] {
			t.Errorf("nothing tries %s from another namespace", method)
		}
	}
}
