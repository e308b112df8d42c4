package watchdog

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stead-project/stead/internal/durable"
)

// host has the cgroups of a test, and what was killed in them.
type host struct {
	dir   Dir
	start time.Time

	mu    sync.Mutex
	alive map[string]bool
	kills map[string]int
	blind bool // cgroups cannot be seen
}

func newHost(t *testing.T) *host {
	h := &host{dir: Dir(t.TempDir()), start: time.Now().Add(-time.Hour), alive: map[string]bool{}, kills: map[string]int{}}
	must(t, h.dir.Make())
	return h
}

func (h *host) clock() time.Duration { return time.Since(h.start) }

func (h *host) empty(cgroup string) (bool, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.blind {
		return false, errors.New("no cgroups are mounted")
	}
	return !h.alive[cgroup], nil
}

func (h *host) kill(cgroup string) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.alive, cgroup)
	h.kills[cgroup]++
	return nil
}

func (h *host) begin(cgroup string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.alive[cgroup] = true
}

func (h *host) lives(cgroup string) bool {
	synctest.Wait()
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.alive[cgroup]
}

// watch runs a watchdog until the test ends or quit asks it to.
func (h *host) watch(t *testing.T) (w *Watchdog, quit chan struct{}, ended chan error) {
	t.Helper()
	w = &Watchdog{Dir: h.dir, Clock: h.clock, Empty: h.empty, Kill: h.kill, Say: func(line string) { t.Log(line) }}
	ctx, cancel := context.WithCancel(t.Context())
	quit, ended = make(chan struct{}), make(chan error, 1)
	go func() { ended <- w.Run(ctx, quit) }()
	t.Cleanup(cancel)
	time.Sleep(time.Millisecond)
	synctest.Wait()
	return w, quit, ended
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func record(token string, bound time.Duration) Record {
	return Record{Namespace: "default", Set: "db", Token: token, Bound: bound, Cgroup: "/stead/default.db-0"}
}

const (
	member = "default.db-0"
	place  = "/stead/default.db-0"
)

// SAFETY S3: expiry is a state, so what lands after the first kill is killed, too.
func TestTheWatchdogKillsAtTheDeadlineAndForAsLongAsItIsPast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHost(t)
		h.begin(place)
		h.begin("/stead/default.other-0")
		must(t, h.dir.Confirm(h.clock()))
		must(t, h.dir.Put(member, record("1.7", 10*time.Second)))
		h.watch(t)
		time.Sleep(8 * time.Second)
		must(t, h.dir.Confirm(h.clock()))
		time.Sleep(9 * time.Second)
		if !h.lives(place) {
			t.Fatal("killed although it was confirmed in time")
		}
		time.Sleep(time.Second)
		if h.lives(place) {
			t.Fatal("it lives past its deadline")
		}
		h.begin(place) // a restart in place that had begun before
		time.Sleep(pollTime)
		if h.lives(place) {
			t.Error("what came after the first kill lives on")
		}
		if !h.lives("/stead/default.other-0") {
			t.Error("a life that is not guarded was killed")
		}
	})
}

func TestAnEndedLifeIsKilledWhateverIsConfirmed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHost(t)
		must(t, h.dir.Confirm(h.clock()))
		r := record("1.7", time.Hour)
		must(t, h.dir.Put(member, r))
		h.watch(t)
		h.begin(place)
		r.Ended = true
		must(t, h.dir.Put(member, r))
		time.Sleep(pollTime)
		if h.lives(place) {
			t.Error("an ended life lives")
		}
		must(t, h.dir.Remove(member)) // the agent saw that nothing is left
		time.Sleep(pollTime)
		h.begin(place)
		time.Sleep(time.Minute)
		if !h.lives(place) {
			t.Error("the life after it was killed")
		}
	})
}

