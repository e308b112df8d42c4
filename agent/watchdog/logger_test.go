package watchdog

import (
	"testing"
	"testing/synctest"
	"time"
)

func (h *host) logger(token string) *Logger {
	return &Logger{
		Record: h.dir.Record(member), Token: token, Container: "main", Run: token + ".0",
		Clock: h.clock, Empty: h.empty, Kill: h.kill,
	}
}

// SAFETY S14: the logger is the second killer, and acknowledges a deadline before the start.
func TestALoggerRefusesALifeThatMayNotBeStarted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHost(t)
		refused := func(why string) {
			t.Helper()
			if err := h.logger("1.7").Check(); err == nil || Holds(h.dir.Record(member), "main", "1.7.0") {
				t.Errorf("guarded although %s: %v", why, err)
			}
		}
		refused("there is no record")
		must(t, h.dir.Put(member, record("1.7", 10*time.Second)))
		refused("the node was never confirmed")
		must(t, h.dir.Confirm(h.clock()))
		must(t, h.dir.Put(member, record("1.8", 10*time.Second)))
		refused("the record is of another life")
		r := record("1.7", 10*time.Second)
		r.Ended = true
		must(t, h.dir.Put(member, r))
		refused("the life was ended")
		r.Ended = false
		must(t, h.dir.Put(member, r))
		h.blind = true
		refused("it could not be killed")
		h.blind = false
		l := h.logger("1.7")
		must(t, l.Check())
		if !Holds(h.dir.Record(member), "main", "1.7.0") {
			t.Error("nobody holds a run that is guarded")
		}
		l.lock.Close()
		time.Sleep(10 * time.Second)
		refused("its deadline has passed")
	})
}

func TestALoggerKillsItsLifeAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHost(t)
		must(t, h.dir.Confirm(h.clock()))
		must(t, h.dir.Put(member, record("1.7", 10*time.Second)))
		l := h.logger("1.7")
		must(t, l.Check())
		over := make(chan struct{})
		go func() { l.Guard(); close(over) }()
		h.begin(place)
		time.Sleep(9 * time.Second)
		must(t, h.dir.Confirm(h.clock()))
		time.Sleep(9 * time.Second)
		if !h.lives(place) {
			t.Fatal("killed although it was confirmed")
		}
		time.Sleep(time.Second)
		if h.lives(place) {
			t.Fatal("it lives past its deadline")
		}
		h.begin(place)
		time.Sleep(pollTime)
		if h.lives(place) {
			t.Error("what came after the first kill lives on")
		}
		must(t, h.dir.Confirm(h.clock()))
		must(t, h.dir.Put(member, record("1.8", 10*time.Second)))
		h.begin(place)
		<-over // the life is another's
		time.Sleep(5 * time.Second)
		if !h.lives(place) {
			t.Error("it killed the life after its own")
		}
	})
}
