package etcdembed

import (
	"context"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/etcdserver"
)

// maintenance is that of the in-process client, whose own Defragment panics: it wants
// to tell a gRPC server about it, and there is none (v3client hands in no notifier).
type maintenance struct {
	clientv3.Maintenance
	server *etcdserver.EtcdServer
}

// Defragment implements clientv3.Maintenance. It cannot be ended before it is done;
// reads and writes wait meanwhile.
func (m maintenance) Defragment(context.Context, string) (*clientv3.DefragmentResponse, error) {
	if err := m.server.Backend().Defrag(); err != nil {
		return nil, err
	}
	return &clientv3.DefragmentResponse{}, nil
}
