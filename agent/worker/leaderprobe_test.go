package worker

import (
	"context"
	"testing"

	"github.com/stead-project/stead/agent/probe"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
)

func leadProbed(l *records.Life) {
	l.Template.Spec.Containers[0].LeaderProbe = &spec.Probe{}
}

func leadsIn(term uint64) probe.Health {
	return probe.Health{Started: true, Ready: true, Leads: true, Term: term}
}

// A member leads by its leader probe or by its file; with both, in the higher term. The next agent knows what the probe said last.
func TestALeaderProbeSaysWhoLeads(t *testing.T) {
	scenario(t, func(t *testing.T, n *node) {
		s := speaking(n)
		p := &tellProber{now: probe.Health{Started: true, Ready: true}}
		n.prober = p
		n.run()
		n.w.Tell(with(life(5, records.GoalRun), leadProbed))
		n.wantReady()
		wantClaim := func(what string, want records.Claim) {
			t.Helper()
			n.wantLast(what, func(r records.Report) bool { return r.Ready && r.Claim == want })
		}
		p.say(leadsIn(3))
		wantClaim("leads", records.Claim{Leads: true, Term: 3})
		s.say(records.Claim{Note: "here", Leads: true, Term: 2})
		wantClaim("the higher term", records.Claim{Note: "here", Leads: true, Term: 3})
		n.kill()
		p.now = leadsIn(3)
		n.run()
		wantClaim("leads still", records.Claim{Note: "here", Leads: true, Term: 3})
		if known := p.target.Health; !p.target.Adopted || known != leadsIn(3) {
			t.Errorf("the next agent knew %+v", known)
		}
		p.say(probe.Health{Started: true, Ready: true})
		wantClaim("the file alone", records.Claim{Note: "here", Leads: true, Term: 2})
		s.say(records.Claim{})
		wantClaim("it leads no more", records.Claim{})
	})
}

// firstProber says of the first start of a container that it leads, until it is given up, and of others nothing yet.
type firstProber struct {
	noHooks
	giveUp chan struct{}
	starts int
}

func (p *firstProber) Probe(ctx context.Context, _ probe.Target, tell func(probe.Health)) {
	p.starts++
	if p.starts == 1 {
		tell(leadsIn(3))
		<-p.giveUp
		tell(probe.Health{Started: true, Failed: true, Leads: true, Term: 3})
	}
	<-ctx.Done()
}

// What a container's probe said does not hold for its next start.
func TestAContainerThatStartsAgainDoesNotLeadYet(t *testing.T) {
	scenario(t, func(t *testing.T, n *node) {
		p := &firstProber{giveUp: make(chan struct{})}
		n.prober = p
		n.run()
		n.w.Tell(with(life(5, records.GoalRun), leadProbed))
		n.wantLast("leads", func(r records.Report) bool { return r.Claim.Leads })
		close(p.giveUp)
		r := n.wantLast("started again", func(r records.Report) bool {
			return r.Containers[0].Restarts == 1 && r.Containers[0].State == "Running"
		})
		if r.Claim.Leads {
			t.Errorf("it leads before its probe said so: %+v", r)
		}
	})
}
