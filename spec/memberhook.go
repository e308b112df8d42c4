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
