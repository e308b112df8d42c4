package etcdembed

import (
	"context"
	"fmt"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// keepSpace frees space whenever etcd refuses writes for want of it, until ctx
// ends. What hinders it is told once, not each time.
func (e *Embedded) keepSpace(ctx context.Context) {
	told := ""
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(e.config.LookAfter):
		}
		if !e.full() {
			told = ""
			continue
		}
		switch err := e.free(ctx); {
		case err == nil:
			e.config.Logger.Info("store was full and takes writes again")
		case ctx.Err() == nil && err.Error() != told:
			told = err.Error()
			e.config.Logger.Error("store is full; reads go on, writes are refused", "err", err)
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

// free forgets all history, and lifts the alarm when what is left is small enough:
// then it gives the file's free pages back first, for the quota counts them. Reads
// and writes wait meanwhile; watches that lag begin anew.
func (e *Embedded) free(ctx context.Context) error {
	backend := e.etcd.Server.Backend()
	if rev := e.etcd.Server.KV().Rev(); rev > 1 {
		// Compacted up to there already: an error that says nothing new.
		_, _ = e.client.Compact(ctx, rev, clientv3.WithCompactPhysical())
	}
	backend.ForceCommit()
	if live, most := backend.SizeInUse(), e.config.QuotaBytes/10*9; live > most {
		return fmt.Errorf("live data takes %d of %d bytes: delete large ConfigMaps and Secrets that are not needed, "+
			"or start the server with a larger --store-quota-bytes; the rest is done by itself", live, e.config.QuotaBytes)
	}
	if err := backend.Defrag(); err != nil {
		return fmt.Errorf("defragment: %w", err)
	}
	if _, err := e.client.AlarmDisarm(ctx, &clientv3.AlarmMember{}); err != nil {
		return fmt.Errorf("lift the alarm: %w", err)
	}
	return nil
}
