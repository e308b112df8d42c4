package session

import (
	"testing"
	"time"

	"github.com/stead-project/stead/agent/runtime"
	"github.com/stead-project/stead/spec"
)

func TestUsageIsTheMeanOfTheTimeBetween(t *testing.T) {
	id := func(set string) runtime.ContainerID {
		return runtime.ContainerID{ID: spec.Identity{Namespace: "default", Set: spec.SetName(set)}, Name: "main"}
	}
	before := runtime.Usage{Host: runtime.Used{CPU: time.Hour}, Containers: map[runtime.ContainerID]runtime.Used{
		id("busy"): {CPU: time.Minute}, id("anew"): {CPU: time.Hour}, id("gone"): {}, id("idle"): {CPU: time.Second, MemoryBytes: 7},
	}}
	after := runtime.Usage{Host: runtime.Used{CPU: time.Hour + 5*time.Second, MemoryBytes: 9}, Containers: map[runtime.ContainerID]runtime.Used{
		id("busy"): {CPU: time.Minute + 3*time.Second, MemoryBytes: 1 << 20}, id("anew"): {CPU: 500 * time.Millisecond},
		id("new"): {CPU: time.Second}, id("idle"): {CPU: time.Second, MemoryBytes: 8},
	}}
	got := usageBetween(before, after, 2*time.Second)
	if got.GetHost().GetCpuMillis() != 2500 || got.GetHost().GetMemoryBytes() != 9 {
		t.Errorf("host: got %v", got.GetHost())
	}
	want := []struct {
		set         string
		cpu, memory int64
	}{{"anew", 250, 0}, {"busy", 1500, 1 << 20}, {"idle", 0, 8}}
	if len(got.GetContainers()) != len(want) {
		t.Fatalf("got %v, want %v", got.GetContainers(), want)
	}
	for i, w := range want {
		c := got.GetContainers()[i]
		if c.GetMember().GetSet() != w.set || c.GetUsed().GetCpuMillis() != w.cpu || c.GetUsed().GetMemoryBytes() != w.memory {
			t.Errorf("got %v, want %v", c, w)
		}
	}
}
