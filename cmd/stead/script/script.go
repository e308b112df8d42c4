// Package script reads scripts of command lines as users type them, with the expected output
// and exit codes. They are run in this process against a cluster in memory (cmd/stead) and as
// the real program against real members (test/e2e).
//
// A script's lines: "$ stead ..." is a command line, without quoting; below it, each "words"
// is a line that its output must have, with these words in this order, each "! words" one that
// it must not have, and "? code" is its exit code (0 when left out). "@ stead ..." is repeated
// until all of that is true. "#" starts a comment.
package script

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// Step is one command line of a script, with the expected output.
type Step struct {
	Where string   // file:line
	Args  []string // without "stead"
	Again bool     // until it is right, for as long as the runner has patience
	Code  int
	Words []string // each the words of one line, in this order
	Never []string
}

// Read reads a script.
func Read(path string) (steps []Step, err error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	for i, line := range strings.Split(string(text), "\n") {
		where := fmt.Sprintf("%s:%d", filepath.Base(path), i+1)
		mark, rest, _ := strings.Cut(line, " ")
		if mark == "$" || mark == "@" {
			fields := strings.Fields(rest)
			if len(fields) == 0 || fields[0] != "stead" {
				return nil, fmt.Errorf("%s: only stead is run", where)
			}
			steps = append(steps, Step{Where: where, Args: fields[1:], Again: mark == "@"})
			continue
		}
		if line == "" || mark == "#" {
			continue
		}
		if len(steps) == 0 {
			return nil, fmt.Errorf("%s: no command before it", where)
		}
		s := &steps[len(steps)-1]
		switch mark {
		case "?":
			if s.Code, err = strconv.Atoi(rest); err != nil {
				return nil, fmt.Errorf("%s: %w", where, err)
			}
		case "!":
			s.Never = append(s.Never, rest)
		default:
			s.Words = append(s.Words, line)
		}
	}
	if len(steps) == 0 {
		return nil, fmt.Errorf("%s: there is no command in it", path)
	}
	return steps, nil
}

// Run runs a step with do, which returns the exit code and all that was printed, and returns
// what is wrong with it; empty: nothing. A step is repeated for at most patience.
func (s Step) Run(do func(args ...string) (int, string), patience time.Duration) string {
	for deadline := time.Now().Add(patience); ; time.Sleep(pause) {
		wrong := s.Judge(do(s.Args...))
		if wrong == "" || !s.Again || time.Now().After(deadline) {
			return wrong
		}
	}
}

// pause is the time between two runs of a step that is repeated.
const pause = 100 * time.Millisecond

// Judge returns what is wrong with a step that ended with code and printed
// text; empty: nothing.
func (s Step) Judge(code int, text string) string {
	var wrong []string
	if code != s.Code {
		wrong = append(wrong, fmt.Sprintf("exit code %d, want %d", code, s.Code))
	}
	for _, words := range s.Words {
		if !hasLine(text, words) {
			wrong = append(wrong, fmt.Sprintf("no line with %q", words))
		}
	}
	for _, words := range s.Never {
		if hasLine(text, words) {
			wrong = append(wrong, fmt.Sprintf("a line with %q", words))
		}
	}
	if len(wrong) == 0 {
		return ""
	}
	return fmt.Sprintf("%s: stead %s: %s\n%s", s.Where, strings.Join(s.Args, " "), strings.Join(wrong, "; "), text)
}

// hasLine reports whether a line of text has the words in their order.
func hasLine(text, words string) bool {
	for line := range strings.Lines(text) {
		found := true
		for _, w := range strings.Fields(words) {
			_, rest, ok := strings.Cut(line, w)
			line, found = rest, found && ok
		}
		if found {
			return true
		}
	}
	return false
}
