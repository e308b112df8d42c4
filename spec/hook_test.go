package spec

import "testing"

func TestHooksThatSayWhatIsSoAnywayHashAsAbsent(t *testing.T) {
	base := plain()
	none := Clone(base)
	none.Spec.Containers[0].Lifecycle = &Lifecycle{}
	if !SameTemplate(base, none) {
		t.Error("an empty lifecycle is not the same as none")
	}
	short, long := Clone(base), Clone(base)
	short.Spec.Containers[0].Lifecycle = &Lifecycle{PreStop: &Hook{HTTPGet: &HTTPGet{}}}
	long.Spec.Containers[0].Lifecycle = &Lifecycle{PreStop: &Hook{HTTPGet: &HTTPGet{Path: "/", Scheme: "HTTP"}}}
	if !SameTemplate(short, long) || HashTemplate(short) == HashTemplate(base) {
		t.Error("the defaults of a hook's httpGet change the hash, or the hook does not")
	}
	s := SetSpec{Template: short}
	Default(&s)
	if got := s.Template.Spec.Containers[0].Lifecycle.PreStop.HTTPGet; got.Path != "/" || got.Scheme != "HTTP" {
		t.Errorf("got %+v", got)
	}
}

func TestSignalsHaveTheNumbersOfLinux(t *testing.T) {
	for name, want := range map[string]int{
		"SIGHUP": 1, "SIGINT": 2, "SIGABRT": 6, "SIGIOT": 6, "SIGKILL": 9, "SIGUSR1": 10, "SIGUSR2": 12, "SIGTERM": 15, "SIGSTKFLT": 16,
		"SIGCLD": 17, "SIGCHLD": 17, "SIGWINCH": 28, "SIGPOLL": 29, "SIGIO": 29, "SIGPWR": 30, "SIGSYS": 31,
		"SIGRTMIN": 34, "SIGRTMIN+1": 35, "SIGRTMIN+15": 49, "SIGRTMAX-14": 50, "SIGRTMAX-1": 63, "SIGRTMAX": 64,
	} {
		if got, ok := SignalNumber(name); !ok || got != want {
			t.Errorf("%s: got %d, %v; want %d", name, got, ok, want)
		}
	}
	for _, name := range []string{"", "TERM", "15", "sigterm", "SIGRTMIN+0", "SIGRTMIN+16", "SIGRTMAX-15", "SIGRTMIN+01", "SIGRTMIN-1", "SIGNOT"} {
		if got, ok := SignalNumber(name); ok {
			t.Errorf("%q is taken for signal %d", name, got)
		}
	}
}
