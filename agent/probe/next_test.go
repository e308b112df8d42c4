package probe

import (
	"strings"
	"testing"

	"github.com/stead-project/stead/spec"
)

func with(success, failure int32) *spec.Probe {
	return &spec.Probe{SuccessThreshold: success, FailureThreshold: failure}
}

// picture is a health in letters: S started, R ready, F failed, L leads; - if none.
func picture(h Health) string {
	out := ""
	for _, c := range []struct {
		letter string
		holds  bool
	}{{"S", h.Started}, {"R", h.Ready}, {"F", h.Failed}, {"L", h.Leads}} {
		if c.holds {
			out += c.letter
		}
	}
	if out == "" {
		return "-"
	}
	return out
}

// play gives results, written as kind (s, l, r; h: who leads) and outcome (+, -, ?), to Next and
// returns the pictures, that of Begin first.
func play(s State, results string) string {
	kinds := map[byte]Kind{'s': Startup, 'l': Liveness, 'r': Readiness, 'h': Leader}
	outcomes := map[byte]Outcome{'+': Success, '-': Failure, '?': Unknown}
	out := []string{picture(s.Health)}
	for _, r := range strings.Fields(results) {
		s = Next(s, kinds[r[0]], Result{Outcome: outcomes[r[1]], Cause: "cause"})
		out = append(out, picture(s.Health))
	}
	return strings.Join(out, " ")
}

func TestNext(t *testing.T) {
	var (
		none      = spec.Container{}
		ready     = spec.Container{ReadinessProbe: with(1, 3)}
		slowReady = spec.Container{ReadinessProbe: with(2, 1)}
		live      = spec.Container{LivenessProbe: with(1, 3)}
		start     = spec.Container{StartupProbe: with(1, 3)}
		all       = spec.Container{StartupProbe: with(1, 2), LivenessProbe: with(1, 1), ReadinessProbe: with(1, 1)}
		leads     = spec.Container{LeaderProbe: with(1, 1)}
		defaults  = spec.Container{ReadinessProbe: &spec.Probe{}}
	)
	for _, c := range []struct {
		name      string
		container spec.Container
		adopted   bool
		known     Health
		results   string
		want      string
	}{
		{"without probes it is ready", none, false, Health{}, "", "SR"},
		{"one success makes it ready", ready, false, Health{}, "r- r+", "S S SR"},
		{"it takes three failures in a row to be unready", ready, false, Health{}, "r+ r- r- r+ r- r- r-", "S SR SR SR SR SR SR S"},
		{"and one success to be ready again", ready, false, Health{}, "r+ r- r- r- r- r+", "S SR SR SR S S SR"},
		{"defaults are 1 success and 3 failures", defaults, false, Health{}, "r+ r- r- r-", "S SR SR SR S"},
		{"a success threshold counts in a row", slowReady, false, Health{}, "r+ r- r+ r+ r-", "S S S S SR S"},
		{"unknown counts for nothing", ready, false, Health{}, "r+ r- r? r- r? r? r-", "S SR SR SR SR SR SR S"},
		{"a live container is ready without a readiness probe", live, false, Health{}, "l+ l- l-", "SR SR SR SR"},
		{"liveness gives up at its threshold", live, false, Health{}, "l- l- l+ l- l- l-", "SR SR SR SR SR SR SF"},
		{"given up is final", live, false, Health{}, "l- l- l- l+ l+", "SR SR SR SF SF SF"},
		{"startup passes once and then never counts", start, false, Health{}, "s- s- s+ s- s- s- s-", "- - - SR SR SR SR SR"},
		{"startup gives up at its threshold", start, false, Health{}, "s- s- s- s+", "- - - F F"},
		{"before it has started nothing else counts", all, false, Health{}, "l- r+ s- l- r+ s+ r+ l-", "- - - - - - S SR SF"},
		{"an adopted one stays ready until three failures", ready, true, Health{Started: true, Ready: true}, "r- r- r-", "SR SR SR S"},
		{"an adopted one that was not ready is not", ready, true, Health{Started: true}, "r+", "S SR"},
		{"an adopted one does not start again", all, true, Health{Started: true, Ready: true}, "s- s- r+", "SR SR SR SR"},
		{"what was known of another run counts for nothing", ready, false, Health{Started: true, Ready: true}, "", "S"},
		{"an adopted one that was given up stays so", live, true, Health{Started: true, Failed: true}, "l+", "SF SF"},
		{"results of probes it has not are nothing", none, false, Health{}, "l- l- l- r- r- r- h+", "SR SR SR SR SR SR SR SR"},
		{"one leads while its leader probe succeeds", leads, false, Health{}, "h- h+ h? h- h+", "SR SR SRL SRL SR SRL"},
		{"who leads is ready or not by other probes", spec.Container{LeaderProbe: with(1, 1), ReadinessProbe: with(1, 1)}, false, Health{}, "h+ r+ r- h-", "S SL SRL SL S"},
		{"before it has started it does not lead", spec.Container{LeaderProbe: with(1, 1), StartupProbe: with(1, 1)}, false, Health{}, "h+ s+ h+", "- - SR SRL"},
		{"an adopted one leads until its probe fails", leads, true, Health{Started: true, Ready: true, Leads: true}, "h? h-", "SRL SRL SR"},
		{"another run does not lead because the one before did", leads, false, Health{Started: true, Ready: true, Leads: true}, "", "SR"},
		{"one that is given up does not lead", spec.Container{LeaderProbe: with(1, 1), LivenessProbe: with(1, 1)}, false, Health{}, "h+ l- h+", "SR SRL SF SF"},
		{"its thresholds count in a row", spec.Container{LeaderProbe: with(2, 2)}, false, Health{}, "h+ h+ h- h+ h- h-", "SR SR SRL SRL SRL SRL SR"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := play(Begin(c.container, c.adopted, c.known), c.results); got != c.want {
				t.Errorf("%s:\ngot  %s\nwant %s", c.results, got, c.want)
			}
		})
	}
}

