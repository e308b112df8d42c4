package etcdembed

import (
	"context"
	"fmt"
	"strconv"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/stead-project/stead/records/stores"
	"github.com/stead-project/stead/store"
)

// turnTime is how long the turn of a member is in which it may defragment, in Config.LookAfter: half a minute.
const turnTime = 6

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
		switch freed, err := e.free(ctx); {
		case err == nil:
			told = false
			if full && freed {
				e.config.Logger.Info("store was full and takes writes again")
			}
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
// counts them. Reads and writes of this member wait meanwhile; watches that lag start again. It
// reports whether it came to that: members do it one after the other.
func (e *Embedded) free(ctx context.Context) (freed bool, err error) {
	backend := e.etcd.Server.Backend()
	if rev := e.etcd.Server.KV().Rev(); rev > 1 {
		// Compacted up to there already: an error that says nothing new.
		_, _ = e.client.Compact(ctx, rev, clientv3.WithCompactPhysical())
	}
	backend.ForceCommit()
	live := backend.SizeInUse()
	if e.tightWith(live, live) {
		return false, fmt.Errorf("live data takes %d of %d bytes: delete large ConfigMaps and Secrets that are not needed, "+
			"or start the server with a larger --store-quota-bytes; the rest is done by itself", live, e.config.QuotaBytes)
	}
	if !e.tight() && !e.full() {
		return true, nil // what was freed is used again, without giving it back
	}
	if !turn(e.Known(), e.Self(), time.Now(), turnTime*e.config.LookAfter) {
		return false, nil
	}
	e.yield(ctx)
	if err := backend.Defrag(); err != nil {
		return false, fmt.Errorf("defragment: %w", err)
	}
	if _, err := e.client.AlarmDisarm(ctx, &clientv3.AlarmMember{}); err != nil {
		return false, fmt.Errorf("lift the alarm: %w", err)
	}
	return true, nil
}

// turn reports whether it is the turn of the member self at now: each has the same time, in the order of their ids. Should
// clocks differ, two have theirs at once, and the store takes no writes for as long as both defragment.
func turn(members []stores.StoreMember, self string, now time.Time, each time.Duration) bool {
	before := 0
	for _, m := range members {
		if m.ID < self {
			before++
		}
	}
	return len(members) < 2 || now.UnixNano()/int64(each)%int64(len(members)) == int64(before)
}

// yield has another voter lead, if this member leads: it will answer nobody for a while.
func (e *Embedded) yield(ctx context.Context) {
	for _, m := range e.Known() {
		if e.Leader() != e.Self() {
			return
		}
		if next, err := strconv.ParseUint(m.ID, 16, 64); err == nil && !m.Learner && m.ID != e.Self() {
			moving, cancel := context.WithTimeout(ctx, e.etcd.Server.Cfg.ReqTimeout())
			_ = e.etcd.Server.MoveLeader(moving, uint64(e.etcd.Server.MemberID()), next) // or the next one, or it leads on
			cancel()
		}
	}
}
