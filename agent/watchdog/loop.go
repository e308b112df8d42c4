package watchdog

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strconv"
	"syscall"
	"time"

	"github.com/stead-project/stead/internal/durable"
	"github.com/stead-project/stead/internal/trouble"
)

// ErrTaken: another watchdog runs on the directory.
var ErrTaken = errors.New("another watchdog guards these lives")

// Watchdog is a node's watchdog. All fields but Displace, Down, Wake and Say are needed.
type Watchdog struct {
	Dir   Dir
	Clock func() time.Duration // BootTime
	// Empty and Kill look for processes in a cgroup, and kill those that are there now.
	Empty func(cgroup string) (bool, error)
	Kill  func(cgroup string) error
	// Displace ends the watchdog that runs, if it is of another program. It is called when this one could guard all lives that are
	// recorded, and again until it has the lock. nil: none is displaced.
	Displace func()
	// Down reports that the host shuts down: nothing is started any more. nil: it never does.
	Down func() bool
	// Wake receives when something may have changed in Dir; without it that is noticed
	// with the next look.
	Wake <-chan struct{}
	// Say takes what was done, a line each.
	Say func(line string)

	lives     map[string]Record
	confirmed time.Duration
	acks      map[string]string
	announced map[string]string // the token whose end was said, by member
	trouble   trouble.Last
}

// How often a watchdog looks: while it guards, while it kills, and while it has nothing to
// do. It wakes at each deadline by itself; these looks are for what changes meanwhile, and
// for a machine that slept.
const (
	pollTime = 250 * time.Millisecond
	killTime = 20 * time.Millisecond
	idleTime = time.Second
)

// takeTime is how long a lock that somebody only looks at may be held.
const takeTime = 2 * time.Second

// Run guards until ctx ends; the process of Serve never ends it while a life is guarded.
// ErrTaken: another one runs. quit asks it to end; it does if it guards nothing or, while the host shuts down, once
// nothing runs of what it guards: the agent that would take the records away has ended, and systemd waits for us.
func (w *Watchdog) Run(ctx context.Context, quit <-chan struct{}) error {
	lock, err := w.take(ctx)
	if err != nil {
		return err
	}
	defer lock.Close()
	w.lives, w.announced = map[string]Record{}, map[string]string{}
	if err := os.Remove(w.Dir.file("acks")); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("start to guard: %w", err)
	}
	leaving := false
	for {
		wait := w.look()
		if w.done() || leaving && w.nothingRuns() {
			return nil
		}
		select {
		case <-ctx.Done():
			return nil
		case <-quit:
			w.look()
			if len(w.lives) == 0 {
				return nil
			}
			leaving = leaving || w.Down != nil && w.Down()
		case <-w.Wake:
		case <-time.After(wait):
		}
	}
}

// take takes the lock; the pid in it is for Dismiss.
func (w *Watchdog) take(ctx context.Context) (*os.File, error) {
	if err := w.Dir.Make(); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(w.Dir.file("lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("start to guard: %w", err)
	}
	for waited := time.Duration(0); ; waited += killTime {
		err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			break
		}
		if waited >= takeTime || ctx.Err() != nil {
			return nil, errors.Join(ErrTaken, f.Close())
		}
		if w.Displace != nil && w.able() {
			w.Displace()
		}
		time.Sleep(killTime)
	}
	pid := []byte(strconv.Itoa(os.Getpid()))
	if _, err = f.WriteAt(pid, 0); err == nil {
		err = f.Truncate(int64(len(pid)))
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("start to guard: %w", err), f.Close())
	}
	return f, nil
}

// able reports that all that is recorded could be read and looked at: else the watchdog of another release goes on, which may know
// better.
func (w *Watchdog) able() bool {
	lives, err := w.Dir.Records()
	_, err2 := w.Dir.Confirmed()
	if err = errors.Join(err, err2); err != nil {
		w.warn("another watchdog not replaced", err)
		return false
	}
	for member, r := range lives {
		if _, err := w.Empty(r.Cgroup); err != nil {
			w.warn("another watchdog not replaced: "+member, err)
			return false
		}
	}
	return true
}

// look takes in the files, kills what is condemned, acknowledges what is guarded, and
// returns how long nothing is to be done.
func (w *Watchdog) look() time.Duration {
	w.read()
	wait := pollTime
	if len(w.lives) == 0 {
		wait = idleTime
	}
	for _, member := range slices.Sorted(maps.Keys(w.lives)) {
		r := w.lives[member]
		if now := w.Clock(); !condemned(r, w.confirmed, now) {
			wait = min(wait, max(w.confirmed+r.Bound-now, time.Millisecond))
			continue
		}
		if !w.kill(member, r) {
			wait = min(wait, killTime)
		}
	}
	w.acknowledge()
	return wait
}

// read takes in what can be read; the rest stays as it was known.
func (w *Watchdog) read() {
	lives, err := w.Dir.Records()
	if lives != nil {
		for member, r := range w.lives {
			// It is there and cannot be read.
			if _, ok := lives[member]; !ok && err != nil && exists(w.Dir.Record(member)) {
				lives[member] = r
			}
		}
		w.lives = lives
	}
	if at, err2 := w.Dir.Confirmed(); err2 != nil {
		err = errors.Join(err, err2)
	} else if at != 0 { // a file that is gone moves no deadline
		w.confirmed = at
	}
	w.warn("guarded lives not read", err)
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return !errors.Is(err, fs.ErrNotExist)
}

// kill kills what is left of a condemned life and reports whether nothing was.
func (w *Watchdog) kill(member string, r Record) bool {
	empty, err := w.Empty(r.Cgroup)
	if err == nil && empty {
		return true
	}
	if w.announced[member] != r.Token {
		w.announced[member] = r.Token
		w.say(fmt.Sprintf("%s of token %s is killed: its deadline has passed", member, r.Token))
	}
	w.warn(member+" not killed", errors.Join(err, w.Kill(r.Cgroup)))
	return false
}

// acks is the form of the file.
type acks struct {
	PID   int               `json:"pid"`
	Lives map[string]string `json:"lives"`
}

// acknowledge says which tokens are guarded: of those whose cgroups can be looked at.
func (w *Watchdog) acknowledge() {
	now := map[string]string{}
	for member, r := range w.lives {
		if w.acks[member] != r.Token {
			if _, err := w.Empty(r.Cgroup); err != nil {
				w.warn(member+" not guarded", err)
				continue
			}
		}
		now[member] = r.Token
	}
	if w.acks != nil && maps.Equal(now, w.acks) {
		return
	}
	if err := durable.PutJSONUnsynced(w.Dir.file("acks"), acks{os.Getpid(), now}); err != nil {
		w.warn("guarded lives not acknowledged", err)
		return
	}
	w.acks = now
	maps.DeleteFunc(w.announced, func(member, token string) bool { return now[member] != token })
}

// done reports that this watchdog is of no use any more: the directory is gone, and nothing of
// what was known runs.
func (w *Watchdog) done() bool {
	return !exists(string(w.Dir)) && w.nothingRuns()
}

// nothingRuns reports that no guarded life has a process.
func (w *Watchdog) nothingRuns() bool {
	for _, r := range w.lives {
		if empty, err := w.Empty(r.Cgroup); err != nil || !empty {
			return false
		}
	}
	return true
}

// warn says trouble once, not each time.
func (w *Watchdog) warn(what string, err error) {
	if err == nil {
		return
	}
	if line := what + ": " + err.Error(); w.trouble.Is(line) {
		w.say(line)
	}
}

func (w *Watchdog) say(line string) {
	if w.Say != nil {
		w.Say(line)
	}
}
