package e2e

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stead-project/stead/test/judge"
)

// record is a test that is told of failures and goes on.
type record struct {
	testing.TB
	said []string
}

func (r *record) Helper()             {}
func (r *record) Logf(string, ...any) {}
func (r *record) Error(args ...any)   { r.said = append(r.said, fmt.Sprint(args...)) }
func (r *record) Errorf(format string, args ...any) {
	r.said = append(r.said, fmt.Sprintf(format, args...))
}

// The runner gives no second chance to a test in which one of these speaks.
func TestTheJudgesSayThatAPromiseIsBroken(t *testing.T) {
	t.Parallel()
	for name, speak := range map[string]func(l *Lab){
		"two lives": func(l *Lab) {
			log := l.path("log")
			if err := os.WriteFile(log, []byte("LIFE default/a-0 1.1 100\nDOUBLE default/a-0 1.2 150\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			l.assertOneLife(log, "a-0")
		},
		"lost writes":       func(l *Lab) { l.judgeLoad(`{"acked":10,"lost":1,"unreadable":0}`) },
		"unreadable writes": func(l *Lab) { l.judgeLoad(`{"acked":10,"lost":0,"unreadable":1}`) },
		"a lost mark":       func(l *Lab) { l.assertMark(0) },
		"a lost file":       func(l *Lab) { l.wantMarks(map[string]string{"life-0": "text"}) },
	} {
		r := &record{}
		speak(&Lab{t: r, Dir: t.TempDir()})
		if len(r.said) != 1 || !strings.HasPrefix(r.said[0], judge.Marker) {
			t.Errorf("%s: the judge says %q, want one sentence that begins with %s", name, r.said, judge.Marker)
		}
	}
	r := &record{}
	(&Lab{t: r}).judgeLoad(`{"acked":10,"lost":0,"unreadable":0}`)
	if len(r.said) != 0 {
		t.Errorf("of a good load the judge says %q", r.said)
	}
}