// TestTheTermIsOfTheLastSuccess: a new term counts at once, and one that was taken away is not said again.
func TestTheTermIsOfTheLastSuccess(t *testing.T) {
	s := Begin(spec.Container{LeaderProbe: with(1, 2)}, false, Health{})
	for _, c := range []struct {
		result Result
		want   uint64
	}{
		{Result{Outcome: Success, Term: 3}, 3}, {Result{Outcome: Failure}, 3}, {Result{Outcome: Success, Term: 5}, 5},
		{Result{Outcome: Failure}, 5}, {Result{Outcome: Failure}, 0}, {Result{Outcome: Success}, 0},
	} {
		s = Next(s, Leader, c.result)
		if s.Term != c.want {
			t.Fatalf("after %v: term %d, want %d", c.result, s.Term, c.want)
		}
	}
	if s.Message != "" {
		t.Errorf("the result of a leader probe became the reason why a container is not ready: %q", s.Message)
	}
}

func TestWhichProbeGaveUpAndWhatGraceItSays(t *testing.T) {
	five := int64(5)
	c := spec.Container{StartupProbe: with(1, 1), LivenessProbe: &spec.Probe{FailureThreshold: 1, TerminationGracePeriodSeconds: &five}, ReadinessProbe: with(1, 1)}
	start := Next(Begin(c, false, Health{}), Startup, Result{Outcome: Failure})
	live := Next(Begin(c, true, Health{Started: true}), Liveness, Result{Outcome: Failure})
	if start.By != Startup || live.By != Liveness || !start.Failed || !live.Failed {
		t.Errorf("gave up: %q and %q", start.By, live.By)
	}
	if again := Begin(c, true, live.Health); again.By != Liveness {
		t.Errorf("an adopted container was given up by %q", again.By)
	}
	for by, want := range map[Kind]int64{Startup: 30, Liveness: 5, Readiness: 30, "": 30} {
		if got := by.Grace(&c, 30); got != want {
			t.Errorf("%q: a grace of %d s, want %d", by, got, want)
		}
	}
}

func TestTheMessageSaysWhyAndStaysWhileTheCauseDoes(t *testing.T) {
	s := Begin(spec.Container{StartupProbe: with(1, 9), ReadinessProbe: with(1, 9), LivenessProbe: with(1, 2)}, false, Health{})
	for _, c := range []struct {
		kind   Kind
		result Result
		want   string
	}{
		{Startup, Result{Outcome: Unknown, Cause: "the command could not be run", Detail: "no such file"}, "startup probe: the command could not be run: no such file"},
		{Startup, Result{Outcome: Failure, Cause: "exit code 1", Detail: "at 12:00"}, "startup probe: exit code 1: at 12:00"},
		{Startup, Result{Outcome: Failure, Cause: "exit code 1", Detail: "at 12:01"}, "startup probe: exit code 1: at 12:00"},
		{Startup, succeeded, "waiting for the readiness probe"},
		{Readiness, Result{Outcome: Failure, Cause: "status 503", Detail: ""}, "readiness probe: status 503"},
		{Liveness, Result{Outcome: Failure, Cause: "no answer", Detail: ""}, "readiness probe: status 503"},
		{Readiness, succeeded, ""},
		{Readiness, Result{Outcome: Failure, Cause: "status 503", Detail: ""}, ""},
		{Liveness, Result{Outcome: Failure, Cause: "no answer", Detail: ""}, "liveness probe: no answer"},
	} {
		s = Next(s, c.kind, c.result)
		if s.Message != c.want {
			t.Fatalf("after %s %v: got %q, want %q", c.kind, c.result, s.Message, c.want)
		}
	}
}
