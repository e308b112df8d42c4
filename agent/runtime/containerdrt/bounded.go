package containerdrt

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/stead-project/stead/agent/enter"
	"github.com/stead-project/stead/agent/runtime"
)

// ownCgroup is the cgroup of a bounded command, below its container's.
const ownCgroup = "probe"

// execBounded runs a command of which nothing is left. The next one of the container waits
// until that is so, also when the caller's time is over before.
func (r *commands) execBounded(parent context.Context, id runtime.ContainerID, e runtime.Exec) (int, error) {
	what := fmt.Sprintf("exec in %s/%s", id.ID, id.Name)
	if e.Stdin != nil || e.Terminal != nil || len(e.Command) == 0 {
		return 0, fmt.Errorf("%s: a bounded command has a name, and neither input nor terminal: %w", what, runtime.ErrBadSpec)
	}
	free, err := r.turns.Wait(parent, id)
	if err != nil {
		return 0, fmt.Errorf("%s: the previous command has not ended yet: %w: %w", what, runtime.ErrUnavailable, err)
	}
	stdout, stderr := &tap{to: e.Stdout}, &tap{to: e.Stderr}
	if e.Stdout == e.Stderr {
		stderr = stdout
	}
	defer stdout.stop()
	defer stderr.stop()
	e.Stdout, e.Stderr = stdout, stderr
	type result struct {
		code int
		err  error
	}
	done := make(chan result, 1)
	r.late.Go(func() {
		defer free()
		code, err := r.execInOwnCgroup(parent, id, e)
		done <- result{code, err}
	})
	late := parent.Done()
	var answer <-chan time.Time
	for {
		select {
		case got := <-done:
			if got.err != nil {
				return got.code, fmt.Errorf("%s: %w", what, got.err)
			}
			return got.code, nil
		case <-late:
			late, answer = nil, time.After(answerTime)
		case <-answer:
			return 0, fmt.Errorf("%s: it has not ended yet: %w: %w", what, runtime.ErrUnavailable, parent.Err())
		}
	}
}

// execInOwnCgroup runs the command in a cgroup of its own, which is empty before and after.
func (r *commands) execInOwnCgroup(ctx context.Context, id runtime.ContainerID, e runtime.Exec) (int, error) {
	path := memberDir(id.ID) + "/" + id.Name
	sweep := func() error {
		return withKillTime(ctx, func(ctx context.Context) error { return r.cgroups.Kill(ctx, path+"/"+ownCgroup) })
	}
	c := r.entered.get(id)
	if !c.used {
		c.used = true
		r.gatherDescendants(path, ownCgroup, 0, markName) // an agent before us may have been killed before it did
	}
	if c.own == nil { // of an agent before us, or stuck in the kernel
		if err := sweep(); err != nil {
			return 0, fmt.Errorf("processes that the previous command left do not end: %w: %w", runtime.ErrUnavailable, err)
		}
	}
	code, err := r.enter(ctx, id, c, e, path)
	if !errors.Is(err, enter.ErrRefused) {
		return code, err
	}
	if ctx.Err() != nil {
		return 0, fmt.Errorf("%w: %w", runtime.ErrUnavailable, ctx.Err())
	}
	if !c.logged {
		c.logged = true
		r.cfg.Log.Info("probe commands run through containerd, at about ten times the cost of entering the container",
			"member", id.ID, "container", id.Name, "cause", err)
	}
	return r.execGathered(ctx, id, e, path, ownCgroup, markName, sweep)
}

// execGathered runs the command through the runtime. What comes of it is gathered in the cgroup group below that of its container, by a
// variable whose name and "=" are mark, and swept when the command is over.
func (r *commands) execGathered(ctx context.Context, id runtime.ContainerID, e runtime.Exec, path, group, mark string, sweep func() error) (int, error) {
	var late sync.WaitGroup
	mark = fmt.Sprintf("%s%d.%d.", mark, time.Now().UnixNano(), r.count.Add(1))
	gather := func(pid int) { r.gatherDescendants(path, group, pid, mark) }
	code, err := r.execTask(ctx, id, e, keeper{late: &late, variable: mark, started: gather, over: func(pid int) {
		gather(pid)
		_ = sweep() // once more below
	}})
	late.Wait()
	if left := sweep(); left != nil {
		err = errors.Join(err, runtime.ErrUnavailable, left)
	}
	return code, err
}

// withKillTime gives kill its time, which the caller's end does not cut.
func withKillTime(ctx context.Context, kill func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), killTime)
	defer cancel()
	return kill(ctx)
}

