package agent

import (
	"context"

	"github.com/stead-project/stead/agent/runtime"
	"github.com/stead-project/stead/agent/self"
	"github.com/stead-project/stead/records"
)

// selfFunc is worker.Config.Self.
type selfFunc func(ctx context.Context, id runtime.ContainerID, report func(records.Claim))

// followSelf follows what members say of themselves; nil: the runtime does not open directories of containers. unfollow
// waits for the contexts of all that is followed.
func (a *Agent) followSelf() (follow selfFunc, unfollow func(), err error) {
	open, can := a.c.Runtime.(self.Opener)
	if !can {
		return nil, func() {}, nil
	}
	f, err := self.New(open)
	if err != nil {
		return nil, nil, err
	}
	return f.Follow, func() { _ = f.Close() }, nil
}
