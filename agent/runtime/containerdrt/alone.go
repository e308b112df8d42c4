package containerdrt

import (
	"context"
	"fmt"

	"github.com/stead-project/stead/agent/runtime"
)

// aloneCgroup is the cgroup of a command that is Alone, below its container's; aloneMark is the variable that marks it.
const (
	aloneCgroup = "hook"
	aloneMark   = "STEAD_ORDER="
)

// execAlone runs a command of which nothing is left, after what an agent before this one left of such a command has ended. It
// does not enter the container by itself as those of probes do: it is run seldom, and with variables of its own.
func (r *commands) execAlone(ctx context.Context, id runtime.ContainerID, e runtime.Exec) (int, error) {
	what := fmt.Sprintf("exec in %s/%s", id.ID, id.Name)
	if e.Stdin != nil || e.Terminal != nil {
		return 0, fmt.Errorf("%s: a command that is alone has neither input nor terminal: %w", what, runtime.ErrBadSpec)
	}
	free, err := r.alone.Wait(ctx, id)
	if err != nil {
		return 0, fmt.Errorf("%s: the previous command has not ended yet: %w: %w", what, runtime.ErrUnavailable, err)
	}
	defer free()
	path := memberDir(id.ID) + "/" + id.Name
	sweep := func() error {
		return withKillTime(ctx, func(ctx context.Context) error { return r.cgroups.Kill(ctx, path+"/"+aloneCgroup) })
	}
	r.gatherDescendants(path, aloneCgroup, 0, aloneMark)
	if err := sweep(); err != nil {
		return 0, fmt.Errorf("%s: what the previous command left does not end: %w: %w", what, runtime.ErrUnavailable, err)
	}
	return r.execGathered(ctx, id, e, path, aloneCgroup, aloneMark, sweep)
}
