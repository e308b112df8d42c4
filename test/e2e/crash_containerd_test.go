package e2e

import (
	"fmt"
	"math/rand/v2"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/stead-project/stead/test/judge"
)

// stay is what must not change of a member that a fault does not concern.
type stay struct {
	address, token string
	begun          string // the first process of each container: commands run in it come and go
}

// stayOf notes it for members that are ready.
func (l *Lab) stayOf(names ...string) map[string]stay {
	l.t.Helper()
	out := map[string]stay{}
	for _, name := range names {
		m := l.waitReady(name, nil)
		out[name] = stay{m.Status.Address, m.Status.Token, l.begun(name)}
	}
	return out
}

// assertStay fails the test when one of them changed.
func (l *Lab) assertStay(was map[string]stay) {
	l.t.Helper()
	for name, before := range was {
		m := l.waitReady(name, nil)
		if now := (stay{m.Status.Address, m.Status.Token, l.begun(name)}); now != before {
			judge.Broken(l.t, "%s is %+v, was %+v", name, now, before)
		}
	}
}

// mark writes a file into the volume of a member of the set life; assertMark fails
// the test when it is not there any more.
func (l *Lab) mark(ordinals ...int) {
	l.t.Helper()
	for _, n := range ordinals {
		if err := os.WriteFile(l.markPath(n), fmt.Appendf(nil, "of life-%d", n), 0o600); err != nil {
			l.t.Fatal(err)
		}
	}
}

func (l *Lab) assertMark(ordinals ...int) {
	l.t.Helper()
	for _, n := range ordinals {
		if got, err := os.ReadFile(l.markPath(n)); err != nil || string(got) != fmt.Sprintf("of life-%d", n) {
			judge.Broken(l.t, "the volume of life-%d holds %q, %v", n, got, err)
		}
	}
}

func (l *Lab) markPath(n int) string {
	return l.path("agent", "volumes", "default", "life", fmt.Sprintf("data-%d", n), "data", "mark")
}

// crashSeed draws the moments of a test's faults and prints how to draw them again.
func crashSeed(t *testing.T) *rand.Rand {
	seed := uint64(time.Now().UnixNano())
	if text := os.Getenv("STEAD_CRASH_SEED"); text != "" {
		if _, err := fmt.Sscan(text, &seed); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("the moments are of STEAD_CRASH_SEED=%d", seed)
	return rand.New(rand.NewPCG(seed, 0))
}

// crashContainerd kills containerd n times at moments drawn from r, and starts it
// again each time.
func (l *Lab) crashContainerd(r *rand.Rand, n int) {
	l.t.Helper()
	for range n {
		time.Sleep(time.Duration(r.IntN(700)) * time.Millisecond)
		if err := l.containerd.signal(syscall.SIGKILL); err != nil {
			l.t.Fatal(err)
		}
		time.Sleep(time.Duration(r.IntN(300)) * time.Millisecond)
		l.startContainerd()
	}
}

func TestContainerdIsKilledAgainAndAgainWhileMembersStartAndStop(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	r := crashSeed(t)
	l.startAll(l.toolArchive())
	heard := l.startWitness()
	l.apply("life", lifeSet, "--wait", "--timeout", patience)
	l.mark(0, 1, 2)
	kept := l.stayOf("life-0", "life-1")
	third := l.mustMember("life-2").Status.Address

	for _, n := range []int{5, 2, 4} {
		t.Logf("containerd is killed while the set goes to %d members", n)
		l.stead("scale", "life", "--replicas", fmt.Sprint(n))
		l.crashContainerd(r, 3)
		l.stead("scale", "life", "--replicas", fmt.Sprint(n), "--wait", "--timeout", patience)
		l.assertStay(kept)
	}
	if now := l.mustMember("life-2").Status.Address; now != third {
		judge.Broken(t, "life-2 has the address %s, had %s", now, third)
	}

	t.Log("while it is away members stay ready, and what is away is told")
	if err := l.containerd.signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	l.waitCause("life-1", "RuntimeUnavailable")
	l.waitReady("life-1", nil)
	if m := l.waitCause("life-1", "RuntimeUnavailable"); m.Status.Token != kept["life-1"].token {
		judge.Broken(t, "without containerd life-1 is another: %+v", m.Status)
	}
	l.startContainerd()
	l.eventually(time.Minute, "it is not told any more", func() error {
		m, err := l.member("life-1")
		if err == nil && m.Status.Cause != "" {
			err = fmt.Errorf("%+v", m.Status)
		}
		return err
	})
	l.assertStay(kept)

	t.Log("containerd is killed while the set is deleted")
	l.stead("delete", "set", "life")
	l.crashContainerd(r, 3)
	l.stead("wait", "life", "--for", "deleted", "--timeout", patience)
	for _, name := range []string{"life-0", "life-1", "life-2", "life-3", "life-4"} {
		if pids := l.pidsOf(name); len(pids) > 0 {
			judge.Broken(t, "processes of %s are left: %v", name, pids)
		}
	}
	l.assertOneLife(heard, "life-0", "life-1", "life-2", "life-3", "life-4")
	l.assertMark(0, 1, 2)
}
