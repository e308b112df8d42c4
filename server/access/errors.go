package access

import (
	"context"
	"errors"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/stead-project/stead/store"
)

// fullHint says to a person what a full store means and what to do.
const fullHint = "; nothing was written, and what runs is not affected: delete ConfigMaps and Secrets that are not needed, " +
	"or start the server with a larger --store-quota-bytes (of an external etcd: compact, defragment and disarm it)"

// toStatus gives an error its gRPC code; one that has a code keeps it. The client's
// side reads codes only.
func toStatus(err error) error {
	if err == nil {
		return nil
	}
	if _, ok := status.FromError(err); ok {
		return err
	}
	if errors.Is(err, store.ErrNoSpace) {
		return status.Error(codes.ResourceExhausted, err.Error()+fullHint)
	}
	for _, k := range []struct {
		kind error
		code codes.Code
	}{
		{ErrToken, codes.PermissionDenied},
		{ErrRevoked, codes.PermissionDenied},
		{ErrJoined, codes.PermissionDenied},
		{ErrForgotten, codes.PermissionDenied},
		{ErrTaken, codes.AlreadyExists},
		{ErrMachine, codes.AlreadyExists},
		{ErrRequest, codes.InvalidArgument},
		{store.ErrConflict, codes.Aborted},
		{store.ErrUnknown, codes.Unavailable},
		{store.ErrUnavailable, codes.Unavailable},
		{store.ErrLeaseGone, codes.Aborted},
		{store.ErrCompacted, codes.Unavailable},
		{store.ErrTooLarge, codes.InvalidArgument},
		{context.DeadlineExceeded, codes.DeadlineExceeded},
		{context.Canceled, codes.Canceled},
	} {
		if errors.Is(err, k.kind) {
			return status.Error(k.code, err.Error())
		}
	}
	return status.Error(codes.Internal, err.Error())
}
