package etcdstore

import (
	"errors"
	"fmt"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"

	"github.com/stead-project/stead/store"
)

// refusals are the answers of etcd that prove that nothing was written, with the
// contract's kind.
var refusals = []struct {
	etcd error
	kind error
}{
	{rpctypes.ErrNoSpace, store.ErrNoSpace},
	{rpctypes.ErrLeaseNotFound, store.ErrLeaseGone},
	{rpctypes.ErrTooManyOps, store.ErrTooLarge},
	{rpctypes.ErrRequestTooLarge, store.ErrTooLarge},
	{rpctypes.ErrCompacted, store.ErrCompacted},
	{rpctypes.ErrTooManyRequests, store.ErrUnavailable}, // refused before the proposal
	{rpctypes.ErrPermissionDenied, store.ErrUnavailable},
	{rpctypes.ErrAuthFailed, store.ErrUnavailable},
	{rpctypes.ErrInvalidAuthToken, store.ErrUnavailable},
}

// writeError translates the error of a write. Whatever is not known as a refusal
// (time-out, lost connection, lost leader, stopped server) leaves it unknown
// whether the write was done.
func writeError(err error) error { return translate(err, store.ErrUnknown) }

// readError translates the error of anything else; what is not known otherwise
// means that there is no answer now.
func readError(err error) error { return translate(err, store.ErrUnavailable) }

func translate(err, otherwise error) error {
	for _, r := range refusals {
		if errors.Is(err, r.etcd) {
			return fmt.Errorf("%w: %w", r.kind, err)
		}
	}
	return fmt.Errorf("%w: %w", otherwise, err)
}
