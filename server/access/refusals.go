package access

import (
	"crypto/sha256"
	"maps"
	"strings"
	"sync"
	"time"
)

// The limits that a caller breaks, as the label of a metric; see dispatch for those of nodes.
const (
	limitCall       = "call"       // it was not for this caller
	limitStreams    = "streams"    // of one certificate
	limitHandshakes = "handshakes" // under way
	limitAnonymous  = "strangers"  // connections without a certificate
)

const (
	// maxLogged bounds what is remembered of refusals, 32 bytes each.
	maxLogged = 1000
	// maxLines bounds the lines about refusals in a minute: what a roleAnonymous says can be
	// different each time.
	maxLines = 100
	// wordBytes bounds what is logged of a caller's words.
	wordBytes = 200
)

// Refusals counts what was refused, and remembers what was logged, so that it is logged once.
// The zero value is ready. Its methods are safe for concurrent use.
type Refusals struct {
	mu     sync.Mutex
	logged map[[sha256.Size]byte]bool
	since  time.Time // of the minute in which lines were logged
	lines  int
	counts map[string]int64
}

func (f *Refusals) count(limit string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.counts == nil {
		f.counts = map[string]int64{}
	}
	f.counts[limit]++
}

// first tells whether this is to be logged: it was not yet, and not too much was in this
// minute. last: it is the last line of the minute.
func (f *Refusals) first(now time.Time, text string) (first, last bool) {
	key := sha256.Sum256([]byte(text))
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.logged[key] {
		return false, false
	}
	if now.Sub(f.since) >= time.Minute {
		f.since, f.lines = now, 0
	}
	if f.lines >= maxLines {
		return false, false
	}
	if len(f.logged) >= maxLogged || f.logged == nil {
		f.logged = map[[sha256.Size]byte]bool{}
	}
	f.logged[key] = true
	f.lines++
	return true, f.lines == maxLines
}

// Counts are the refusals so far, by the limit that was broken.
func (f *Refusals) Counts() map[string]int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return maps.Clone(f.counts)
}

// short is a caller's words as they are logged.
func short(text string) string {
	if len(text) <= wordBytes {
		return text
	}
	return strings.ToValidUTF8(text[:wordBytes], "") + "..."
}
