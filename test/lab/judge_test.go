package lab

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/stead-project/stead/test/judge"
)

// stall is when a host began to go on after its kernel had stalled as a whole, and a guarded life on it whose deadline had
// passed. The killers of that life are processes of the host: the life may run until they have run, and no longer.
type stall struct {
	who, token string
	at         time.Duration // on the clock of the witness
}

// stalled is how long a life past its deadline may be heard after a stall of its kernel (docs/GUARANTEES.md, "What the
// killers of a guarded life cannot do"). The hosts of the lab have one processor, of a machine that others use.
const stalled = time.Second

// clock is that of the witness.
func clock(t testing.TB) time.Duration {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts); err != nil {
		t.Fatal(err)
	}
	return time.Duration(ts.Nano())
}

// judge fails the test when the witness heard two lives of one identity at once, or nothing of one.
func (h *hosts) judge() {
	h.Helper()
	text, err := os.ReadFile(h.heard)
	if err != nil {
		h.Fatal(err)
	}
	rest, late := withoutStalls(string(text), h.stalls)
	file := filepath.Join(h.dir, "judged.log")
	if err := os.WriteFile(file, []byte(rest), 0o600); err != nil {
		h.Fatal(err)
	}
	wrong, lives, err := judge.Lives(file)
	if err != nil {
		h.Fatal(err)
	}
	for _, w := range wrong {
		judge.Broken(h, "two lives: %s", w)
	}
	for _, name := range slices.Concat(holds, guards) {
		if lives["default/"+name] == 0 {
			h.Errorf("the witness heard nothing of %s", name)
		}
	}
	h.Logf("lives heard: %v; after stalls of their kernels: %v", lives, late)
}

// withoutStalls takes away what lives said within the first moments after a stall, and says how late the last of it was
// for each.
func withoutStalls(text string, stalls []stall) (rest string, late []time.Duration) {
	late = make([]time.Duration, len(stalls))
	var kept strings.Builder
	for line := range strings.Lines(text) {
		var kind, who, token string
		var at time.Duration
		_, err := fmt.Sscanf(line, "%s %s %s %d", &kind, &who, &token, &at)
		n := slices.IndexFunc(stalls, func(s stall) bool {
			return s.who == who && s.token == token && at >= s.at && at < s.at+stalled
		})
		if err == nil && kind == "LIFE" && n >= 0 {
			late[n] = max(late[n], at-stalls[n].at)
			continue
		}
		kept.WriteString(line)
	}
	return kept.String(), late
}

func TestWhatIsHeardAfterAStallIsTakenAwayForAMoment(t *testing.T) {
	at := 5 * time.Second
	line := func(token string, at time.Duration) string { return fmt.Sprintf("LIFE default/a-0 %s %d\n", token, at) }
	before, next := line("1.1", at-time.Second), line("1.2", at-time.Millisecond)
	after, other := line("1.1", at+stalled/2), line("1.2", at+stalled/2)
	tooLate := line("1.1", at+stalled)
	rest, late := withoutStalls(before+next+after+other+tooLate, []stall{{"default/a-0", "1.1", at}})
	if rest != before+next+other+tooLate || len(late) != 1 || late[0] != stalled/2 {
		t.Errorf("left %q, late %v", rest, late)
	}
}
