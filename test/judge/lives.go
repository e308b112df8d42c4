package judge

import (
	"fmt"
	"os"
	"sort"
	"strings"
)

// span is the time in which one life was heard, on the clock since boot of the machine of the witness or, if all are on one, theirs.
type span struct {
	token       string
	first, last int64
	beats       int
}

// Lives reads a witness file and returns what contradicts "one life": spans
// of two tokens of one identity that overlap, and lives that found the identity's
// lock held. It also returns the number of lives heard, by identity (namespace/name).
func Lives(path string) (wrong []string, lives map[string]int, err error) {
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
