package etcdstore

import (
	"context"
	"strconv"

	"go.etcd.io/etcd/api/v3/etcdserverpb"

	"github.com/stead-project/stead/store"
)

// answered has an answer judged by its header. current: the member that answered has
// applied all that was committed before it was asked. The term in a header is that of the
// last entry that the member has applied.
func answered(ctx context.Context, h *etcdserverpb.ResponseHeader, current bool) error {
	return store.Answered(ctx, store.Origin{
		Cluster: strconv.FormatUint(h.GetClusterId(), 16), Member: strconv.FormatUint(h.GetMemberId(), 16),
		Term: h.GetRaftTerm(), Rev: store.Rev(h.GetRevision()), Current: current,
	})
}
