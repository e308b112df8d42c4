package session

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	gproto "google.golang.org/protobuf/proto"

	"github.com/stead-project/stead/agent/runtime"
	"github.com/stead-project/stead/internal/backoff"
	"github.com/stead-project/stead/proto"
	"github.com/stead-project/stead/proto/wire"
)

// usageTime is how long the use of processors is measured.
const usageTime = time.Second

// usage measures what the host and its containers use.
func (a *Answerer) usage(ctx context.Context) ([]byte, error) {
	began := time.Now()
	before, err := a.Runtime.Usage(ctx)
	if err != nil {
		return nil, err
	}
	if !backoff.Sleep(ctx, usageTime) {
		return nil, ctx.Err()
	}
	after, err := a.Runtime.Usage(ctx)
	if err != nil {
		return nil, err
	}
	return gproto.Marshal(usageBetween(before, after, time.Since(began)))
}

// usageBetween is what was used from before to after. A container that was not there before is left
// out; of one that was started anew, only what it has used since is known.
func usageBetween(before, after runtime.Usage, took time.Duration) *proto.NodeUsage {
	mean := func(was, now runtime.Used) *proto.Used {
		cpu := now.CPU - was.CPU
		if cpu < 0 {
			cpu = now.CPU
		}
		return &proto.Used{CpuMillis: int64(1000 * cpu / max(took, 1)), MemoryBytes: now.MemoryBytes}
	}
	out := &proto.NodeUsage{Host: mean(before.Host, after.Host)}
	for _, id := range slices.SortedFunc(maps.Keys(after.Containers), compareContainers) {
		if was, known := before.Containers[id]; known {
			out.Containers = append(out.Containers, &proto.ContainerUsage{
				Member: wire.Identity(id.ID), Container: id.Name, Used: mean(was, after.Containers[id]),
			})
		}
	}
	return out
}

// volumeUsage says how full the node's volumes are.
func (a *Answerer) volumeUsage() ([]byte, error) {
	out := &proto.NodeUsage{}
	for _, u := range a.VolumeUses() {
		out.Volumes = append(out.Volumes, &proto.VolumeUsage{
			Volume: string(u.Volume), UsedBytes: u.UsedBytes, AgeMillis: u.Age.Milliseconds(), FreeBytes: u.FreeBytes, TotalBytes: u.TotalBytes,
			Problem: u.Problem,
		})
	}
	return gproto.Marshal(out)
}

func compareContainers(a, b runtime.ContainerID) int {
	return cmp.Or(a.ID.Compare(b.ID), strings.Compare(a.Name, b.Name))
}
