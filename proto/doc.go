// Package proto holds the gRPC contracts: control.proto for people, agent.proto
// for nodes, types.proto shared. Generated files are committed; make proto makes
// them again. Fields are only added.
package proto

import "fmt"

// The kinds of objects, as requests name them.
const (
	KindSet           = "set"
	KindMember        = "member"
	KindVolume        = "volume"
	KindNode          = "node"
	KindService       = "service"
	KindEndpoints     = "endpoint" // an Endpoints object, stored, or derived for a service
	KindSlice         = "endpointslice"
	KindBudget        = "budget"
	KindNetworkPolicy = "networkpolicy"
	KindQuota         = "quota"
	KindClaim         = "claim"
	KindConfigMap     = "configmap"
	KindSecret        = "secret"
	KindEvent         = "event"
	KindRevision      = "revision"
)

// The values of DeleteRequest.cascade; empty is CascadeBackground.
const (
	CascadeBackground = "background"
	CascadeForeground = "foreground"
	CascadeOrphan     = "orphan"
)

// CheckCascade returns an error unless cascade is one of these values and fits the kind:
// only a set has members that can be orphaned.
func CheckCascade(cascade, kind string) error {
	switch cascade {
	case "", CascadeBackground, CascadeForeground:
		return nil
	case CascadeOrphan:
		if kind == KindSet {
			return nil
		}
		return fmt.Errorf("orphan is for sets; a %s has no members", kind)
	}
	return fmt.Errorf("invalid value %q; use %s, %s or %s", cascade, CascadeBackground, CascadeForeground, CascadeOrphan)
}

// The channels of the frames of a tunnel (types.proto).
const (
	ChannelIn      = 0
	ChannelOut     = 1
	ChannelErr     = 2
	ChannelControl = 3
)

// NamespacesKey is the key of the gRPC metadata in which a server notes, for its own calls, the namespaces to which a caller is
// limited, with commas between; "" or absent: to none. What a client says there is overwritten.
const NamespacesKey = "stead-namespaces"

// RoleKey is that in which it notes the role of a caller with a certificate, likewise.
const RoleKey = "stead-role"

// UserKey is the key of the gRPC metadata in which a client says for whom it calls. It
// is shown to people and decides nothing: whoever may open the socket may do all. Over the
// network the name in the client's certificate takes its place.
const UserKey = "stead-user"
