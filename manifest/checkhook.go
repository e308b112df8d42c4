package manifest

import (
	"fmt"

	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/spec/scalar"
)

// lifecycle checks the hooks of a container; ports are the names of its ports.
func (c containerChecks) lifecycle(at string, l *spec.Lifecycle, ports map[string]bool) {
	if l == nil {
		return
	}
	if h := l.PostStart; h != nil {
		c.hook(at+".postStart", h, ports)
		c.noTimeout(at+".postStart", h)
		if h.TCPSocket != nil {
			c.fail(at+".postStart.tcpSocket", "never succeeds: Kubernetes does not connect, and restarts the container again and again", "write exec or httpGet")
		}
	}
	if s := l.StopSignal; s != nil {
		if _, known := spec.SignalNumber(*s); !known {
			c.fail(at+".stopSignal", scalar.Quote(*s)+" is not a signal", "write it as in SIGUSR1 or SIGRTMIN+3")
		}
	}
	if h := l.PreStop; h != nil {
		c.hook(at+".preStop", h, ports)
		c.noTimeout(at+".preStop", h)
		if h.TCPSocket != nil {
			c.warn(at+".preStop.tcpSocket", "fails at each stop, as in Kubernetes, which does not connect either; the stop continues at once", "")
		}
		if c.grace == 0 {
			c.warn(at+".preStop", "is not run, as in Kubernetes: terminationGracePeriodSeconds is 0", "")
		}
	}
}

func (c containerChecks) noTimeout(at string, h *spec.Hook) {
	if h.TimeoutSeconds != 0 {
		c.fail(at+".timeoutSeconds", "is only for stepDown", "remove it")
	}
}

// maxStepDown is the most seconds that a leader may take to step down.
const maxStepDown = 3600

func (c containerChecks) stepDown(at string, h *spec.Hook, ports map[string]bool) {
	if h == nil {
		return
	}
	switch {
	case h.Sleep != nil:
		c.fail(at+".sleep", "does not make a leader step down", "write exec or httpGet")
	case h.TCPSocket != nil:
		c.fail(at+".tcpSocket", "does not make a leader step down", "write exec or httpGet")
	default:
		c.exactlyOne(at, map[string]bool{"exec": h.Exec != nil, "httpGet": h.HTTPGet != nil})
	}
	c.execAction(at+".exec", h.Exec)
	c.httpGet(at+".httpGet", h.HTTPGet, ports)
	if h.TimeoutSeconds != 0 {
		c.between(at+".timeoutSeconds", int64(h.TimeoutSeconds), 1, maxStepDown)
	}
}

func (c containerChecks) hook(at string, h *spec.Hook, ports map[string]bool) {
	parts := map[string]bool{"exec": h.Exec != nil, "httpGet": h.HTTPGet != nil, "sleep": h.Sleep != nil}
	if h.TCPSocket != nil {
		parts["tcpSocket"] = true
		c.actionPort(at+".tcpSocket.port", h.TCPSocket.Port, ports)
	}
	c.exactlyOne(at, parts)
	c.execAction(at+".exec", h.Exec)
	c.httpGet(at+".httpGet", h.HTTPGet, ports)
	switch s := h.Sleep; {
	case s == nil:
	case s.Seconds > c.grace:
		c.fail(at+".sleep.seconds", fmt.Sprintf("%d is more than terminationGracePeriodSeconds", s.Seconds), fmt.Sprintf("write 0 to %d", c.grace))
	default:
		c.between(at+".sleep.seconds", s.Seconds, 0, c.grace)
	}
}

func (c containerChecks) execAction(at string, a *spec.ExecAction) {
	if a != nil && len(a.Command) == 0 {
		c.fail(at+".command", "is missing", "")
	}
}
