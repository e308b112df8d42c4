// Package notify wakes one goroutine: a notification says that there is something to look at,
// never what. Notifications that come while one is waiting are one.
package notify

// Signal holds at most one notification. Any goroutine may notify; one receives.
type Signal struct{ pending chan struct{} }

// New returns a signal without a notification.
func New() *Signal { return &Signal{pending: make(chan struct{}, 1)} }

// Notify leaves a notification unless one is waiting already. It never blocks.
func (s *Signal) Notify() {
	select {
	case s.pending <- struct{}{}:
	default:
	}
}

// C receives the notification, which is then gone. It is never closed.
func (s *Signal) C() <-chan struct{} { return s.pending }