func TestAWatchdogAcknowledgesWhatItCanGuard(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHost(t)
		if got := h.dir.Acks(); got != nil || h.dir.Alive() {
			t.Errorf("acknowledged without a watchdog: %v", got)
		}
		must(t, h.dir.Confirm(h.clock()))
		must(t, h.dir.Put(member, record("1.7", time.Hour)))
		h.blind = true
		_, quit, ended := h.watch(t)
		if got := h.dir.Acks()[member]; got != "" || !h.dir.Alive() {
			t.Errorf("acknowledged %q, which could not be killed; alive %v", got, h.dir.Alive())
		}
		h.mu.Lock()
		h.blind = false
		h.mu.Unlock()
		time.Sleep(pollTime)
		if got := h.dir.Acks()[member]; got != "1.7" {
			t.Errorf("acknowledged %q, want 1.7", got)
		}
		must(t, h.dir.Put(member, record("1.8", time.Hour)))
		if got := h.dir.Acks()[member]; got == "1.8" {
			t.Error("the next life is acknowledged before it was read")
		}
		time.Sleep(pollTime)
		if got := h.dir.Acks()[member]; got != "1.8" {
			t.Errorf("acknowledged %q, want 1.8", got)
		}
		// What a watchdog before this one left is no word of it.
		must(t, durable.PutJSONUnsynced(h.dir.file("acks"), acks{PID: 1, Lives: map[string]string{"default.db-0": "1.8"}}))
		if got := h.dir.Acks(); got != nil {
			t.Errorf("acknowledged by another: %v", got)
		}

		quit <- struct{}{}
		time.Sleep(time.Second)
		if !h.dir.Alive() {
			t.Fatal("it ended although it guards a life")
		}
		must(t, h.dir.Remove(member))
		quit <- struct{}{}
		if err := <-ended; err != nil {
			t.Error(err)
		}
		looks, err := os.Open(filepath.Join(string(h.dir), "lock")) // as somebody else who looks
		must(t, err)
		defer looks.Close()
		must(t, syscall.Flock(int(looks.Fd()), syscall.LOCK_SH))
		if h.dir.Alive() || h.dir.Acks() != nil {
			t.Error("a watchdog that ended counts as one")
		}
	})
}

func TestOneWatchdogADirectory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHost(t)
		h.watch(t)
		_, _, ended := h.watch(t)
		time.Sleep(2 * takeTime)
		select {
		case err := <-ended:
			if !errors.Is(err, ErrTaken) {
				t.Errorf("the second ended with %v", err)
			}
		default:
			t.Error("two watchdogs run on one directory")
		}
	})
}

// SAFETY S3: one of another release is replaced only by one that guards all that it did.
func TestAWatchdogOfAnotherReleaseIsReplacedByOneThatCanGuard(t *testing.T) {
	for name, c := range map[string]struct {
		harm func(h *host) error
		want bool
	}{
		"all can be read":         {func(*host) error { return nil }, true},
		"a record is damaged":     {func(h *host) error { return os.WriteFile(h.dir.Record("default.db-1"), []byte("{"), 0o600) }, false},
		"the moment is damaged":   {func(h *host) error { return os.WriteFile(h.dir.file("confirmed"), []byte("9z"), 0o600) }, false},
		"no cgroup can be looked": {func(h *host) error { h.mu.Lock(); defer h.mu.Unlock(); h.blind = true; return nil }, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := newHost(t)
				h.begin(place)
				must(t, h.dir.Confirm(h.clock()))
				must(t, h.dir.Put(member, record("1.7", 10*time.Second)))
				ctx, displace := context.WithCancel(t.Context())
				first := make(chan error, 1)
				old := &Watchdog{Dir: h.dir, Clock: h.clock, Empty: h.empty, Kill: h.kill}
				go func() { first <- old.Run(ctx, nil) }()
				time.Sleep(time.Millisecond)
				must(t, c.harm(h))
				second := make(chan error, 1)
				next := &Watchdog{Dir: h.dir, Clock: h.clock, Empty: h.empty, Kill: h.kill, Displace: displace}
				go func() { second <- next.Run(t.Context(), nil) }()
				time.Sleep(takeTime + pollTime)
				if !c.want {
					select {
					case err := <-second:
						if !errors.Is(err, ErrTaken) {
							t.Errorf("the next ended with %v", err)
						}
					default:
						t.Error("the next goes on")
					}
					if ctx.Err() != nil {
						t.Error("the first was ended")
					}
					displace()
					return
				}
				must(t, <-first)
				if got := h.dir.Acks()[member]; got != "1.7" || !h.dir.Alive() {
					t.Errorf("the next acknowledges %q", got)
				}
				time.Sleep(10 * time.Second)
				if h.lives(place) {
					t.Error("under the next, a life lives past its deadline")
				}
			})
		})
	}
}

