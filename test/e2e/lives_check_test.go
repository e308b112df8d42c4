package e2e

import (
	"fmt"
	"os"
	"sort"
	"strings"
	"testing"
)

// span is the time in which one life was heard, on the machine's boot-time clock.
type span struct {
	token       string
	first, last int64
	beats       int
}

// checkLives reads a witness file and returns what contradicts "one life": spans
// of two tokens of one identity that overlap, and lives that found the identity's
// lock held. It also returns the number of lives heard, by identity.
func checkLives(path string) (wrong []string, lives map[string]int, err error) {
	log, err := os.ReadFile(path)
	if err != nil {
		return nil, nil, err
	}
	spans := map[string]map[string]*span{}
	for line := range strings.Lines(string(log)) {
		if !strings.HasSuffix(line, "\n") { // it is being written
			break
		}
		var kind, who, token string
		var at int64
		if _, err := fmt.Sscanf(line, "%s %s %s %d", &kind, &who, &token, &at); err != nil {
			return nil, nil, fmt.Errorf("witness line %q: %w", line, err)
		}
		if kind == "DOUBLE" {
			wrong = append(wrong, fmt.Sprintf("%s: token %s found the lock held", who, token))
			continue
		}
		if spans[who] == nil {
			spans[who] = map[string]*span{}
		}
		s := spans[who][token]
		if s == nil {
			s = &span{token: token, first: at, last: at}
			spans[who][token] = s
		}
		s.first, s.last, s.beats = min(s.first, at), max(s.last, at), s.beats+1
	}
	lives = map[string]int{}
	for who, byToken := range spans {
		lives[who] = len(byToken)
		wrong = append(wrong, overlaps(who, byToken)...)
	}
	sort.Strings(wrong)
	return wrong, lives, nil
}

func overlaps(who string, byToken map[string]*span) (wrong []string) {
	all := make([]*span, 0, len(byToken))
	for _, s := range byToken {
		all = append(all, s)
	}
	sort.Slice(all, func(i, j int) bool { return all[i].first < all[j].first })
	for i := 1; i < len(all); i++ {
		if all[i].first <= all[i-1].last {
			wrong = append(wrong, fmt.Sprintf("%s: token %s was heard while %s lived", who, all[i].token, all[i-1].token))
		}
	}
	return wrong
}

func TestTheCheckerFindsOverlapsAndHeldLocks(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, log string
		want      []string
	}{
		{"one life after the other is right", "LIFE d/a-0 1.1 100\nLIFE d/a-0 1.1 200\nLIFE d/a-0 1.5 300\n", nil},
		{"two identities may live at once", "LIFE d/a-0 1.1 100\nLIFE d/a-1 1.2 100\nLIFE d/a-0 1.1 200\n", nil},
		{"two tokens of one identity may not", "LIFE d/a-0 1.1 100\nLIFE d/a-0 1.2 150\nLIFE d/a-0 1.1 200\n",
			[]string{"d/a-0: token 1.2 was heard while 1.1 lived"}},
		{"a held lock is two lives", "LIFE d/a-0 1.1 100\nDOUBLE d/a-0 1.1 150\n",
			[]string{"d/a-0: token 1.1 found the lock held"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := t.TempDir() + "/log"
			if err := os.WriteFile(path, []byte(c.log), 0o600); err != nil {
				t.Fatal(err)
			}
			got, _, err := checkLives(path)
			if err != nil || strings.Join(got, "\n") != strings.Join(c.want, "\n") {
				t.Errorf("got %q, %v; want %q", got, err, c.want)
			}
		})
	}
}
