package server

import (
	"context"
	"crypto/x509"
	"errors"
	"net"
	"time"

	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/peer"

	"github.com/stead-project/stead/proto"
	"github.com/stead-project/stead/trust"
)

// role is what a caller is to the API.
type role uint8

const (
	stranger role = 1 << iota // without a certificate, over the network
	aNode                     // with a node's certificate
	anAdmin                   // with a client's
	aServer                   // with a server's
	root                      // over the socket
)

// caller is who makes a call.
type caller struct {
	role    role
	subject trust.Subject // of aNode, anAdmin and aServer
	host    string        // where a call over the network comes from
	until   time.Time     // the certificate's end
}

// String names the caller for the log.
func (c caller) String() string {
	switch c.role {
	case root:
		return "root"
	case stranger:
		return "somebody without a certificate at " + c.host
	}
	return c.subject.String() + " at " + c.host
}

// allowed is the whole of who may call what. What is not in it, nobody may.
var allowed = map[string]role{
	proto.Join_Enroll_FullMethodName:   stranger | aNode | anAdmin | root,
	proto.Join_Renew_FullMethodName:    aNode,
	proto.Nodes_Join_FullMethodName:    aNode | root, // and own
	proto.Nodes_Session_FullMethodName: aNode | root, // and own
	proto.Nodes_Tunnel_FullMethodName:  aNode | root, // and own

	proto.Peers_Relay_FullMethodName: aServer,

	proto.Trust_CreateToken_FullMethodName:  anAdmin | root,
	proto.Trust_ListTokens_FullMethodName:   anAdmin | root,
	proto.Trust_RevokeToken_FullMethodName:  anAdmin | root,
	proto.Trust_Revoke_FullMethodName:       anAdmin | root,
	proto.Trust_CreateClient_FullMethodName: root,

	proto.Control_Info_FullMethodName:          anAdmin | root,
	proto.Control_Apply_FullMethodName:         anAdmin | root,
	proto.Control_Get_FullMethodName:           anAdmin | root,
	proto.Control_List_FullMethodName:          anAdmin | root,
	proto.Control_Watch_FullMethodName:         anAdmin | root,
	proto.Control_Scale_FullMethodName:         anAdmin | root,
	proto.Control_Undo_FullMethodName:          anAdmin | root,
	proto.Control_Pause_FullMethodName:         anAdmin | root,
	proto.Control_Restart_FullMethodName:       anAdmin | root,
	proto.Control_EditNode_FullMethodName:      anAdmin | root,
	proto.Control_FenceNode_FullMethodName:     anAdmin | root,
	proto.Control_RemoveNode_FullMethodName:    anAdmin | root,
	proto.Control_Restore_FullMethodName:       anAdmin | root,
	proto.Control_Backup_FullMethodName:        anAdmin | root,
	proto.Control_Delete_FullMethodName:        anAdmin | root,
	proto.Control_ReclaimVolume_FullMethodName: anAdmin | root,
	proto.Control_RestoreVolume_FullMethodName: anAdmin | root,
	proto.Control_Explain_FullMethodName:       anAdmin | root,
	proto.Control_Logs_FullMethodName:          anAdmin | root,
	proto.Control_Exec_FullMethodName:          anAdmin | root,
	proto.Control_LoadImage_FullMethodName:     anAdmin | root,
	proto.Control_Images_FullMethodName:        anAdmin | root,
}

// callerOf is who calls, by the connection alone.
func callerOf(ctx context.Context) (caller, error) {
	p, ok := peer.FromContext(ctx)
	if !ok {
		return caller{}, errors.New("the call has no connection")
	}
	if p.LocalAddr != nil && p.LocalAddr.Network() == "unix" {
		return caller{role: root}, nil
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
		return caller{role: stranger, host: host}, nil
	}
	return callerWith(info.State.VerifiedChains[0][0], host)
}

func callerWith(leaf *x509.Certificate, host string) (caller, error) {
	s, err := trust.SubjectOf(leaf)
	if err != nil {
		return caller{}, err
	}
	c := caller{subject: s, host: host, until: leaf.NotAfter}
	switch s.Role {
	case trust.RoleNode:
		c.role = aNode
	case trust.RoleAdmin:
		c.role = anAdmin
	case trust.RoleServer:
		c.role = aServer
	default:
		return caller{}, errors.New("the certificate is not for calling")
	}
	return c, nil
}

type callerKey struct{}
