package spec

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

	StopSignal *string `json:"stopSignal,omitempty" stead:"later"`
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
