package notify_test

import (
	"testing"

	"github.com/stead-project/stead/internal/notify"
)

func TestNotificationsBetweenTwoReceivesAreOne(t *testing.T) {
	s := notify.New()
	if waiting(s) {
		t.Error("a new signal has a notification")
	}
	for range 3 {
		s.Notify()
	}
	if !waiting(s) {
		t.Error("the notification is lost")
	}
	if waiting(s) {
		t.Error("one receive left a notification behind")
	}
	s.Notify()
	if !waiting(s) {
		t.Error("the signal can be used once only")
	}
}

// waiting takes the notification, if there is one.
func waiting(s *notify.Signal) bool {
	select {
	case <-s.C():
		return true
	default:
		return false
	}
}
