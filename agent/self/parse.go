package self

import (
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec/scalar"
)

// The files that count.
const (
	noteFile   = "note"
	leaderFile = "leader"
	busyFile   = "busy"
)

// bounds is the largest content of each file, in bytes; that of a term as text.
var bounds = map[string]int64{noteFile: records.MaxNote, leaderFile: 20, busyFile: records.MaxBusy}

// parse makes a claim of the content of the files that are there and no larger than their bounds. What is no text or
// no term counts as absent.
func parse(files map[string][]byte) (c records.Claim) {
	c.Note = text(files[noteFile], records.MaxNote)
	if content, there := files[busyFile]; there {
		c.Busy = text(content, records.MaxBusy)
		if c.Busy == "" {
			c.Busy = "it gave no reason"
		}
	}
	if content, there := files[leaderFile]; there {
		term := strings.TrimSpace(string(content))
		number, err := strconv.ParseUint(term, 10, 64)
		if term == "" || err == nil {
			c.Leads, c.Term = true, number
		}
	}
	return c
}

// text is content on one line that moves no cursor; "": it is none, or none that fits.
func text(content []byte, most int) string {
	if !utf8.Valid(content) {
		return ""
	}
	line := scalar.Plain(strings.TrimRight(string(content), "\n"))
	if len(line) > most { // a character that is replaced grows
		return ""
	}
	return line
}