func TestWhatIsGoneOrDamagedMovesNoDeadline(t *testing.T) {
	for name, harm := range map[string]func(d Dir) error{
		"the moment is gone":    func(d Dir) error { return os.Remove(filepath.Join(string(d), "confirmed")) },
		"the moment is damaged": func(d Dir) error { return os.WriteFile(filepath.Join(string(d), "confirmed"), []byte("9z"), 0) },
		"the record is damaged": func(d Dir) error { return os.WriteFile(d.Record(member), []byte("{"), 0) },
		// At once: of one that goes file by file, a life is free whose record goes first.
		"all of the directory goes": func(d Dir) error { return os.Rename(string(d), string(d)+".gone") },
	} {
		for _, killer := range []string{"watchdog", "logger"} {
			t.Run(name+", "+killer, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					h := newHost(t)
					must(t, h.dir.Confirm(h.clock()))
					must(t, h.dir.Put(member, record("1.7", 10*time.Second)))
					ended := make(chan error, 1)
					if killer == "watchdog" {
						_, _, ended = h.watch(t)
					} else {
						l := h.logger("1.7")
						must(t, l.Check())
						go func() { l.Guard(); ended <- nil }()
					}
					h.harmed(t, func() error { return harm(h.dir) })
					must(t, h.dir.Make())
					must(t, h.dir.Remove(member))
					if killer == "logger" || name == "all of the directory goes" {
						must(t, <-ended) // nothing is left to guard
					}
				})
			})
		}
	}
}

// harmed wants a life that was confirmed just now killed at its deadline, and not before,
// although harm was done in between.
func (h *host) harmed(t *testing.T, harm func() error) {
	t.Helper()
	time.Sleep(2 * time.Second)
	h.begin(place)
	must(t, harm())
	time.Sleep(7 * time.Second)
	if !h.lives(place) {
		t.Error("killed before its deadline")
	}
	time.Sleep(time.Second)
	if h.lives(place) {
		t.Error("it lives past its deadline")
	}
}

// At shutdown nobody takes the record of a life away; the watchdog goes on while the life has processes, kills them at their
// deadline, and does not keep the host from going down afterwards.
func TestAWatchdogEndsWithTheLastProcessWhenItsHostShutsDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHost(t)
		must(t, h.dir.Confirm(h.clock()))
		r := record("1.7", time.Minute)
		must(t, h.dir.Put(member, r))
		h.begin(r.Cgroup)
		down := false
		w, quit, ended := h.watch(t)
		w.Down = func() bool { return down }
		ends := func() bool {
			select {
			case err := <-ended:
				must(t, err)
				return true
			case <-time.After(2 * idleTime):
				return false
			}
		}
		quit <- struct{}{}
		must(t, h.kill(r.Cgroup))
		if ends() {
			t.Fatal("it ended although the host is up, where the agent may start the life's container again")
		}
		h.begin(r.Cgroup)
		down = true
		quit <- struct{}{}
		if ends() {
			t.Fatal("it ended before the life did")
		}
		time.Sleep(time.Minute)
		if h.lives(r.Cgroup) {
			t.Error("a life past its deadline lives on while the host shuts down")
		}
		if !ends() {
			t.Error("it goes on although nothing runs and the host shuts down")
		}
	})
}
