package worker

import (
	"cmp"
	"maps"
	"reflect"
	"slices"
	"time"

	"github.com/stead-project/stead/agent/step"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/spec/causes"
)

// blindTime is how long what an earlier agent reported of a life stays while the runtime
// does not answer this one. Then it is not ready, as far as is known.
const blindTime = time.Minute

// report reports what was seen of the life, when it differs from the last report.
func (w *reporter) report(op step.Op) {
	if w.standing == step.Spent || w.standing == step.Closed { // Closed: also without any life
		return
	}
	blind := !w.observed
	if blind && w.c.Clock()-w.since < blindTime {
		return // nothing was seen yet: the last report stays
	}
	if !blind {
		w.advance(op)
		w.updateReady()
		w.updateChange()
	}
	r := records.Report{
		ID: w.id, Token: w.token, Node: w.c.Node.Name,
		Phase: cmp.Or(w.state.Phase, records.PhaseAssigned), Bound: w.bound(), Ready: w.state.Ready, ReadyOnce: w.state.ReadyOnce, Containers: w.containerReports(),
	}
	r.Hook, r.Change = w.state.Ordered.HookResult, w.state.Change
	if blind {
		r.Ready = false
	} else {
		r.Claim = w.claim()
		w.countBusy(&r.Claim)
	}
	if r.Ready {
		r.ReadyFor = w.c.Clock() - w.state.ReadySince
	}
	r.Cause, r.Message = w.whyNotReady(op)
	w.keepState() // first: an agent after this one must not know less than was reported
	w.emit(r)
}

// advance moves the phase forward, never back.
func (w *reporter) advance(op step.Op) {
	phase := records.PhaseAssigned
	switch {
	case w.standing != step.Open:
	case w.order == step.OrderStop:
		phase = records.PhaseStopping
	case w.allStarted():
		phase = records.PhaseRunning
	case op.Kind == step.StartContainer || w.anyStarted():
		phase = records.PhaseStarting
	default:
		phase = records.PhasePreparing
	}
	if phase.Rank() > w.state.Phase.Rank() {
		w.state.Phase = phase
		if phase != records.PhaseAssigned { // which is what no state means
			w.saveState()
		}
	}
}

// allStarted: each container and sidecar of the life runs, as far as is known.
func (w *subject) allStarted() bool {
	for c, role := range w.all() {
		if role != spec.RoleInit && w.container(c.Name).seen != step.Running {
			return false
		}
	}
	return w.life != nil
}

// anyMainStarted: a container runs that is none of initContainers.
func (w *subject) anyMainStarted() bool {
	for c, role := range w.all() {
		if role == spec.RoleMain && w.container(c.Name).seen == step.Running {
			return true
		}
	}
	return false
}

// anyStarted: any container of the life runs.
func (w *subject) anyStarted() bool {
	for _, ctr := range w.containers {
		if ctr.seen == step.Running {
			return true
		}
	}
	return false
}

// updateReady: a member is ready while all its containers and sidecars run and are ready, until it
// is to stop. While the runtime is away it stays as it was, for the probes go on.
func (w *reporter) updateReady() {
	ready := w.state.Phase == records.PhaseRunning && w.allStarted()
	for c, role := range w.all() {
		ready = ready && (role == spec.RoleInit || w.container(c.Name).Ready)
	}
	if ready == w.state.Ready {
		return
	}
	w.state.Ready = ready
	if ready {
		if !w.state.ReadyOnce {
			traceReady(w.subject)
		}
		w.state.ReadySince, w.state.ReadyOnce = w.c.Clock(), true
	}
	w.saveState()
}

// untilAvailable is the time until the member has been ready long enough to be
// available; false: it is not ready, or that was reported.
func (w *subject) untilAvailable() (time.Duration, bool) {
	enough := w.enough()
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.last == nil || !w.last.Ready || w.last.ReadyFor >= enough {
		return 0, false
	}
	return max(0, enough-(w.c.Clock()-w.state.ReadySince)), true
}

// enough is how long the member must be ready to be available.
func (w *subject) enough() time.Duration {
	if w.life == nil {
		return 0
	}
	return time.Duration(w.life.MinReadySeconds) * time.Second
}

