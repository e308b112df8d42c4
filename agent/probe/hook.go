package probe

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/stead-project/stead/agent/runtime"
	"github.com/stead-project/stead/internal/backoff"
	"github.com/stead-project/stead/spec"
)

// hookAgain is how soon a hook is begun again that a runtime that does not answer kept from running.
const hookAgain = time.Second

// Hook runs a lifecycle hook once and returns why it failed, as people are to read it; nil: it did
// not. It has no time-out but ctx. A command is not Bounded: what it leaves in the
// background goes on, as in Kubernetes, until its container ends.
func (p *Prober) Hook(ctx context.Context, t Target, h spec.Hook) error {
	switch {
	case h.Exec != nil:
		return p.runHook(ctx, t.ID, h.Exec.Command)
	case h.HTTPGet != nil:
		return p.callHook(ctx, t, h.HTTPGet)
	case h.Sleep != nil:
		backoff.Sleep(ctx, time.Duration(h.Sleep.Seconds)*time.Second)
		return ctx.Err()
	case h.TCPSocket != nil:
		return errors.New("a tcpSocket hook is not connected to, as in Kubernetes")
	}
	return errors.New("it has no action")
}

// runHook runs a command; exit 0 is success. While the runtime does not answer it is tried
// again, for nothing was learnt of the container: so it may run twice, and never less than once.
func (p *Prober) runHook(ctx context.Context, id runtime.ContainerID, command []string) error {
	if p.c.Exec == nil {
		return errors.New("commands cannot be run here")
	}
	for {
		var out head
		code, err := p.c.Exec(ctx, id, runtime.Exec{Command: command, Stdout: &out, Stderr: &out})
		line := out.line()
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.Is(err, runtime.ErrUnavailable):
			if !backoff.Sleep(ctx, hookAgain) {
				return ctx.Err()
			}
		case err != nil:
			return err
		default:
			return exited(code, line)
		}
	}
}

// callHook asks by HTTP; any answer is success, whatever its status, as in Kubernetes. A server that
// answers HTTPS in plain HTTP is asked once more that way.
func (p *Prober) callHook(ctx context.Context, t Target, action *spec.HTTPGet) error {
	err := p.answered(ctx, t, *action)
	if failure, ok := errors.AsType[*url.Error](err); ok && errors.Is(failure.Err, http.ErrSchemeMismatch) {
		plain := *action
		plain.Scheme = "HTTP"
		plain.HTTPHeaders = nil
		for _, h := range action.HTTPHeaders { // what was meant for TLS only is not sent in plain
			if !strings.EqualFold(h.Name, "Authorization") {
				plain.HTTPHeaders = append(plain.HTTPHeaders, h)
			}
		}
		err = p.answered(ctx, t, plain)
	}
	if err == nil || ctx.Err() != nil {
		return ctx.Err()
	}
	return errors.New(cause(ctx, err, 0))
}

// answered reports by nil that there was an answer.
func (p *Prober) answered(ctx context.Context, t Target, action spec.HTTPGet) error {
	req, err := t.request(ctx, &action)
	if err != nil {
		return err
	}
	if req.Header.Get("User-Agent") == probeAgent {
		req.Header.Set("User-Agent", "stead-lifecycle")
	}
	client := http.Client{Transport: p.http, CheckRedirect: sameHost}
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	_, _ = io.CopyN(io.Discard, resp.Body, 10<<10)
	return resp.Body.Close()
}
