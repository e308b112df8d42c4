package audit

import (
	"fmt"
	"strings"

	"github.com/stead-project/stead/proto"
)

// about is what a call is about. Skip: it changes nothing and shows nothing that is to be known.
type about struct {
	objects []string
	detail  string
	skip    bool
}

// Silent are the methods of which nothing is kept: they change nothing, and show no Secret.
var Silent = map[string]bool{
	proto.Join_Renew_FullMethodName: true, proto.Nodes_Join_FullMethodName: true, proto.Nodes_Session_FullMethodName: true, proto.Nodes_Tunnel_FullMethodName: true,
	proto.Servers_List_FullMethodName: true, proto.Servers_Health_FullMethodName: true, proto.Servers_Seen_FullMethodName: true, proto.Servers_Quorum_FullMethodName: true,
	proto.Peers_Relay_FullMethodName: true, proto.Keyring_List_FullMethodName: true, proto.Authority_List_FullMethodName: true, proto.Trust_ListTokens_FullMethodName: true, proto.Trust_ListClients_FullMethodName: true,
	proto.Control_Info_FullMethodName: true, proto.Control_Explain_FullMethodName: true, proto.Control_Usage_FullMethodName: true, proto.Control_Images_FullMethodName: true,
}

// verbs are the methods of which an entry is kept.
var verbs = map[string]string{
	proto.Join_Enroll_FullMethodName: "enroll", proto.Join_EnrollServer_FullMethodName: "enroll server",
	proto.Servers_Add_FullMethodName: "add server", proto.Servers_Remove_FullMethodName: "remove server", proto.Servers_Replace_FullMethodName: "replace server",
	proto.Trust_CreateToken_FullMethodName: "create token", proto.Trust_RevokeToken_FullMethodName: "revoke token",
	proto.Trust_Revoke_FullMethodName: "revoke", proto.Trust_CreateClient_FullMethodName: "create client",
	proto.Control_Apply_FullMethodName: "apply", proto.Control_Get_FullMethodName: "get", proto.Control_List_FullMethodName: "list", proto.Control_Watch_FullMethodName: "watch",
	proto.Control_Scale_FullMethodName: "scale", proto.Control_Undo_FullMethodName: "undo", proto.Control_Pause_FullMethodName: "pause", proto.Control_DecideJob_FullMethodName: "decide job", proto.Control_Restart_FullMethodName: "restart",
	proto.Control_EditNode_FullMethodName: "edit node", proto.Control_DrainNode_FullMethodName: "drain", proto.Control_FenceNode_FullMethodName: "fence", proto.Control_RemoveNode_FullMethodName: "remove node",
	proto.Control_Move_FullMethodName: "move", proto.Control_Rebalance_FullMethodName: "rebalance",
	proto.Control_Restore_FullMethodName: "restore", proto.Control_End_FullMethodName: "end store", proto.Control_Backup_FullMethodName: "backup", proto.Control_Delete_FullMethodName: "delete",
	proto.Control_ReclaimVolume_FullMethodName: "reclaim volume", proto.Control_RestoreVolume_FullMethodName: "restore volume",
	proto.Control_Logs_FullMethodName: "logs", proto.Control_Exec_FullMethodName: "exec", proto.Control_Forward_FullMethodName: "forward", proto.Control_LoadImage_FullMethodName: "load image",
	proto.Audit_Read_FullMethodName:     "audit",
	proto.Keyring_Rotate_FullMethodName: "rotate key", proto.Keyring_Remove_FullMethodName: "remove key",
	proto.Authority_Rotate_FullMethodName: "rotate authority", proto.Authority_Retire_FullMethodName: "retire authority",
}

// Verb of a method, and whether entries of its calls are kept.
func Verb(method string) (string, bool) {
	v, kept := verbs[method]
	return v, kept
}

// look says what a call is about, by its request and, once it is over, its answer.
func look(request, answer any) about {
	switch r := request.(type) {
	case *proto.ApplyRequest:
		return applied(r, answer)
	case *proto.GetRequest:
		return about{objects: object(r.GetKind(), r.GetNamespace(), r.GetName()), skip: r.GetKind() != proto.KindSecret}
	case *proto.ListRequest:
		return about{objects: object(r.GetKind(), r.GetNamespace(), "*"), detail: r.GetSelector(), skip: r.GetKind() != proto.KindSecret}
	case *proto.ScaleRequest:
		return about{objects: object("set", r.GetNamespace(), r.GetName()), detail: fmt.Sprintf("replicas %d", r.GetReplicas())}
	case *proto.UndoRequest:
		return about{objects: object("set", r.GetNamespace(), r.GetName()), detail: fmt.Sprintf("to revision %d", r.GetToRevision())}
	case *proto.PauseRequest:
		return about{objects: object("set", r.GetNamespace(), r.GetName()), detail: fmt.Sprintf("paused %t", r.GetPaused())}
	case *proto.DecideJobRequest:
		return about{objects: object("set", r.GetNamespace(), r.GetSet()), detail: fmt.Sprintf("job %s, skip %t", r.GetJob(), r.GetSkip())}
	case *proto.RestartRequest:
		if r.GetMember() != "" {
			return about{objects: object("member", r.GetNamespace(), r.GetMember())}
		}
		return about{objects: object("set", r.GetNamespace(), r.GetSet())}
	case *proto.DeleteRequest:
		return about{objects: object(r.GetKind(), r.GetNamespace(), r.GetName()), detail: r.GetCascade()}
	case *proto.ReclaimVolumeRequest:
		return about{objects: object("volume", r.GetNamespace(), r.GetName()), detail: flag("lost", r.GetLost()), skip: r.GetDryRun()}
	case *proto.RestoreVolumeRequest:
		return about{objects: object("volume", r.GetNamespace(), r.GetName()), detail: r.GetNode()}
	case *proto.MoveRequest:
		return about{objects: object("member", r.GetNamespace(), r.GetMember()), detail: strings.TrimSpace("to " + r.GetNode() + " " + flag("abort", r.GetAbort())), skip: r.GetDryRun() || r.GetLook()}
	case *proto.RebalanceRequest:
		return about{objects: object("sets", r.GetNamespace(), strings.Join(r.GetSets(), ",")), skip: r.GetDryRun()}
	}
	return lookOutside(request)
}

