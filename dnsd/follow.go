package dnsd

import (
	"context"
	"errors"
	"net/netip"
	"sync"
	"time"

	"github.com/miekg/dns"
)

// holdTime bounds how long a question for an unfollowed name waits for its answer. Resolvers
// ask again after 5 s.
const holdTime = 2 * time.Second

// Bounds of what waits, each in all and of one asker; beyond them the answer is SERVFAIL at once.
// Askers that are neither members nor this host are one together.
const (
	maxHeld, maxHeldEach           = 1024, 128 // questions
	maxInterests, maxInterestsEach = 256, 32   // being followed
	// maxFollowed is how many interests are begun in a second: each is a request to a server.
	maxFollowed = 256
)

var errTooMany = errors.New("dns: too many names are being followed")

// follows asks for what is unfollowed, each interest once at a time.
type follows struct {
	follow    func(context.Context, Interest) error
	most      time.Duration // of a call, and of a question
	now       func() time.Time
	held      *quota
	interests *quota
	running   sync.WaitGroup // calls of follow

	mu     sync.Mutex
	calls  map[Interest]*followCall
	second time.Time // begin of the second in which this many were begun
	begun  int
}

// followCall is one call of follow. After done is closed, err is what it returned.
type followCall struct {
	done chan struct{}
	err  error
}

func newFollows(follow func(context.Context, Interest) error, most time.Duration) *follows {
	return &follows{
		follow: follow, most: most, now: time.Now, calls: map[Interest]*followCall{},
		held: newQuota(maxHeld, maxHeldEach), interests: newQuota(maxInterests, maxInterestsEach),
	}
}

// wait returns when the interest is followed, or cannot be, or when ctx ends. A call goes on until
// base ends, at most so long: others may wait for it, too.
func (f *follows) wait(ctx, base context.Context, i Interest, asker netip.Addr) error {
	c := f.call(base, i, asker)
	if c == nil {
		return errTooMany
	}
	select {
	case <-c.done:
		return c.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// call is the call under way for an interest, begun if need be; nil: there are too many.
func (f *follows) call(base context.Context, i Interest, asker netip.Addr) *followCall {
	f.mu.Lock()
	defer f.mu.Unlock()
	if c := f.calls[i]; c != nil {
		return c
	}
	if now := f.now(); now.Sub(f.second) >= time.Second {
		f.second, f.begun = now, 0
	}
	if f.begun >= maxFollowed || !f.interests.acquire(asker) {
		return nil
	}
	f.begun++
	c := &followCall{done: make(chan struct{})}
	f.calls[i] = c
	f.running.Go(func() {
		ctx, cancel := context.WithTimeout(base, f.most)
		defer cancel()
		c.err = f.follow(ctx, i)
		f.mu.Lock()
		delete(f.calls, i)
		f.mu.Unlock()
		f.interests.release(asker)
		close(c.done)
	})
	return c
}

// hold answers a question for an unfollowed name: from the zone that shows all there is of the
// interest, or SERVFAIL if there is none in time. It never says of what is not known that there is none.
func (s *Server) hold(base context.Context, m *dns.Msg, i Interest, from netip.Addr) said {
	m.Rcode = dns.RcodeServerFailure
	if !s.near.has(from) {
		from = netip.Addr{}
	}
	if s.follows == nil || !s.follows.held.acquire(from) {
		return unknown
	}
	defer s.follows.held.release(from)
	ctx, cancel := context.WithTimeout(base, s.follows.most)
	defer cancel()
	for {
		err := s.follows.wait(ctx, base, i, from)
		m.Rcode = dns.RcodeSuccess
		z := s.zone.Load()
		said, next := z.fill(m)
		switch {
		case said == foreign:
			m.Rcode = dns.RcodeRefused
			return said
		case said == answered, said == aliased:
			return said
		case err == nil && i.Address.IsValid(): // it is nobody's
			name, _ := wireName(m.Question[0].Name)
			top, _ := z.authority([]byte(name))
			deny(m, top, absent)
			return answered
		case err != nil || next == i:
			m.Rcode = dns.RcodeServerFailure
			return said
		}
		i = next // another set with the same service
	}
}

// askedInterval is how often it is reported which sets were asked for.
const askedInterval = time.Minute

// reportAsked reports the sets that were asked for since it was called last.
func (s *Server) reportAsked() {
	z := s.zone.Load()
	if z == nil {
		return
	}
	for ref, t := range z.parts {
		if t.asked.Load() && t.asked.Swap(false) {
			s.cfg.Asked(ref)
		}
	}
}

// reportEachMinute reports until ctx ends.
func (s *Server) reportEachMinute(ctx context.Context) {
	tick := time.NewTicker(askedInterval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			s.reportAsked()
		}
	}
}
