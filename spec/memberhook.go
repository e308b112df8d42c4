package spec

import (
	"cmp"
	"time"
)

// MemberHook is run in a container of a member by order of the servers, until it succeeds: at least once, again with back-off
// after a failure, and never two at a time in one member. One of Exec and HTTPGet is set.
type MemberHook struct {
	// Container is where it runs, one of the template's containers; default: the first one.
	Container string `json:"container,omitempty"`
	// Exec runs a command with the container's variables and those that say what it is about; exit 0 is success. What it
	// starts ends with it.
	Exec *ExecAction `json:"exec,omitempty"`
	// HTTPGet succeeds on a status from 200 to 399.
	HTTPGet *HTTPGet `json:"httpGet,omitempty"`
	// TimeoutSeconds is how long one run may take, 1 to 604800 (a week); default 3600. One that takes longer is broken off,
	// and has failed.
	TimeoutSeconds int32 `json:"timeoutSeconds,omitempty"`
}

// defaultHookSeconds is the default of MemberHook.TimeoutSeconds.
const defaultHookSeconds = 3600

// Timeout is TimeoutSeconds or its default.
func (h *MemberHook) Timeout() time.Duration {
	return time.Duration(cmp.Or(h.TimeoutSeconds, defaultHookSeconds)) * time.Second
}

// Decommission is the hook of a member that is to leave for good, because its ordinal is not in the set's range any more: by a
// scale-down, but not to 0, or a range that moves. It is run until it succeeds; then the member stops. No restart, update, drain, move
// or deletion runs it.
type Decommission struct {
	// Container is where it runs, one of the template's containers; default: the first one.
	Container string      `json:"container,omitempty"`
	Exec      *ExecAction `json:"exec,omitempty"`
	HTTPGet   *HTTPGet    `json:"httpGet,omitempty"`
	// TimeoutSeconds is how long one run may take, 1 to 604800 (a week); default 3600; with onTimeout Proceed, how long all of them together.
	TimeoutSeconds int32 `json:"timeoutSeconds,omitempty"`
	// OnTimeout is Wait (default): the member stays until the hook has succeeded; or Proceed: it stops timeoutSeconds after
	// its node has learnt that it is to leave.
	OnTimeout string `json:"onTimeout,omitempty"`
	// Abort is run until it succeeds in a member that was to leave and is wanted again before its hook succeeded.
	Abort *MemberHook `json:"abort,omitempty"`
}

// onWait is the default of Decommission.OnTimeout and Job.OnUnknown.
const onWait = "Wait"

// Hook is the hook as such.
func (d *Decommission) Hook() MemberHook {
	return MemberHook{Container: d.Container, Exec: d.Exec, HTTPGet: d.HTTPGet, TimeoutSeconds: d.TimeoutSeconds}
}

// memberHooks fills in the defaults of the set's hooks. Container stays empty: the first is the template's to say.
func (d defaulter) memberHooks(s *SetSpec) {
	hook := func(seconds *int32, h *HTTPGet) {
		set(d, seconds, defaultHookSeconds)
		d.httpGet(h)
	}
	if x := s.Decommission; x != nil {
		hook(&x.TimeoutSeconds, x.HTTPGet)
		set(d, &x.OnTimeout, onWait)
		if x.Abort != nil {
			hook(&x.Abort.TimeoutSeconds, x.Abort.HTTPGet)
		}
	}
	if s.Forget != nil {
		hook(&s.Forget.TimeoutSeconds, s.Forget.HTTPGet)
	}
	for i := range s.Jobs {
		hook(&s.Jobs[i].TimeoutSeconds, nil)
		set(d, &s.Jobs[i].OnUnknown, onWait)
	}
}

// FirstContainer is the one where hooks run that name none; "": the template has none.
func (s *MemberSpec) FirstContainer() string {
	if len(s.Containers) == 0 {
		return ""
	}
	return s.Containers[0].Name
}
