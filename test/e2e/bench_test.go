package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"google.golang.org/grpc"

	"github.com/stead-project/stead/proto"
	"github.com/stead-project/stead/server"
)

// benchSet is members whose program waits and does nothing; %s are name and policy,
// %d is how many.
const benchSet = `
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: %[1]s}
spec:
  podManagementPolicy: %[2]s
  replicas: %[3]d
  selector: {matchLabels: {app: %[1]s}}
  template:
    metadata: {labels: {app: %[1]s}}
    spec:
      terminationGracePeriodSeconds: 5
      containers:
      - name: main
        image: stead.local/tool:1
        imagePullPolicy: Never
        command: [/box, witness, --file, /dev/null]
`

// caller speaks to a lab's server without the command line in between.
type caller struct {
	l   *Lab
	api proto.ControlClient
}

// dial connects to the lab's server; the connection ends with tb.
func (l *Lab) dial(tb testing.TB) *caller {
	tb.Helper()
	conn, err := server.Dial(l.Socket)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { conn.Close() })
	return &caller{l, proto.NewControlClient(conn)}
}

// rounds are how often a benchmark does what it measures. The benchmarks of labs
// count for themselves: run them with -benchtime 1x.
const rounds = 5

// reportMean reports the mean of all rounds, in ms, in place of ns/op, which would
// count the tidying up too.
func reportMean(b *testing.B, sum time.Duration, unit string) {
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(float64(sum.Microseconds())/rounds/1000, unit)
}

// apply makes a set; it waits for a server that is about to serve.
func (c *caller) apply(text string) {
	c.l.t.Helper()
	ctx, cancel := context.WithTimeout(c.l.t.Context(), 30*time.Second)
	defer cancel()
	r := &proto.ApplyRequest{Files: []*proto.File{{Name: "bench.yaml", Content: []byte(text)}}}
	if _, err := c.api.Apply(ctx, r, grpc.WaitForReady(true)); err != nil {
		c.l.t.Fatalf("apply: %v\n%s", err, c.l.logs())
	}
}

// until looks every 5 ms at the members of a set until they are as wanted.
func (c *caller) until(set string, wanted func([]member) bool) {
	c.l.t.Helper()
	ctx, cancel := context.WithTimeout(c.l.t.Context(), time.Minute)
	defer cancel()
	for ; ; time.Sleep(5 * time.Millisecond) {
		list, err := c.api.List(ctx, &proto.ListRequest{Kind: "member", Set: set})
		if err != nil {
			c.l.t.Fatalf("list members: %v\n%s", err, c.l.logs())
		}
		members := make([]member, len(list.GetObjects()))
		for i, o := range list.GetObjects() {
			if err := json.Unmarshal(o.GetJson(), &members[i]); err != nil {
				c.l.t.Fatal(err)
			}
		}
		if wanted(members) {
			return
		}
	}
}

// ready are n members, all ready.
func ready(n int) func([]member) bool {
	return func(members []member) bool {
		for _, m := range members {
			if !m.Status.Ready {
				return false
			}
		}
		return len(members) == n
	}
}

// remove deletes a set and waits until nothing is left of it.
func (c *caller) remove(set string) {
	c.l.t.Helper()
	ctx, cancel := context.WithTimeout(c.l.t.Context(), time.Minute)
	defer cancel()
	if _, err := c.api.Delete(ctx, &proto.DeleteRequest{Kind: "set", Name: set}); err != nil {
		c.l.t.Fatal(err)
	}
	for {
		list, err := c.api.List(ctx, &proto.ListRequest{Kind: "set"})
		if err != nil {
			c.l.t.Fatal(err)
		}
		left := false
		for _, o := range list.GetObjects() {
			left = left || o.GetName() == set
		}
		if !left {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// BenchmarkMembers is server and agent as two processes, with real containers:
// from Apply until all members are ready, and then what both cost at rest. Beside
// it stands BenchmarkStart of agent/runtime/containerdrt, bare containerd.
func BenchmarkMembers(b *testing.B) {
	l := newLab(b)
	l.ownStore()
	l.startAll(l.toolArchive())
	c := l.dial(b)
	c.apply(fmt.Sprintf(benchSet, "warm", "Parallel", 1))
	c.until("warm", ready(1))
	c.remove("warm")
	for _, policy := range []string{"OrderedReady", "Parallel"} {
		for _, n := range []int{1, 3} {
			b.Run(fmt.Sprintf("Ready/%s/%d", policy, n), func(b *testing.B) {
				var took time.Duration
				for range rounds {
					began := time.Now()
					c.apply(fmt.Sprintf(benchSet, "bench", policy, n))
					c.until("bench", ready(n))
					took += time.Since(began)
					c.remove("bench")
				}
				reportMean(b, took, "ms/set")
			})
		}
	}
	c.apply(fmt.Sprintf(benchSet, "rest", "Parallel", 3))
	c.until("rest", ready(3))
	b.Run("Idle", func(b *testing.B) {
		l.reportIdle(b, map[string]*process{"server": l.server, "agent": l.agent})
	})
}
