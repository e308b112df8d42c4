package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// followed is the life set with a second container that follows the set's events.
func followed() string {
	return strings.Replace(lifeSet, "  volumeClaimTemplates:",
		"      - name: reader\n        image: stead.local/tool:1\n        imagePullPolicy: Never\n        command: [/box, follow]\n  volumeClaimTemplates:", 1)
}

// told is what the member's process reads of a file in /run/stead.
func (l *Lab) told(member, file string) (string, error) {
	out, err := l.trySteadFor(time.Minute, "exec", member, "-c", "life", "--", "/box", "command", "cat", "/run/stead/"+file)
	if err != nil {
		return "", fmt.Errorf("%w: %s", err, out)
	}
	return out, nil
}

// sameEvents waits until all members are told the same, with that in it, and returns it.
func (l *Lab) sameEvents(with string, members ...string) (events string) {
	l.t.Helper()
	l.eventually(time.Minute, "all are told the same, and "+with, func() error {
		var first string
		for i, m := range members {
			out, err := l.told(m, "events")
			if err != nil {
				return err
			}
			if i == 0 {
				first = out
			}
			if out != first || !strings.Contains(out, with) {
				return fmt.Errorf("%s is told\n%s\n%s is told\n%s", members[0], first, m, out)
			}
		}
		events = first
		return nil
	})
	return events
}

// confirmed is how long from now the member's files are confirmed, as its process sees it.
func (l *Lab) confirmed(member string) (time.Duration, error) {
	l.t.Helper()
	pids := l.pidsOf(member)
	if len(pids) == 0 {
		return 0, fmt.Errorf("%s has no process", member)
	}
	var at [2]float64
	for i, file := range []string{"run/stead/confirmed", "proc/uptime"} {
		b, err := os.ReadFile(fmt.Sprintf("/proc/%d/root/%s", pids[0], file))
		if err != nil {
			return 0, err
		}
		if at[i], err = strconv.ParseFloat(strings.Fields(string(b))[0], 64); err != nil {
			return 0, err
		}
	}
	return time.Duration((at[0] - at[1]) * float64(time.Second)), nil
}

func TestMembersFollowOneHistoryOfTheirSet(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.startAll(l.toolArchive())
	l.apply("life", followed(), "--wait", "--timeout", patience)
	first := l.sameEvents(`"kind":"Ready","member":"life-2"`, "life-0", "life-1", "life-2")

	t.Log("agent and server are killed while the set grows and shrinks")
	l.stead("scale", "life", "--replicas", "4")
	if err := l.agent.signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if err := l.server.signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	const ttl, blur = 4 * time.Second, 20 * time.Millisecond
	l.startServer("--session-ttl", ttl.String())
	l.startAgent()
	l.waitReady("life-3", nil)
	l.stead("scale", "life", "--replicas", "3", "--wait", "--timeout", patience)
	all := l.sameEvents(`"kind":"Left","member":"life-3"`, "life-0", "life-1", "life-2")
	if !strings.HasPrefix(all, first) {
		t.Errorf("what was told at first\n%sis not the begin of what is told now\n%s", first, all)
	}
	l.eventually(time.Minute, "set.json includes the last event or the one before", func() error {
		var set struct{ Event struct{ Number int } }
		out, err := l.told("life-1", "set.json")
		if err == nil {
			err = json.Unmarshal([]byte(out), &set)
		}
		told, err2 := l.told("life-1", "events")
		if n := strings.Count(told, "\n"); err != nil || err2 != nil || set.Event.Number > n || set.Event.Number < n-1 {
			return fmt.Errorf("it includes event %d of %d, %v, %v: %s", set.Event.Number, n, err, err2, out)
		}
		return nil
	})
	for _, want := range []string{
		`"kind":"Joined","member":"life-0","ordinal":0,`, `"kind":"ReplicasChanged","ordinal":-1,"replicas":4,`,
		`"kind":"Joined","member":"life-3","ordinal":3,`, `"kind":"Ready","member":"life-3"`, `"reason":"ScaleDown"`,
	} {
		if !strings.Contains(all, want) {
			t.Errorf("nobody is told %s:\n%s", want, all)
		}
	}

	t.Log("a process that watches the directory saw each event once")
	l.eventually(time.Minute, "the reader saw all", func() error {
		told, err := l.told("life-0", "events")
		out, err2 := l.trySteadFor(time.Minute, "logs", "life-0", "-c", "reader")
		if n := strings.Count(out, "event "); err != nil || err2 != nil || n != strings.Count(told, "\n") || strings.Contains(out, "gap") {
			return fmt.Errorf("%d events: %v, %v\n%s\nof\n%s", n, err, err2, out, told)
		}
		return nil
	})

	t.Log("without a server what is told is confirmed no longer, and with one it is again")
	confirmed := func(want bool) {
		t.Helper()
		l.eventually(time.Minute, fmt.Sprint("it is confirmed: ", want), func() error {
			left, err := l.confirmed("life-2")
			if left > ttl+blur { // both clocks are told in hundredths of a second
				t.Fatalf("it is confirmed for %v, and nobody could be asked later than now", left)
			}
			if err != nil || left > 0 != want {
				return fmt.Errorf("for %v, %v", left, err)
			}
			return nil
		})
	}
	confirmed(true)
	if err := l.server.signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	confirmed(false)
	l.startServer("--session-ttl", ttl.String())
	confirmed(true)
}
