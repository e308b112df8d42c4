package etcdembed

import (
	"context"
	"fmt"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/stead-project/stead/store"
)

// keepSpace frees space whenever etcd refuses writes for want of it, or store.Reserve
// does, until ctx ends. What hinders it is told once, not each time.
func (e *Embedded) keepSpace(ctx context.Context) {
	told := false
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(e.config.LookAfter):
		}
		full := e.full()
		if !full && !e.tight() {
			told = false
			continue
		}
		switch err := e.free(ctx); {
		case err == nil && !full:
			told = false
		case err == nil:
			told = false
			e.config.Logger.Info("store was full and takes writes again")
		case ctx.Err() == nil && !told:
			told = true
			e.config.Logger.Error("store is full; only sessions and reports are still written", "err", err)
		}
	}
}

// full reports whether the alarm is raised that refuses writes.
func (e *Embedded) full() bool {
	for _, a := range e.etcd.Server.Alarms() {
		if a.Alarm == pb.AlarmType_NOSPACE {
			return true
		}
	}
	return false
}

// tight reports whether store.Reserve would refuse one of the largest transactions.
func (e *Embedded) tight() bool {
	backend := e.etcd.Server.Backend()
	return e.tightWith(backend.Size(), backend.SizeInUse())
}

func (e *Embedded) tightWith(size, used int64) bool {
	return store.Status{SizeBytes: size, UsedBytes: used, QuotaBytes: e.config.QuotaBytes}.Tight(store.MaxBytes)
}

// free forgets all history, and lifts the alarm when what is left is small enough:
// then it gives the file's free pages back first if the file is too large, for the quota
// counts them. Reads and writes wait meanwhile; watches that lag start again.
func (e *Embedded) free(ctx context.Context) error {
	backend := e.etcd.Server.Backend()
	if rev := e.etcd.Server.KV().Rev(); rev > 1 {
		// Compacted up to there already: an error that says nothing new.
		_, _ = e.client.Compact(ctx, rev, clientv3.WithCompactPhysical())
	}
	backend.ForceCommit()
	live := backend.SizeInUse()
	if e.tightWith(live, live) {
		return fmt.Errorf("live data takes %d of %d bytes: delete large ConfigMaps and Secrets that are not needed, "+
			"or start the server with a larger --store-quota-bytes; the rest is done by itself", live, e.config.QuotaBytes)
	}
	if !e.tight() && !e.full() {
		return nil // what was freed is used again, without giving it back
	}
	if err := backend.Defrag(); err != nil {
		return fmt.Errorf("defragment: %w", err)
	}
	if _, err := e.client.AlarmDisarm(ctx, &clientv3.AlarmMember{}); err != nil {
		return fmt.Errorf("lift the alarm: %w", err)
	}
	return nil
}
