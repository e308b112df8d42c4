package engine

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/stead-project/stead/server/proof"
	"github.com/stead-project/stead/store"
)

// Init gives a fresh store its cluster id and epoch, once, and returns those the
// store has. Several servers may call it at once; all get the same. It fails on a
// store that has one without the other: that is none of ours, or damaged.
func Init(ctx context.Context, s store.Store) (clusterID string, epoch int64, err error) {
	for {
		_, kvs, err := s.Get(ctx, store.ClusterKey, store.EpochKey)
		if err != nil {
			return "", 0, fmt.Errorf("read cluster id: %w", err)
		}
		cluster, hasCluster := kvs[store.ClusterKey]
		at, hasEpoch := kvs[store.EpochKey]
		switch {
		case hasCluster && hasEpoch:
			epoch, err := strconv.ParseInt(string(at.Value), 10, 64)
			if err != nil || epoch < proof.FirstEpoch {
				return "", 0, fmt.Errorf("read epoch: invalid epoch %q", at.Value)
			}
			return string(cluster.Value), epoch, nil
		case hasCluster || hasEpoch:
			return "", 0, errors.New("the store has a cluster id without an epoch, or the reverse; restore it from a backup, or use an empty one")
		}
		_, err = s.Commit(ctx, store.Txn{
			If: []store.Compare{store.Absent(store.ClusterKey), store.Absent(store.EpochKey)},
			Then: []store.Op{
				store.Put(store.ClusterKey, []byte(randomID())),
				store.Put(store.EpochKey, []byte(strconv.Itoa(proof.FirstEpoch))),
			},
		})
		if err != nil && !errors.Is(err, store.ErrConflict) && !errors.Is(err, store.ErrUnknown) {
			return "", 0, fmt.Errorf("write cluster id: %w", err)
		}
	}
}
