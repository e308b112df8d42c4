package control

import (
	"context"
	"slices"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/stead-project/stead/proto"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/trust"
)

// within refuses an apply with an object that is not in the namespaces to which its caller is limited. All other calls name one namespace,
// which is looked at before they come here (server/access).
func (d *draft) within(ctx context.Context) error {
	limits := strings.Join(metadata.ValueFromIncomingContext(ctx, proto.NamespacesKey), ",")
	check := func(name, ns string) error {
		if trust.Within(limits, spec.Namespace(ns)) {
			return nil
		}
		return status.Errorf(codes.PermissionDenied, "%s is not in the namespaces in which you may write: %s; nothing was written", name, limits)
	}
	for _, e := range d.edits {
		if e.applied.GetKind() == proto.KindQuota && e.value != nil {
			if err := mayBound(ctx, e.applied.GetNamespace()+"/"+e.applied.GetName()); err != nil {
				return err
			}
		}
		if err := check(e.name(), e.applied.GetNamespace()); err != nil {
			return err
		}
	}
	for _, r := range d.removals {
		if err := check(r.name(), r.applied.GetNamespace()); err != nil {
			return err
		}
	}
	return nil
}

// mayBound refuses an operator what would lift or set the bounds of a namespace: those are an admin's.
func mayBound(ctx context.Context, name string) error {
	if slices.Contains(metadata.ValueFromIncomingContext(ctx, proto.RoleKey), string(trust.RoleOperator)) {
		return status.Errorf(codes.PermissionDenied, "ResourceQuota %s is for admins to write; you are operator; nothing was written", name)
	}
	return nil
}
