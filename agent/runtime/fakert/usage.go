package fakert

import (
	"context"

	"github.com/stead-project/stead/agent/runtime"
)

// meter is what the containers of a host have used.
type meter struct {
	*machine
	containers map[runtime.ContainerID]*container // the host's
	used       map[runtime.ContainerID]runtime.Used
}

// Use says what a container has used; running ones of which nothing was said have used nothing.
func (m *meter) Use(id runtime.ContainerID, used runtime.Used) {
	m.with(func() { m.used[id] = used })
}

// Usage tells what Use said of the running containers, and as the host's the sum of it.
func (m *meter) Usage(ctx context.Context) (out runtime.Usage, err error) {
	err = m.do(ctx, Call{Op: "Usage"}, func() error {
		out.Containers = map[runtime.ContainerID]runtime.Used{}
		for id, c := range m.containers {
			if c.state == runtime.Running {
				used := m.used[id]
				out.Containers[id] = used
				out.Host.CPU += used.CPU
				out.Host.MemoryBytes += used.MemoryBytes
			}
		}
		return nil
	})
	return out, err
}
