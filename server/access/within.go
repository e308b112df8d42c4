package access

import (
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/stead-project/stead/proto"
	"github.com/stead-project/stead/spec"
)

// placed is a request for something in one namespace.
type placed interface{ GetNamespace() string }

// checkWithin refuses a message of an operator or a viewer that is about a Secret that it may not see, or about anything beyond its
// namespaces. What is not known here is refused to whoever is limited. Objects of an apply may name namespaces
// themselves: those are checked by control.
func checkWithin(c caller, msg any) error {
	if k, ok := msg.(interface{ GetKind() string }); ok && k.GetKind() == proto.KindSecret && c.role == roleViewer {
		return status.Error(codes.PermissionDenied, "viewers do not see Secrets")
	}
	if c.subject.Namespaces == "" {
		return nil
	}
	switch m := msg.(type) {
	case *proto.InfoRequest, *proto.ListServersRequest, *proto.QuorumRequest, *proto.ApplyRequest:
		return nil
	case *proto.ExecRequest:
		if m.GetStart() == nil { // a later message of one that was let through
			return nil
		}
		return checkPlace(c, m.GetStart())
	case *proto.ForwardRequest:
		if m.GetStart() == nil {
			return nil
		}
		return checkPlace(c, m.GetStart())
	case *proto.GetRequest:
		if m.GetKind() == proto.KindNode {
			return nil
		}
	case *proto.ListRequest:
		if m.GetKind() == proto.KindNode {
			return nil
		}
		if m.GetAllNamespaces() {
			return beyond(c, "all namespaces")
		}
	case *proto.RebalanceRequest:
		if m.GetAllNamespaces() {
			return beyond(c, "all namespaces")
		}
	}
	if p, ok := msg.(placed); ok {
		return checkPlace(c, p)
	}
	return beyond(c, "the whole cluster")
}

func checkPlace(c caller, m placed) error {
	ns := spec.Namespace(m.GetNamespace())
	if ns == "" {
		ns = spec.DefaultNamespace
	}
	if c.subject.In(ns) {
		return nil
	}
	return beyond(c, "namespace "+short(string(ns)))
}

func beyond(c caller, what string) error {
	return status.Errorf(codes.PermissionDenied, "this is about %s; you are %s in %s: name one of these with -n", what, c.subject.Role, c.subject.Namespaces)
}
