package step

// Ordered is how far the hook is that the server ordered for the life.
type Ordered struct {
	// State is HookDue when it may start now, and HookRunning until it has ended, also after it was canceled. HookNone: there is
	// no order, it is done, its container does not run, or its back-off is not over.
	State     HookState
	Container string
	// Untold: what the member reads of why it is to leave is not as it is to be.
	Untold bool
}

// ordered is the next operation of it: the member reads why before its hook runs.
func (s Seen) ordered() (Op, bool) {
	switch {
	case s.Ordered.Untold && s.anyRunning():
		return s.hold(Op{Kind: ShowReason}), true
	case s.Ordered.State == HookDue:
		return Op{Kind: RunOrdered, Container: s.Ordered.Container}, true
	}
	return Op{}, false
}
