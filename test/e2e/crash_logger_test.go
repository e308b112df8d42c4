package e2e

import (
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"
)

// loggersOf waits until the logger of a member of the set life is its two halves,
// and none of those that are gone.
func (l *Lab) loggersOf(name string, gone ...int) (keeper, writer int) {
	l.t.Helper()
	l.eventually(time.Minute, "two processes write the log of "+name, func() error {
		dir := l.path("agent", "logs", "default", name, "life")
		all, writers := l.living("stead-node\x00", dir), append(l.living("\x00writer\x00", dir), l.living("\x00again\x00", dir)...)
		if len(all) != 2 || len(writers) != 1 {
			return fmt.Errorf("loggers %v, writers among them %v", all, writers)
		}
		keeper, writer = all[0]+all[1]-writers[0], writers[0]
		for _, pid := range gone {
			if pid == keeper || pid == writer {
				return fmt.Errorf("%d is still there", pid)
			}
		}
		return nil
	})
	return keeper, writer
}

// living are the programs of these parts that have not ended.
func (l *Lab) living(parts ...string) (pids []int) {
	for _, pid := range programs(parts...) {
		if !zombie(pid) {
			pids = append(pids, pid)
		}
	}
	return pids
}

// newBeat waits until a member's log has a beat that it had not when asked.
func (l *Lab) newBeat(name string) {
	l.t.Helper()
	was := ""
	l.eventually(time.Minute, name+" writes on", func() error {
		out, err := l.trySteadFor(time.Minute, "logs", name, "--tail", "1")
		if err != nil {
			return fmt.Errorf("%w: %s", err, out)
		}
		lines := strings.Split(strings.TrimSpace(out), "\n")
		now := lines[len(lines)-1]
		before := was
		if was == "" {
			was = now
		}
		if before == "" || now == before || !strings.HasPrefix(now, "beat ") {
			return fmt.Errorf("its log ends with %q", now)
		}
		return nil
	})
}

func TestAKilledLoggerLosesNoMember(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.startAll(l.toolArchive())
	heard := l.startWitness()
	set := strings.Replace(lifeWith("command: [/box, life]", "command: [/box, life, --say]"), "replicas: 3", "replicas: 1", 1)
	l.apply("life", set, "--wait", "--timeout", patience)
	kept := l.stayOf("life-0")

	t.Log("one half of its logger is killed, and then the other")
	_, writer := l.loggersOf("life-0")
	l.kill(writer)
	keeper, _ := l.loggersOf("life-0", writer)
	l.newBeat("life-0")
	l.kill(keeper)
	_, writer = l.loggersOf("life-0", keeper)
	l.newBeat("life-0")

	t.Log("also while agent and containerd are away")
	_ = l.agent.signal(syscall.SIGKILL)
	_ = l.containerd.signal(syscall.SIGKILL)
	l.kill(writer)
	keeper, _ = l.loggersOf("life-0", writer)
	l.kill(keeper)
	l.loggersOf("life-0", keeper)
	l.startContainerd()
	l.startAgent()
	l.newBeat("life-0")
	l.assertStay(kept)
	if out := l.stead("logs", "life-0"); strings.Count(out, "stead-node logger: it was killed and began anew") != 2 {
		t.Errorf("two deaths are not told in the log:\n%s", out)
	}

	t.Log("both are killed at once: the member ends at its next write, and has a logger again")
	was := l.mustMember("life-0")
	keeper, writer = l.loggersOf("life-0")
	l.kill(keeper, writer)
	l.restartedInPlace(was)
	l.newBeat("life-0")
	l.stead("delete", "set", "life", "--wait", "--timeout", patience)
	l.assertOneLife(heard, "life-0")
}