// enter runs the command without the daemon. enter.ErrRefused: nothing was run.
func (r *commands) enter(ctx context.Context, id runtime.ContainerID, c *openContainer, e runtime.Exec, path string) (int, error) {
	helper, err := r.openForCommands(ctx, id, c)
	if err != nil {
		return 0, err
	}
	own := c.take()
	if own == nil {
		own, err = r.cgroups.Own(path, ownCgroup)
		if err != nil {
			return 0, fmt.Errorf("%w: %w", err, enter.ErrRefused)
		}
	}
	var left error
	code, err := helper.Run(ctx, c.Container, enter.Command{
		Args: e.Command, Stdout: e.Stdout, Stderr: e.Stderr,
		Procs: own.Procs, CgroupRoot: r.cfg.CgroupRoot, Cgroup: r.cgroups.Parent() + "/" + path + "/" + ownCgroup,
		Sweep: func() error { left = withKillTime(ctx, own.Kill); return left },
	})
	c.giveBack(own, err, left)
	switch {
	case err == nil || errors.Is(err, enter.ErrRefused) && left == nil:
		return code, err
	case left == nil && errors.Is(err, enter.ErrCommand):
		return 0, fmt.Errorf("%w: %w", runtime.ErrBadSpec, err)
	case left == nil && ctx.Err() != nil && !errors.Is(err, enter.ErrLate):
		return 0, ctx.Err()
	case ctx.Err() != nil:
		return 0, fmt.Errorf("%w: %v: %w", runtime.ErrUnavailable, err, ctx.Err())
	}
	return 0, fmt.Errorf("%w: %v", runtime.ErrUnavailable, err)
}

// tap passes on what is written until it is stopped: then nothing reads it any more.
type tap struct {
	mu   sync.Mutex
	to   io.Writer // nil: nowhere
	over bool
}

// Write implements io.Writer.
func (t *tap) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.over || t.to == nil {
		return len(p), nil
	}
	return t.to.Write(p)
}

func (t *tap) stop() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.over = true
}

// gatherDescendants moves a command that the runtime started (leader; 0: an earlier agent's, not
// known), and all that has come of it, into the cgroup, below its container's, through which it is ended. It is the way of
// containers that cannot be entered.
// What left its session, its parents and its environment before it was seen here is not
// found; it goes with the container.
func (r *commands) gatherDescendants(path, group string, leader int, mark string) {
	own, err := r.cgroups.Own(path, group)
	if err != nil {
		return // the container has ended
	}
	at := slices.IndexFunc(own.Procs, func(f string) bool { return strings.HasSuffix(f, "/"+group+"/cgroup.procs") })
	for moved := map[int]bool{}; ; {
		pids, err := r.cgroups.Pids(path)
		if err != nil {
			return
		}
		more := false
		for _, pid := range descendants(pids, leader, parentAndSession, func(pid int) bool { return marked(pid, mark) }) {
			if !moved[pid] {
				moved[pid], more = true, true
				_ = os.WriteFile(own.Procs[at], []byte(strconv.Itoa(pid)), 0) // it may have ended
			}
		}
		if !more {
			return
		}
	}
}

// descendants are those of pids that are of the leader's session, carry its mark, or come down
// from one that does.
func descendants(pids []int, leader int, lineage func(int) (parent, session int), marked func(int) bool) []int {
	found := map[int]bool{}
	for more := true; more; {
		more = false
		for _, pid := range pids {
			if pid <= 0 || found[pid] {
				continue
			}
			parent, session := lineage(pid)
			if leader > 0 && (pid == leader || session == leader) || found[parent] || marked(pid) {
				found[pid], more = true, true
			}
		}
	}
	return slices.DeleteFunc(slices.Clone(pids), func(pid int) bool { return !found[pid] })
}

// markName is the variable that marks what the runtime started for us.
const markName = "STEAD_PROBE="

// marked reports whether a process was started with a mark in its environment that starts
// like this.
func marked(pid int, mark string) bool {
	text, err := os.ReadFile(filepath.Join(procDir(pid), "environ"))
	return err == nil && slices.ContainsFunc(strings.Split(string(text), "\x00"), func(e string) bool { return strings.HasPrefix(e, mark) })
}

// parentAndSession reads a process's parent and session: the fourth and the sixth field of stat.
func parentAndSession(pid int) (parent, session int) {
	text, err := os.ReadFile(filepath.Join(procDir(pid), "stat"))
	if err != nil {
		return 0, 0
	}
	f := bytes.Fields(text[bytes.LastIndexByte(text, ')')+1:])
	if len(f) < 4 {
		return 0, 0
	}
	parent, _ = strconv.Atoi(string(f[1]))
	session, _ = strconv.Atoi(string(f[3]))
	return parent, session
}
