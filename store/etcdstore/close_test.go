package etcdstore_test

import (
	"sync"
	"testing"

	"github.com/stead-project/stead/store"
	"github.com/stead-project/stead/store/etcdembed"
	"github.com/stead-project/stead/store/etcdstore"
)

// An embedded etcd is called directly: a call that is still under way when etcd stops would read a
// data file that is closed, and end the process.
func TestCloseWaitsForCallsUnderWay(t *testing.T) {
	for range 5 {
		e, err := etcdembed.Start(t.Context(), etcdembed.Config{Dir: t.TempDir(), NoFsync: true})
		if err != nil {
			t.Fatal(err)
		}
		s, err := etcdstore.New(etcdstore.Config{Client: e.Client()})
		if err != nil {
			t.Fatal(err)
		}
		var group sync.WaitGroup
		called := make(chan struct{}, 12)
		for _, call := range []func() error{
			func() error { _, err := s.Status(t.Context()); return err },
			func() error { _, _, err := s.Get(t.Context(), "k"); return err },
			func() error { _, _, err := s.Snapshot(t.Context(), ""); return err },
			func() error {
				_, err := s.Commit(t.Context(), store.Txn{Then: []store.Op{store.Put("k", nil)}})
				return err
			},
		} {
			for range 3 {
				group.Go(func() {
					for first := true; call() == nil; first = false {
						if first {
							called <- struct{}{}
						}
					}
				})
			}
		}
		for range 12 {
			<-called
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		if err := e.Close(); err != nil {
			t.Error(err)
		}
		group.Wait()
	}
}
