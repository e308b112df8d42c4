package examples

import (
	"strings"
	"testing"

	"github.com/stead-project/stead/records"
)

// The sentinel of a member names whom names/HOST says, until one is asked for a failover: then all name next.
const fakeRedisCLI = `#!/bin/bash
case "$*" in
*get-master-addr-by-name*) cat "$FAKE/names/$2" && echo 6379 ;;
*failover*) echo "failover $2" >> "$FAKE/calls"; for f in "$FAKE"/names/*; do cp "$FAKE/next" "$f"; done; echo OK ;;
*) exit 64 ;;
esac
`

const fakeRedisServer = `#!/bin/bash
cp "$1" "$FAKE/ran.new" && mv "$FAKE/ran.new" "$FAKE/ran"
`

func newRedis(t *testing.T, ordinal int, used ...int) *home {
	t.Helper()
	h := newHome(t, "redis", ordinal)
	h.put("bin/redis-cli", fakeRedisCLI)
	h.put("bin/redis-server", fakeRedisServer)
	h.put("redis.conf", "appendonly yes\n")
	h.put("next", "redis-2.redis.d\n")
	h.put("names/.keep", "")
	h.env = append(h.env, "CONF="+h.dir+"/redis.conf")
	p := records.Snapshot{Replicas: 3, InitialOrdinals: []int{0, 1, 2}, Bootstrapped: len(used) > 0, Peers: []records.Peer{h.peer(0), h.peer(1), h.peer(2)}}
	for _, o := range used {
		p.Peers[o].Volumes = records.VolumesUsed
	}
	h.set(p)
	return h
}

// leads runs the script until Redis runs, and says whom it follows; "": it leads.
func (h *home) leads() string {
	h.t.Helper()
	h.start("redis")
	until(h.t, "Redis runs, not "+h.read("log"), func() bool { return h.has("ran") })
	_, rest, _ := strings.Cut(h.read("ran"), "replicaof ")
	leader, _, _ := strings.Cut(rest, " ")
	return leader
}

func TestTheFirstMemberOfRedisLeadsOnlyWhenNobodyHasData(t *testing.T) {
	t.Parallel()
	for ordinal, want := range map[int]string{0: "", 1: "redis-0.redis.d"} {
		h := newRedis(t, ordinal)
		h.put("facts/volume-new", "data first\n")
		if got := h.leads(); got != want {
			t.Errorf("redis-%d follows %q, want %q", ordinal, got, want)
		}
	}
}

func TestWhoLeadsRedisIsSaidByMostSentinels(t *testing.T) {
	t.Parallel()
	h := newRedis(t, 0, 0, 1, 2)
	h.put("disk/redis/member", "")
	h.put("names/redis-0.redis.d", "redis-0.redis.d\n") // one that was cut off names itself
	_, wait := h.start("redis")
	h.put("names/redis-1.redis.d", "redis-1.redis.d\n")
	h.put("names/redis-2.redis.d", "redis-1.redis.d\n")
	wait()
	if got := h.read("ran"); !strings.Contains(got, "replicaof redis-1.redis.d ") {
		t.Errorf("it runs with %q", got)
	}
}

func TestWithAnEmptyDiskRedisNeverLeads(t *testing.T) {
	t.Parallel()
	h := newRedis(t, 0, 0, 1, 2)
	for _, f := range []string{"redis-0", "redis-1", "redis-2"} {
		h.put("names/"+f+".redis.d", "redis-0.redis.d\n")
	}
	if got := h.leads(); got != "redis-2.redis.d" || h.read("calls") != "failover redis-1.redis.d\n" {
		t.Errorf("it follows %q, after %q", got, h.read("calls"))
	}
}
