package probe

import (
	"context"
	"errors"
	"fmt"

	"github.com/stead-project/stead/agent/runtime"
	"github.com/stead-project/stead/spec"
)

// Order runs a hook once that the servers ordered and returns why it failed, as people are to read it; nil: it succeeded, by
// exit 0 or a status from 200 to 399. It has no time-out but ctx. Of a command nothing is left when it has returned, and at
// most one runs in a member, also when the agent before this one was killed while one did.
func (p *Prober) Order(ctx context.Context, t Target, h spec.MemberHook, env []string) error {
	switch {
	case h.Exec != nil && p.c.Exec == nil:
		return errors.New("commands cannot be run here")
	case h.Exec != nil:
		return p.runOrdered(ctx, t.ID, h.Exec.Command, env)
	case h.HTTPGet != nil:
		if r := p.get(ctx, t, h.HTTPGet, h.Timeout()); r.Outcome != Success {
			return errors.New(r.Cause)
		}
		return nil
	}
	return errors.New("it has no action")
}

func (p *Prober) runOrdered(ctx context.Context, id runtime.ContainerID, command, env []string) error {
	var out head
	code, err := p.c.Exec(ctx, id, runtime.Exec{Command: command, Env: env, Stdout: &out, Stderr: &out, Alone: true})
	if err != nil {
		return err
	}
	return Ended(code, out.line())
}

// exitError says that a command of Order ended by itself, or by a signal.
type exitError struct {
	error
	code int
}

// Ended is what Order returns of a command that ended with this exit code, and wrote this line first.
func Ended(code int, line string) error {
	if err := exited(code, line); err != nil {
		return exitError{err, code}
	}
	return nil
}

// signalCode is the lowest exit code of a command that a signal ended.
const signalCode = 128

// EndedItself: the command of Order that returned err, which is not nil, ended by itself, with an exit code of its own.
func EndedItself(err error) bool {
	var exit exitError
	return errors.As(err, &exit) && exit.code < signalCode
}

// exited says why a command failed that wrote this line first; nil: it did not.
func exited(code int, line string) error {
	switch {
	case code == 0:
		return nil
	case line == "":
		return fmt.Errorf("exit code %d", code)
	}
	return fmt.Errorf("exit code %d: %s", code, line)
}
