package worker

import (
	"strconv"
	"strings"

	"github.com/stead-project/stead/agent/probe"
	"github.com/stead-project/stead/internal/backoff"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/records/hooks"
)

// A job of the set is an ordered hook that is begun once at most: that it begins is kept before, and a run of which nobody saw the end
// is unknown.

// ended: the run of a job is over, whatever came of it.
func (s *OrderedState) ended() bool { return s.Done || s.Unknown || s.Failures > 0 }

// followJob takes in when a job may begin, and that one has no end that anybody saw: the agent before this one began it, or what
// was kept of it is lost, for no life is ordered a job before it runs.
func (w *observer) followJob(order *hooks.HookOrder) {
	state := &w.state.Ordered
	switch {
	case order.Job == nil || state.ended():
	case w.state.Phase.Rank() < records.PhaseRunning.Rank():
		w.loseJob("what the agent had kept of it is lost")
	case !state.Begun && order.ID.Compare(state.Last) <= 0:
		w.loseJob("it was started in this life before")
	case state.Begun && w.ordered == nil:
		w.loseJob("the agent was restarted while it ran")
	case !state.Begun && order.ID.Epoch < w.c.Epoch(): // it may have run in another life since, or in this one
		w.loseJob("the store was restored since it was ordered")
	case !state.Begun && order.Job.Attempt > 0:
		rest := backoff.After(w.c.Tuning.RetryFirst, w.c.Tuning.RetryMost, order.Job.Attempt)
		w.orderedDue = w.c.Now().Add(state.Since + rest - w.c.Clock())
	}
}

// loseJob: nobody knows what came of the run.
func (w *observer) loseJob(why string) {
	w.state.Ordered.Unknown, w.state.Ordered.Message = true, why
	w.saveState()
	w.log.Warn("job's end not known", "token", w.token, "reason", why)
}

// keepBegun keeps that the job begins; false: it must not.
func (w *actor) keepBegun() bool {
	last := w.state.Ordered.Last
	w.state.Ordered.Begun, w.state.Ordered.Last = true, w.state.Ordered.ID
	if err := w.writeState(); err != nil {
		w.state.Ordered.Begun, w.state.Ordered.Last = false, last
		w.log.Warn("job not begun: its state cannot be kept", "token", w.token, "err", err)
		w.orderedDue = w.c.Now().Add(w.c.Tuning.RetryMost)
		return false
	}
	return true
}

// takeJobEnd takes in the end of a job's run that did not succeed: it failed, or was ended by something else than its own exit.
func (w *observer) takeJobEnd(e orderedEnd) {
	state := &w.state.Ordered
	state.Message = e.err.Error()
	if probe.EndedItself(e.err) && !e.broken {
		state.Failures++
	} else {
		state.Unknown = true
	}
	w.log.Warn("job failed", "token", w.token, "err", e.err)
}

// lastOfJob is what is said of a job when the life is over.
func lastOfJob(w *subject) hooks.HookResult {
	r := w.state.Ordered.HookResult
	if r.Begun && !w.state.Ordered.ended() {
		r.Unknown, r.Message = true, "the life ended while it ran"
	}
	return r
}

// jobEnv are the variables that tell a job for which members it runs.
func jobEnv(order *hooks.HookOrder) []string {
	j := order.Job
	return []string{
		"STEAD_JOB=" + j.Name, "STEAD_JOB_ORDINALS=" + ordinals(j.Ordinals), "STEAD_JOB_BEFORE=" + ordinals(j.Before),
		"STEAD_JOB_RUN=" + strconv.FormatInt(order.ID.Epoch, 10) + "." + strconv.FormatInt(order.ID.Rev, 10),
	}
}

func ordinals(list []int) string {
	words := make([]string, len(list))
	for i, o := range list {
		words[i] = strconv.Itoa(o)
	}
	return strings.Join(words, " ")
}
