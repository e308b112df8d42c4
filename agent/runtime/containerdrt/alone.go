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
	free, err := r.alone.Wait(ctx, id.ID)
	if err != nil {
		return 0, fmt.Errorf("%s: the previous command has not ended yet: %w: %w", what, runtime.ErrUnavailable, err)
	}
	defer free()
	sweep := func(path string) error {
		return withKillTime(ctx, func(ctx context.Context) error { return r.cgroups.Kill(ctx, path+"/"+aloneCgroup) })
	}
	names, err := r.cgroups.Children(memberDir(id.ID))
	if err != nil {
		return 0, fmt.Errorf("%s: %w: %w", what, runtime.ErrUnavailable, err)
	}
	for _, name := range names { // the previous one may have run in another container
		if name == pauseName {
			continue
		}
		path := memberDir(id.ID) + "/" + name
		r.gatherDescendants(path, aloneCgroup, 0, aloneMark)
		if err := sweep(path); err != nil {
			return 0, fmt.Errorf("%s: what the previous command left does not end: %w: %w", what, runtime.ErrUnavailable, err)
		}
	}
	path := memberDir(id.ID) + "/" + id.Name
	return r.execGathered(ctx, id, e, path, aloneCgroup, aloneMark, func() error { return sweep(path) })
}
