package main

import (
	"strings"
	"testing"
	"time"

	"github.com/stead-project/stead/agent/runtime"
	"github.com/stead-project/stead/spec"
)

// TestWhatMembersAndNodesUseIsMeasured: the processor time of the second in which they are asked, and
// the memory, in kubectl's form and order.
func TestWhatMembersAndNodesUseIsMeasured(t *testing.T) {
	c := newCluster(t, nil)
	if code, out := c.stead("apply", "-f", "testdata/db.yaml", "--wait", "--timeout", "2m"); code != exitDone {
		t.Fatal(out)
	}
	began := time.Now()
	stop := make(chan struct{})
	used := make(chan struct{})
	defer func() { close(stop); <-used }()
	go func() { // db-0 uses two cores, db-1 half a core
		defer close(used)
		for {
			select {
			case <-stop:
				return
			case <-time.After(5 * time.Millisecond):
			}
			for ordinal, cores := range map[int]float64{0: 2, 1: 0.5, 2: 0} {
				id := runtime.ContainerID{ID: spec.Identity{Namespace: "default", Set: "db", Ordinal: ordinal}, Name: "main"}
				c.host.Use(id, runtime.Used{CPU: time.Duration(cores * float64(time.Since(began))), MemoryBytes: int64(ordinal+1) << 28})
			}
		}
	}()
	fields := func(want int, args ...string) (out [][]string) {
		t.Helper()
		code, text := c.stead(append([]string{"top"}, args...)...)
		for line := range strings.Lines(text) {
			out = append(out, strings.Fields(line))
		}
		if code != exitDone || len(out) != want {
			t.Fatalf("%v: got %d, %s", args, code, text)
		}
		return out
	}
	c.until("it is measured", func() bool { // a loaded machine lets the goroutine wait
		got := fields(4, "pods", "--sort-by", "cpu")
		return got[1][0] == "db-0" && got[2][0] == "db-1" && len(got[1][1]) == 5 && got[1][1] >= "1500m" && got[3][1] == "0m"
	})
	got := fields(4, "pods")
	if strings.Join(got[0], " ") != "NAME CPU(cores) MEMORY(bytes)" || got[1][0] != "db-0" || got[1][2] != "256Mi" || got[3][2] != "768Mi" {
		t.Errorf("got %v", got)
	}
	got = fields(3, "member", "-A", "--containers", "--no-headers", "--sort-by=memory")
	if strings.Join(got[0][:3], " ") != "default db-2 main" || got[0][4] != "768Mi" || got[2][1] != "db-0" {
		t.Errorf("got %v", got)
	}
	got = fields(2, "pod", "db-1")
	if got[1][0] != "db-1" || got[1][2] != "512Mi" {
		t.Errorf("got %v", got)
	}
	got = fields(2, "pods", "-l", "statefulset.kubernetes.io/pod-name=db-2")
	if got[1][0] != "db-2" {
		t.Errorf("got %v", got)
	}
	got = fields(2, "nodes")
	if strings.Join(got[0], " ") != "NAME CPU(cores) CPU(%) MEMORY(bytes) MEMORY(%)" || got[1][0] != "host-a" || got[1][3] != "1536Mi" || got[1][4] != "150%" {
		t.Errorf("got %v", got) // of the host's 1 GiB
	}
}