// lookOutside is look for what is about nodes, servers, people and single members.
func lookOutside(request any) about {
	switch r := request.(type) {
	case *proto.EditNodeRequest:
		what := flag(fmt.Sprintf("cordon %t, ", r.GetCordon()), r.Cordon != nil)
		return about{objects: node(r.GetName()), detail: fmt.Sprintf("%s%d labels, %d taints", what, len(r.GetLabels())+len(r.GetDropLabels()), len(r.GetTaints())+len(r.GetDropTaints()))}
	case *proto.DrainNodeRequest:
		return about{objects: node(r.GetName()), detail: strings.TrimSpace(flag("at once ", r.GetAtOnce()) + flag("move", r.GetMove())), skip: r.GetDryRun() || r.GetLook()}
	case *proto.FenceNodeRequest:
		return about{objects: node(r.GetName()), detail: flag("powered off", r.GetPoweredOff())}
	case *proto.RemoveNodeRequest:
		return about{objects: node(r.GetName())}
	case *proto.RestoreRequest:
		return about{detail: "off " + strings.Join(r.GetOff(), ","), skip: r.GetDryRun()}
	case *proto.BackupRequest:
		return about{detail: flag("complete", r.GetComplete())}
	case *proto.LogsRequest:
		return about{objects: object("member", r.GetNamespace(), r.GetMember()), detail: r.GetContainer()}
	case *proto.ExecRequest:
		s := r.GetStart()
		return about{objects: object("member", s.GetNamespace(), s.GetMember()), detail: strings.TrimSpace(s.GetContainer() + " " + strings.Join(s.GetCommand(), " "))}
	case *proto.ForwardRequest:
		s := r.GetStart()
		return about{objects: object("member", s.GetNamespace(), s.GetMember()), detail: fmt.Sprintf("port %d", s.GetPort()), skip: s.GetPort() == 0}
	case *proto.LoadImageRequest:
		return about{objects: node(r.GetNode())}
	case *proto.EnrollRequest:
		return about{objects: node(r.GetNode()), detail: "token " + r.GetToken()}
	case *proto.EnrollServerRequest:
		return about{objects: []string{"server " + r.GetServer()}, detail: "token " + r.GetToken()}
	case *proto.RemoveServerRequest:
		return about{objects: []string{"server " + r.GetName()}}
	case *proto.ReplaceServerRequest:
		return about{objects: []string{"server " + r.GetName()}}
	case *proto.CreateTokenRequest:
		return about{detail: strings.TrimSpace(flag("for node "+r.GetNode(), r.GetNode() != "") + flag("for server "+r.GetServer(), r.GetServer() != ""))}
	case *proto.RotateKeyRequest:
		return about{detail: flag("without "+strings.Join(r.GetWithout(), ","), len(r.GetWithout()) > 0)}
	case *proto.RemoveKeyRequest:
		return about{objects: []string{"key " + r.GetId()}}
	case *proto.RevokeTokenRequest:
		return about{objects: []string{"token " + r.GetId()}}
	case *proto.CreateClientRequest:
		return about{objects: []string{"client " + r.GetName()}}
	case *proto.RevokeRequest:
		if r.GetClient() != "" {
			return about{objects: []string{"client " + r.GetClient()}}
		}
		return about{objects: node(r.GetNode())}
	}
	return about{}
}

// applied are the objects that were written; of an apply that failed, its files.
func applied(r *proto.ApplyRequest, answer any) (a about) {
	a.skip = r.GetDryRun()
	done, _ := answer.(*proto.ApplyResponse)
	if done == nil {
		for _, f := range r.GetFiles() {
			a.objects = append(a.objects, "file "+f.GetName())
		}
		return a
	}
	for _, o := range done.GetApplied() {
		if o.GetOutcome() != "unchanged" {
			a.objects = append(a.objects, object(o.GetKind(), o.GetNamespace(), o.GetName())[0])
		}
	}
	for _, o := range done.GetPruned() {
		a.objects = append(a.objects, "delete "+object(o.GetKind(), o.GetNamespace(), o.GetName())[0])
	}
	a.detail = flag("nothing changed", len(a.objects) == 0)
	return a
}

func object(kind, namespace, name string) []string {
	if namespace != "" {
		name = namespace + "/" + name
	}
	return []string{kind + " " + name}
}

func node(name string) []string { return []string{"node " + name} }

func flag(text string, set bool) string {
	if set {
		return text
	}
	return ""
}
