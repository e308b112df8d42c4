package session

import (
	"slices"
	"sync"

	"github.com/stead-project/stead/proto"
)

// Said is what the node says of one matter, as servers are to know it: in the hello of a session, and later whenever it is
// something else. Safe for concurrent use; a nil one says nothing.
type Said[T any] struct {
	notify  func() // there is a message
	equal   func(a, b T) bool
	message func([]T) (*proto.FromNode, error)

	mu        sync.Mutex
	now, sent []T
}

// Set takes all that there is to say now, in order.
func (s *Said[T]) Set(now []T) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.now = slices.Clone(now)
	if !slices.EqualFunc(s.now, s.sent, s.equal) {
		s.notify()
	}
}

// all is what there is to say, taken as sent.
func (s *Said[T]) all() []T {
	if s == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sent = s.now
	return s.now
}

// changed is the message that says it, if that is not what was sent last (nil).
func (s *Said[T]) changed() (*proto.FromNode, error) {
	if s == nil {
		return nil, nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if slices.EqualFunc(s.now, s.sent, s.equal) {
		return nil, nil
	}
	s.sent = s.now
	return s.message(s.now)
}
