package bench

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/stead-project/stead/store"
)

// counts is what one process has used since it began.
type counts struct {
	CPU      time.Duration // user and system
	Allocs   uint64        // objects on the heap
	Calls    uint64        // system calls that read or write: files, pipes and sockets
	Written  uint64        // bytes that such calls wrote
	Resident uint64        // bytes at this moment
	Received int64         // bytes that nodes of this process were sent
	Err      string        // why a node's last session ended
}

// minus is what was used between before and c; Resident and Err are those of c.
func (c counts) minus(before counts) counts {
	c.CPU -= before.CPU
	c.Allocs -= before.Allocs
	c.Calls -= before.Calls
	c.Written -= before.Written
	c.Received -= before.Received
	return c
}

func (c counts) plus(d counts) counts {
	c.CPU += d.CPU
	c.Allocs += d.Allocs
	c.Calls += d.Calls
	c.Written += d.Written
	c.Resident += d.Resident
	c.Received += d.Received
	if d.Err != "" {
		c.Err = d.Err
	}
	return c
}

// ownCounts are those of this process.
func ownCounts() (c counts, err error) {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return c, err
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	c.CPU, c.Allocs = time.Duration(u.Utime.Nano()+u.Stime.Nano()), m.Mallocs
	text, err := os.ReadFile("/proc/self/io")
	if err != nil {
		return c, err
	}
	for line := range bytes.Lines(text) {
		var key string
		var n uint64
		if _, err := fmt.Sscan(string(line), &key, &n); err != nil {
			return c, err
		}
		switch key {
		case "syscr:", "syscw:":
			c.Calls += n
		case "wchar:":
			c.Written = n
		}
	}
	text, err = os.ReadFile("/proc/self/statm")
	if err != nil {
		return c, err
	}
	pages, err := strconv.ParseUint(string(bytes.Fields(text)[1]), 10, 64)
	c.Resident = pages * uint64(os.Getpagesize())
	return c, err
}

// countedStore counts the bytes of what is written.
type countedStore struct {
	store.Store
	written atomic.Int64 // keys and values
}

// Commit implements store.Store.
func (s *countedStore) Commit(ctx context.Context, t store.Txn) (store.Rev, error) {
	rev, err := s.Store.Commit(ctx, t)
	if err == nil {
		for _, op := range t.Then {
			s.written.Add(int64(len(op.Key) + len(op.Value)))
		}
	}
	return rev, err
}

// storeLog is how often the embedded etcd has synced its log, and the bytes that it wrote to it.
func storeLog(b *testing.B) (fsyncs uint64, bytes float64) {
	b.Helper()
	families, err := prometheus.DefaultGatherer.Gather()
	must(b, err)
	for _, f := range families {
		for _, m := range f.GetMetric() {
			switch f.GetName() {
			case "etcd_disk_wal_fsync_duration_seconds":
				fsyncs += m.GetHistogram().GetSampleCount()
			case "etcd_disk_wal_write_bytes_total":
				bytes += m.GetGauge().GetValue()
			}
		}
	}
	return fsyncs, bytes
}

// used is what server and nodes have used since they began, or between two moments.
type used struct {
	server, nodes counts
	revisions     store.Rev
	written       int64   // bytes of keys and values
	fsyncs        uint64  // of the store's log
	logged        float64 // bytes of it
}

func (u used) minus(before used) used {
	return used{
		u.server.minus(before.server), u.nodes.minus(before.nodes),
		u.revisions - before.revisions, u.written - before.written, u.fsyncs - before.fsyncs, u.logged - before.logged,
	}
}

// spent is what a phase took.
type spent struct {
	members   int
	took, hop time.Duration // hop: a synced write of the same store, seen in a watch, before and after; 0: not timed
	used
}

// counted are the figures that no clock has a part in, a member.
func (s spent) counted() map[string]float64 {
	n := float64(s.members)
	return map[string]float64{
		"revisions/member":    float64(s.revisions) / n,
		"stored-bytes/member": float64(s.written) / n,
		"fsyncs/member":       float64(s.fsyncs) / n,
		"logged-bytes/member": s.logged / n,
		"sent-bytes/member":   float64(s.nodes.Received) / n,
		"allocs/member":       float64(s.server.Allocs) / n,
		"calls/member":        float64(s.server.Calls) / n,
		"node-allocs/member":  float64(s.nodes.Allocs) / n,
		"node-calls/member":   float64(s.nodes.Calls) / n,
		"node-bytes/member":   float64(s.nodes.Written) / n,
	}
}

// report makes s the figures of b.
func (s spent) report(b *testing.B) {
	for b.Loop() { // once is enough; this forgets what was reported before
	}
	n := float64(s.members)
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(s.took.Seconds()*1000/n, "ms/member")
	if s.hop > 0 {
		b.ReportMetric(float64(s.took)/float64(s.hop)/n, "hops/member")
		b.ReportMetric(float64(s.hop.Nanoseconds())/1000, "µs/hop")
	}
	b.ReportMetric(s.server.CPU.Seconds()*1000/n, "cpu-ms/member")
	b.ReportMetric(s.nodes.CPU.Seconds()*1000/n, "node-cpu-ms/member")
	b.ReportMetric(float64(s.server.Resident)/(1<<20), "server-MiB")
	for unit, figure := range s.counted() {
		b.ReportMetric(figure, unit)
	}
}
