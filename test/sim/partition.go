package sim

// cutServer takes a server's way to the store: nodes reach it still, and it answers from
// what it knows.
func (w *Cluster) cutServer() bool { return w.someServer().setCut(true) }

func (w *Cluster) joinServer() bool { return w.someServer().setCut(false) }

func (s *server) setCut(cut bool) bool {
	if s.cut == cut {
		return false
	}
	s.cut = cut
	if cut && s.w.plant.PongFromMemory {
		s.remembers()
	}
	s.w.note("%s is cut off from the store: %v", s.name, cut)
	return true
}

// haltAgent stops the agent's process for a while, as SIGSTOP does: what it was told waits
// for it, and its members run on.
func (w *Cluster) haltAgent() bool {
	n := w.someNode()
	if n.agent == nil || n.stopped {
		return false
	}
	n.stopped = true
	w.note("%s's agent is stopped", n.name)
	return true
}

// resumeAgent lets it go on; it may look at what came first, or at its clock.
func (w *Cluster) resumeAgent() bool {
	n := w.someNode()
	if !n.stopped {
		return false
	}
	n.resume()
	return true
}

func (n *node) resume() {
	n.stopped = false
	n.w.note("%s's agent goes on", n.name)
}
