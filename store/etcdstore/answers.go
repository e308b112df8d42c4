package etcdstore

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
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

// answered has an answer judged by its header. current: the member that answered has
// applied all that was committed before it was asked. The term in a header is that of the
// last entry that the member has applied.
func answered(ctx context.Context, h *etcdserverpb.ResponseHeader, current bool) error {
	return store.Answered(ctx, store.Origin{
		Cluster: strconv.FormatUint(h.GetClusterId(), 16), Member: strconv.FormatUint(h.GetMemberId(), 16),
		Term: h.GetRaftTerm(), Rev: store.Rev(h.GetRevision()), Current: current,
	})
}
