package spec

// Job is a command that the set runs once: when all its first members are ready, or after each growth when all members are ready.
type Job struct {
	// Name tells it from the set's other jobs, and is kept with what has run: another name is another job.
	Name string `json:"name"`
	// After is Bootstrapped: once in the life of the set and its data; or Grown: once for the members that came since.
	After string `json:"after"`
	// Container is where it runs, one of the template's containers; default: the first one.
	Container string `json:"container,omitempty"`
	// Exec runs a command with the container's variables and those that say for which members it runs. Exit 0 is success, another
	// exit code up to 127 a failure, after which it is run again with back-off. What it starts ends with it.
	Exec *ExecAction `json:"exec,omitempty"`
	// TimeoutSeconds is how long one run may take, 1 to 604800 (a week); default 3600. One that takes longer is broken off: how
	// far it came is unknown.
	TimeoutSeconds int32 `json:"timeoutSeconds,omitempty"`
	// OnUnknown is Wait (default): a run of which nobody saw the end is not repeated before a user says so; or Repeat: it is, for
	// the command may be run again at any time.
	OnUnknown string `json:"onUnknown,omitempty"`
}

// Hook is the command as such.
func (j *Job) Hook() MemberHook {
	return MemberHook{Container: j.Container, Exec: j.Exec, TimeoutSeconds: j.TimeoutSeconds}
}

// FindJob finds a job by its name; nil: there is none.
func (s *SetSpec) FindJob(name string) *Job {
	for i := range s.Jobs {
		if s.Jobs[i].Name == name {
			return &s.Jobs[i]
		}
	}
	return nil
}
