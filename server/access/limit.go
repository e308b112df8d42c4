package access

import (
	"crypto/sha256"
	"maps"
	"net/netip"
	"strings"
	"sync"
	"time"
)

// limit bounds what is held at once, in all and by each host.
type limit struct {
	all, each int

	mu   sync.Mutex
	held map[string]int
	sum  int
}

func newLimit(all, each int) *limit {
	return &limit{all: all, each: each, held: map[string]int{}}
}

// take counts one more of host until release is called, which counts once; nil: the limit is
// reached. An IPv6 host has a network of 64 bits to choose its address from, so that counts
// as one.
func (l *limit) take(host string) (release func()) {
	if ip, err := netip.ParseAddr(host); err == nil {
		ip = ip.Unmap().WithZone("")
		if ip.Is6() {
			net, _ := ip.Prefix(64) // 64 is always right
			host = net.String()
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.sum >= l.all || l.held[host] >= l.each {
		return nil
	}
	l.sum++
	l.held[host]++
	return sync.OnceFunc(func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.sum--
		l.held[host]--
		if l.held[host] == 0 {
			delete(l.held, host)
		}
	})
}

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