// whyNotReady is what keeps the member from being ready: what the operation waits for,
// else what a container last said.
func (w *reporter) whyNotReady(op step.Op) (cause causes.Cause, message string) {
	if op.Kind == step.Wait && op.Cause != causes.Grace {
		return op.Cause, op.Message
	}
	names := slices.Sorted(maps.Keys(w.containers))
	for _, name := range names {
		if w.containers[name].isLoggerDead(w.c.Now()) {
			return causes.LogLost, w.inContainer(name, "its logger was killed; what it writes to its standard output fails and is lost until it is restarted")
		}
	}
	for _, name := range names {
		if ctr := w.containers[name]; ctr.seen == step.Running && w.c.Now().Sub(ctr.processRefused) < processRefusedTime {
			return causes.ProcessLimit, w.inContainer(name, "it reached the limit of processes and threads, its own or that of "+
				"all members of the host, and was refused more; see --max-processes of the agent")
		}
	}
	if w.order == step.OrderStop {
		if text := w.preStopTrouble(); text != "" {
			return causes.FailedPreStopHook, text
		}
		return "", ""
	}
	for _, name := range names {
		if ctr := w.containers[name]; ctr.Cause != "" {
			return ctr.Cause, w.inContainer(name, ctr.Message)
		}
	}
	if w.sourceGone != "" {
		return causes.ConfigGone, w.sourceGone
	}
	return "", ""
}

// processRefusedTime is how long it is reported that a container was refused a process.
const processRefusedTime = 5 * time.Minute

func (w *reporter) containerReports() []records.ContainerReport {
	var out []records.ContainerReport
	for c, role := range w.all() {
		ctr := w.container(c.Name)
		r := records.ContainerReport{
			Name: c.Name, Role: role, State: "Waiting", Restarts: ctr.Attempt - ctr.Changes, Image: ctr.imageOf(c), Cause: ctr.Cause, ExitCode: ctr.Exit,
		}
		switch {
		case ctr.seen == step.Running:
			r.State, r.Ready, r.Started = "Running", ctr.Ready, ctr.status.Started
		case ctr.over(), w.isDone(c.Name):
			r.State = "Exited"
		}
		out = append(out, r)
	}
	return out
}

// emit hands a report over, with the next sequence, unless it says nothing new. A
// member that has become available is news.
func (w *reporter) emit(r records.Report) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.last != nil && !w.isNews(r, *w.last) {
		return
	}
	r.Seq, r.At = w.c.Seq(), w.c.Now()
	w.last, w.lastEnough = &r, w.enough()
	w.c.Report(r)
}

// isNews: what is ready for long enough is reported when it becomes so, and again when what is
// long enough was changed: the store may have dropped the report that said so, for it
// said nothing new then.
func (w *reporter) isNews(r, last records.Report) bool {
	if enough := w.enough(); r.ReadyFor >= enough && (last.ReadyFor < enough || w.lastEnough != enough) {
		return true
	}
	r.Seq, r.At, r.ReadyFor = last.Seq, last.At, last.ReadyFor
	return !reflect.DeepEqual(r, last)
}

// messageSpent is the sentence for the end of a life that a newer one proves.
const messageSpent = "a newer token of the identity is known on this node; this one can never run here"

// reportEnd reports that the token is over: proven gone, or refused before anything
// was started.
func (w *reporter) reportEnd() {
	r := records.Report{ID: w.id, Token: w.token, Node: w.c.Node.Name, Phase: records.PhaseStopped, Bound: w.bound(), Seq: w.c.Seq(), At: w.c.Now()}
	cause := w.endCause()
	switch {
	case w.standing == step.Spent:
		r.Message = messageSpent
	case cause == causes.Refused:
		r.Phase, r.Cause = records.PhaseFailed, causes.OtherBoot
		if w.token.Epoch < w.c.Epoch() {
			r.Cause, r.Message = causes.Restored, "the store was restored since the member was assigned to this node; nothing was started"
			break
		}
		r.Message = "the node was booted since the member was assigned to it; nothing was started"
	case cause == causes.Reboot:
		r.Cause, r.Message = causes.Reboot, "the node was booted; nothing of the member is left"
	case cause == causes.DeadlinePassed:
		r.Cause = causes.DeadlinePassed
		r.Message = "no server confirmed the node within the member's bound (nodeLoss.after); it was ended here"
	}
	r.Hook = lastOfJob(w.subject)
	r.Change = w.state.Change
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.last != nil {
		r.Containers = w.last.Containers // how they ended, for people
	}
	w.last = &r
	w.c.Report(r)
	w.log.Info("life over", "token", w.token, "reason", cause)
}
