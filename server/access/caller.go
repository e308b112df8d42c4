package access

import (
	"context"
	"crypto/x509"
	"errors"
	"net"
	"time"

	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/peer"

	"github.com/stead-project/stead/proto"
	"github.com/stead-project/stead/records/sealing"
	"github.com/stead-project/stead/trust"
)

// role is what a caller is to the API.
type role uint8

const (
	roleAnonymous role = 1 << iota // without a certificate, over the network
	roleNode                       // with a node's certificate
	roleAdmin                      // with a client's
	roleServer                     // with a server's
	roleRoot                       // over the socket
	roleOperator                   // with the certificate of one
	roleViewer                     // with that of one

	// roleCertified have a certificate, which ends and may be revoked.
	roleCertified = roleNode | roleAdmin | roleServer | roleOperator | roleViewer
	// Who may do all, what is in a namespace, and see that.
	admins    = roleAdmin | roleRoot
	operators = admins | roleOperator
	viewers   = operators | roleViewer
)

// caller is who makes a call.
type caller struct {
	role    role
	subject trust.Subject // of roleCertified
	host    string        // where a call over the network comes from
	until   time.Time     // the certificate's end
	by      sealing.AuthorityID
}

// String names the caller for the log.
func (c caller) String() string {
	switch c.role {
	case roleRoot:
		return "root"
	case roleAnonymous:
		return "somebody without a certificate at " + c.host
	}
	return c.subject.String() + " at " + c.host
}

// allowed is the whole of who may call what. A method that is not in it is refused to all.
var allowed = map[string]role{
	proto.Join_Enroll_FullMethodName:   roleAnonymous | roleNode | admins,
	proto.Join_Renew_FullMethodName:    roleNode,
	proto.Nodes_Join_FullMethodName:    roleNode | roleRoot, // and checkOwn
	proto.Nodes_Session_FullMethodName: roleNode | roleRoot, // and checkOwn
	proto.Nodes_Tunnel_FullMethodName:  roleNode | roleRoot, // and checkOwn

	proto.Join_EnrollServer_FullMethodName: roleAnonymous | roleNode | admins,
	proto.Servers_Add_FullMethodName:       roleServer,
	proto.Servers_List_FullMethodName:      viewers,
	proto.Servers_Quorum_FullMethodName:    viewers,
	proto.Servers_Health_FullMethodName:    admins | roleServer,
	proto.Servers_Seen_FullMethodName:      roleServer,
	proto.Servers_Remove_FullMethodName:    admins | roleServer,
	proto.Servers_Replace_FullMethodName:   roleRoot,

	proto.Peers_Relay_FullMethodName: roleServer,

	proto.Keyring_List_FullMethodName:   admins,
	proto.Keyring_Rotate_FullMethodName: admins,
	proto.Keyring_Remove_FullMethodName: admins,

	proto.Authority_List_FullMethodName:   admins,
	proto.Authority_Rotate_FullMethodName: admins,
	proto.Authority_Retire_FullMethodName: admins,

	proto.Audit_Read_FullMethodName: admins | roleServer,

	proto.Trust_CreateToken_FullMethodName:  admins,
	proto.Trust_ListTokens_FullMethodName:   admins,
	proto.Trust_RevokeToken_FullMethodName:  admins,
	proto.Trust_Revoke_FullMethodName:       admins,
	proto.Trust_ListClients_FullMethodName:  admins,
	proto.Trust_CreateClient_FullMethodName: roleRoot,

	proto.Control_Info_FullMethodName:          viewers,
	proto.Control_Apply_FullMethodName:         operators,
	proto.Control_Get_FullMethodName:           viewers,
	proto.Control_List_FullMethodName:          viewers,
	proto.Control_Watch_FullMethodName:         viewers,
	proto.Control_Scale_FullMethodName:         operators,
	proto.Control_Undo_FullMethodName:          operators,
	proto.Control_Pause_FullMethodName:         operators,
	proto.Control_DecideJob_FullMethodName:     operators,
	proto.Control_Restart_FullMethodName:       operators,
	proto.Control_EditNode_FullMethodName:      admins,
	proto.Control_DrainNode_FullMethodName:     admins,
	proto.Control_Move_FullMethodName:          operators,
	proto.Control_Rebalance_FullMethodName:     operators,
	proto.Control_FenceNode_FullMethodName:     admins,
	proto.Control_RemoveNode_FullMethodName:    admins,
	proto.Control_Restore_FullMethodName:       admins,
	proto.Control_Backup_FullMethodName:        admins,
	proto.Control_End_FullMethodName:           admins,
	proto.Control_Delete_FullMethodName:        operators,
	proto.Control_ReclaimVolume_FullMethodName: operators,
	proto.Control_RestoreVolume_FullMethodName: operators,
	proto.Control_Explain_FullMethodName:       viewers,
	proto.Control_Logs_FullMethodName:          viewers,
	proto.Control_Exec_FullMethodName:          operators,
	proto.Control_Forward_FullMethodName:       operators,
	proto.Control_Usage_FullMethodName:         viewers,
	proto.Control_LoadImage_FullMethodName:     admins,
	proto.Control_Images_FullMethodName:        viewers,
}

// callerOf is who calls, by the connection alone.
func callerOf(ctx context.Context) (caller, error) {
	p, ok := peer.FromContext(ctx)
	if !ok {
		return caller{}, errors.New("the call has no connection")
	}
	if p.LocalAddr != nil && p.LocalAddr.Network() == "unix" {
		return caller{role: roleRoot}, nil
	}
	info, ok := p.AuthInfo.(credentials.TLSInfo)
	if !ok {
		return caller{}, errors.New("the connection is not secure")
	}
	host, _, err := net.SplitHostPort(p.Addr.String())
	if err != nil {
		host = p.Addr.String()
	}
	if len(info.State.VerifiedChains) == 0 {
		return caller{role: roleAnonymous, host: host}, nil
	}
	c, err := callerWith(info.State.VerifiedChains[0][0], host)
	if chain := directChain(info.State.VerifiedChains); chain != nil {
		c.by = idOf(chain[1])
	}
	return c, err
}

func callerWith(leaf *x509.Certificate, host string) (caller, error) {
	s, err := trust.SubjectOf(leaf)
	if err != nil {
		return caller{}, err
	}
	c := caller{subject: s, host: host, until: leaf.NotAfter}
	switch s.Role {
	case trust.RoleNode:
		c.role = roleNode
	case trust.RoleAdmin:
		c.role = roleAdmin
	case trust.RoleOperator:
		c.role = roleOperator
	case trust.RoleViewer:
		c.role = roleViewer
	case trust.RoleServer:
		c.role = roleServer
	default:
		return caller{}, errors.New("the certificate is not for calling")
	}
	return c, nil
}

type callerKey struct{}
