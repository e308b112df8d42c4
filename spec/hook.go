package spec

import (
	"slices"
	"strconv"
	"strings"
	"time"
)

// Lifecycle is what is run for a container after its start and before its stop.
type Lifecycle struct {
	// PostStart is run right after the container has started, at the same time as its program.
	// Until it has returned the container is not ready, is not probed, and no other container of
	// the member starts. If it fails, the container is stopped and started again.
	PostStart *Hook `json:"postStart,omitempty"`
	// PreStop is run before the container is asked to end, also when a probe gave it up; not when
	// it has ended by itself, nor with terminationGracePeriodSeconds 0. Its time is part of
	// terminationGracePeriodSeconds; after it the container has at least 2 s to end. If it fails,
	// the stop continues.
	PreStop *Hook `json:"preStop,omitempty"`

	// StopSignal asks the container to end, in place of the STOPSIGNAL of its image: SIGUSR1, SIGRTMIN+3.
	StopSignal *string `json:"stopSignal,omitempty"`
}

// signals of Linux by number, from 1: those of every architecture that Stead is built for.
var signals = strings.Fields(`SIGHUP SIGINT SIGQUIT SIGILL SIGTRAP SIGABRT SIGBUS SIGFPE SIGKILL SIGUSR1 SIGSEGV SIGUSR2
	SIGPIPE SIGALRM SIGTERM SIGSTKFLT SIGCHLD SIGCONT SIGSTOP SIGTSTP SIGTTIN SIGTTOU SIGURG SIGXCPU SIGXFSZ SIGVTALRM
	SIGPROF SIGWINCH SIGIO SIGPWR SIGSYS`)

// The numbers of the first and the last real-time signal, as programs see them.
const (
	sigRTMin = 34
	sigRTMax = 64
)

// SignalNumber is the number of a signal that Kubernetes takes for stopSignal: SIGTERM, SIGRTMIN+3, SIGRTMAX-1.
func SignalNumber(name string) (number int, ok bool) {
	switch name {
	case "SIGRTMIN":
		return sigRTMin, true
	case "SIGRTMAX":
		return sigRTMax, true
	case "SIGIOT":
		name = "SIGABRT"
	case "SIGCLD":
		name = "SIGCHLD"
	case "SIGPOLL":
		name = "SIGIO"
	}
	if i := slices.Index(signals, name); i >= 0 {
		return i + 1, true
	}
	for first, at := range map[string]int{"SIGRTMIN+": sigRTMin, "SIGRTMAX-": sigRTMax} {
		text, found := strings.CutPrefix(name, first)
		n, err := strconv.Atoi(text)
		if !found || err != nil || text != strconv.Itoa(n) || n < 1 {
			continue
		}
		if at == sigRTMin {
			return at + n, n <= 15
		}
		return at - n, n <= 14
	}
	return 0, false
}

// Hook is run at least once; once more if the agent was killed before it returned. Exactly one
// part is set.
type Hook struct {
	Exec *ExecAction `json:"exec,omitempty"`
	// HTTPGet succeeds on an answer of any status.
	HTTPGet *HTTPGet `json:"httpGet,omitempty"`
	// TCPSocket only for preStop, where it fails: Kubernetes knows it, and never connects.
	TCPSocket *TCPSocket   `json:"tcpSocket,omitempty"`
	Sleep     *SleepAction `json:"sleep,omitempty"`
	// TimeoutSeconds, of stepDown only: a hook that has not returned by then is broken off, and the stop goes on;
	// 1 to 3600, default 30.
	TimeoutSeconds int32 `json:"timeoutSeconds,omitempty" stead:"only"`
}

const defaultTimeout = 30 * time.Second

// Timeout is TimeoutSeconds or its default.
func (h *Hook) Timeout() time.Duration {
	if h.TimeoutSeconds == 0 {
		return defaultTimeout
	}
	return time.Duration(h.TimeoutSeconds) * time.Second
}

// SleepAction waits.
type SleepAction struct {
	// Seconds is 0 to terminationGracePeriodSeconds.
	Seconds int64 `json:"seconds"`
}

// GRPCAction asks the gRPC health service at the member's address; SERVING is success.
type GRPCAction struct {
	// Port is 1 to 65535, a number only.
	Port int32 `json:"port"`
	// Service is what the health service is asked about; "": the server as a whole.
	Service string `json:"service,omitempty"`
}

// lifecycle fills in the defaults of hooks, or removes what says nothing.
func (d defaulter) lifecycle(l **Lifecycle) {
	if *l == nil {
		return
	}
	for _, h := range []*Hook{(*l).PostStart, (*l).PreStop} {
		if h != nil {
			d.httpGet(h.HTTPGet)
		}
	}
	if d.clear && saysNothing(**l) {
		*l = nil
	}
}

func (d defaulter) httpGet(h *HTTPGet) {
	if h != nil {
		set(d, &h.Path, "/")
		set(d, &h.Scheme, "HTTP")
	}
}
