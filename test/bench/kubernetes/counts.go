package main

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// hops is how many floor hops are timed beside each phase.
const hops = 50

// hopKey is outside of what the API server keeps.
const hopKey = "/bench/hop"

// counts are what the control plane has used.
type counts struct {
	cpu       time.Duration // user and system
	resident  uint64        // bytes at this moment
	revisions int64
	logged    float64 // bytes of etcd's log
	received  int64   // bytes that nodes were sent
}

// now is what was used so far.
func (c *cluster) now(ctx context.Context) (u counts, err error) {
	if err := c.gone(); err != nil {
		return u, err
	}
	for _, p := range c.processes {
		cpu, resident, err := usage(p.cmd.Process.Pid)
		if err != nil {
			return u, err
		}
		u.cpu += cpu
		u.resident += resident
	}
	u.received = c.received.Load()
	got, err := c.etcd.Get(ctx, hopKey)
	if err != nil {
		return u, err
	}
	u.revisions = got.Header.Revision
	u.logged, err = c.metric(ctx, "etcd_disk_wal_write_bytes_total")
	return u, err
}

// usage is the processor time and the resident memory of a process.
func usage(pid int) (cpu time.Duration, resident uint64, err error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, 0, err
	}
	statm, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	if err != nil {
		return 0, 0, err
	}
	// The name of the program may have blanks; after it come fields from the third on.
	fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
	for _, i := range []int{11, 12} { // utime, stime
		ticks, err := strconv.ParseInt(fields[i], 10, 64)
		if err != nil {
			return 0, 0, err
		}
		cpu += time.Duration(ticks) * time.Second / 100 // USER_HZ
	}
	pages, err := strconv.ParseUint(strings.Fields(string(statm))[1], 10, 64)
	return cpu, pages * uint64(os.Getpagesize()), err
}

// metric is a metric of etcd's.
func (c *cluster) metric(ctx context.Context, name string) (float64, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, c.metrics, nil)
	if err != nil {
		return 0, err
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, err
	}
	defer answer.Body.Close()
	for lines := bufio.NewScanner(answer.Body); lines.Scan(); {
		if value, ok := strings.CutPrefix(lines.Text(), name+" "); ok {
			return strconv.ParseFloat(value, 64)
		}
	}
	return 0, fmt.Errorf("etcd has no metric %s", name)
}

// hop is the time of a write of 300 bytes, synced and seen in a watch: the mean of many in a row.
func (c *cluster) hop(ctx context.Context) (time.Duration, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	w := c.etcd.Watch(clientv3.WithRequireLeader(ctx), hopKey, clientv3.WithCreatedNotify())
	<-w
	began := time.Now()
	for range hops {
		put, err := c.etcd.Put(ctx, hopKey, string(make([]byte, 300)))
		if err != nil {
			return 0, err
		}
		for seen := int64(0); seen < put.Header.Revision; {
			batch, ok := <-w
			if !ok || batch.Err() != nil {
				return 0, fmt.Errorf("the watch ended: %w", batch.Err())
			}
			seen = batch.Header.Revision
		}
	}
	return time.Since(began) / hops, nil
}
