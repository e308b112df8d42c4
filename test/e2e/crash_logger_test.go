package e2e

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// loggersOf waits until the logger of a member of the set life is its two halves,
// and none of those that are gone.
func (l *Lab) loggersOf(name string, gone ...int) (keeper, writer int) {
	l.t.Helper()
	dir := l.path("agent", "logs", "default", name, "life")
	l.eventually(time.Minute, "two processes write the log of "+name, func() error {
		keeper, writer = 0, 0
		halves := programs("stead-node\x00", dir)
		for _, pid := range halves { // each is looked at once: they come and go
			cmdline, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
			switch text := string(cmdline); {
			case err != nil || zombie(pid) || slices.Contains(gone, pid):
				return fmt.Errorf("%d of %v is going or gone: %v", pid, halves, err)
			case strings.Contains(text, "\x00writer\x00") || strings.Contains(text, "\x00again\x00"):
				writer = pid
			default:
				keeper = pid
			}
		}
		if len(halves) != 2 || keeper == 0 || writer == 0 {
			return fmt.Errorf("of loggers %v the keeper is %d and the writer %d", halves, keeper, writer)
		}
		return nil
	})
	return keeper, writer
}

// killAtOnce kills programs of which none shall see another's end: all stand still before.
func (l *Lab) killAtOnce(pids ...int) {
	l.t.Helper()
	for _, pid := range pids {
		if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
			l.t.Fatalf("stop %d: %v", pid, err)
		}
	}
	l.eventually(time.Minute, "all stand still", func() error {
		for _, pid := range pids {
			if stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid)); err != nil || !strings.Contains(string(stat), ") T ") {
				return fmt.Errorf("%d: %v %s", pid, err, stat)
			}
		}
		return nil
	})
	l.kill(pids...)
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
	if out := l.stead("logs", "life-0"); strings.Count(out, "stead-node logger: the logger was killed and started again") != 2 {
		t.Errorf("two deaths are not told in the log:\n%s", out)
	}

	t.Log("both are killed at once: the member ends at its next write, and has a logger again")
	was := l.mustMember("life-0")
	keeper, writer = l.loggersOf("life-0")
	l.killAtOnce(keeper, writer)
	l.restartedInPlace(was)
	l.newBeat("life-0")
	l.stead("delete", "set", "life", "--wait", "--timeout", patience)
	l.assertOneLife(heard, "life-0")
}
