package server

import (
	"crypto/sha256"
	"maps"
	"strings"
	"sync"
	"time"

	"github.com/stead-project/stead/server/dispatch"
)

// The limits that a caller breaks; see dispatch for those of nodes.
const (
	limitCall       dispatch.Limit = "call"       // it was not for this caller
	limitStreams    dispatch.Limit = "streams"    // of one certificate
	limitHandshakes dispatch.Limit = "handshakes" // under way
	limitStrangers  dispatch.Limit = "strangers"  // connections without a certificate
)

const (
	// maxTold bounds what is remembered of refusals, 32 bytes each.
	maxTold = 1000
	// maxLines bounds the lines about refusals in a minute: what a stranger says can be
	// different each time.
	maxLines = 100
	// wordBytes bounds what is logged of a caller's words.
	wordBytes = 200
)

// refusals remembers what was logged, so that it is logged once, and counts.
type refusals struct {
	mu     sync.Mutex
	told   map[[sha256.Size]byte]bool
	since  time.Time // of the minute in which lines were logged
	lines  int
	counts map[dispatch.Limit]int64
}

func (f *refusals) count(limit dispatch.Limit) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.counts == nil {
		f.counts = map[dispatch.Limit]int64{}
	}
	f.counts[limit]++
}

// first tells whether this is to be logged: it was not yet, and not too much was in this
// minute. last: it is the last line of the minute.
func (f *refusals) first(now time.Time, text string) (first, last bool) {
	key := sha256.Sum256([]byte(text))
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.told[key] {
		return false, false
	}
	if now.Sub(f.since) >= time.Minute {
		f.since, f.lines = now, 0
	}
	if f.lines >= maxLines {
		return false, false
	}
	if len(f.told) >= maxTold || f.told == nil {
		f.told = map[[sha256.Size]byte]bool{}
	}
	f.told[key] = true
	f.lines++
	return true, f.lines == maxLines
}

func (f *refusals) numbers() map[dispatch.Limit]int64 {
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
