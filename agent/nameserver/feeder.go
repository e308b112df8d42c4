package nameserver

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/stead-project/stead/dnsd"
	"github.com/stead-project/stead/internal/backoff"
	"github.com/stead-project/stead/internal/notify"
	"github.com/stead-project/stead/internal/trouble"
	"github.com/stead-project/stead/spec"
)

// FeederConfig is what a Feeder needs; all of it.
type FeederConfig struct {
	Task Task
	// Dir is where processes are found, on tmpfs; it is made, and closed to other users.
	Dir string
	// Program is the path of stead-dns, and Sum that of its content.
	Program string
	Sum     [sha256.Size]byte
	// Started takes the id of a process that was started.
	Started func(pid int)
	// Follow and Asked are as in dnsd.Config.
	Follow func(context.Context, dnsd.Interest) error
	Asked  func(spec.SetRef)
	Logger *slog.Logger
}

// Feeder is an agent's side of its host's name server: it starts it, gives it addresses and records, and starts it
// again. One Feeder at a time works on a directory. Its methods may be called from any goroutine, but Open before Run.
type Feeder struct {
	cfg     FeederConfig
	path    string         // of the process with our task
	sockets []dnsd.Sockets // of all addresses; held for as long as we live
	changed *notify.Signal // there is something to send
	log     *slog.Logger
	trouble trouble.Last // of Run

	mu      sync.Mutex
	newest  dnsd.Snapshot
	number  int           // of newest; 0: there is none
	listed  bool          // a server has said that these are all sets
	done    int           // the newest number that is answered from
	shown   chan struct{} // closed when done grows or nobody is fed, and made anew
	up      bool          // a process is fed
	answers []followed    // to be sent once newest is
	asked   bool          // for counts
	counts  dnsd.Counts   // as they were last
	counted chan struct{} // closed when counts come, and made anew
}

// NewFeeder returns a Feeder that has nothing to do with any process yet.
func NewFeeder(cfg FeederConfig) *Feeder {
	return &Feeder{
		cfg: cfg, path: cfg.Task.path(cfg.Dir, cfg.Sum), changed: notify.New(), log: cfg.Logger,
		shown: make(chan struct{}), counted: make(chan struct{}),
	}
}

// Open takes the addresses of the task: from processes that answer on them, or else it binds them. Processes of
// another cluster or boot are ended. It may be called again after an error.
func (f *Feeder) Open(ctx context.Context) error {
	if err := os.MkdirAll(f.cfg.Dir, 0o700); err != nil {
		return err
	}
	ours, others := running(f.cfg.Dir, f.cfg.Task.home(), "")
	have := slices.Concat(f.sockets, takeSockets(ours), takeSockets(others))
	f.sockets = nil
	for _, path := range others {
		if _, err := ask(path, request{Ask: askQuit}, nil); err != nil && !isRefused(err) {
			f.log.Warn("name server of another cluster or boot not ended", "path", path, "err", err)
		}
	}
	var failed error
	for _, addr := range f.cfg.Task.Listen {
		at := slices.IndexFunc(have, func(k dnsd.Sockets) bool { return k.Addr == addr })
		if at >= 0 {
			f.sockets = append(f.sockets, have[at])
			have = slices.Delete(have, at, at+1)
			continue
		}
		k, err := dnsd.BindSockets(ctx, addr)
		if err != nil {
			failed = err
			break
		}
		f.sockets = append(f.sockets, k)
	}
	closeAll(have)
	return failed
}

// takeSockets returns the sockets of all processes; who cannot be asked has none.
func takeSockets(paths []string) (all []dnsd.Sockets) {
	for _, path := range paths {
		list, _ := ask(path, request{Ask: askSockets}, nil)
		all = append(all, list...)
	}
	return all
}

// Close gives up what Open took; the process that answers has it, too.
func (f *Feeder) Close() {
	closeAll(f.sockets)
	f.sockets = nil
}

// updateTime bounds how long Update waits for the process.
const updateTime = 200 * time.Millisecond

// Update takes the newest records, which must not be changed any more. listed: a server has said that these are all sets that
// exist; before, they are what the agent knew when it ended, and a process that runs knows as much. It waits a moment until
// the records are answered from.
func (f *Feeder) Update(s dnsd.Snapshot, listed bool) {
	f.mu.Lock()
	wait := f.up && f.listed && f.done == f.number // else the process is slow, and was waited for already
	f.newest, f.listed = s, f.listed || listed
	f.number++
	n := f.number
	f.mu.Unlock()
	f.changed.Notify()
	over := time.NewTimer(updateTime)
	defer over.Stop()
	for wait {
		f.mu.Lock()
		shown := f.shown
		wait = f.up && f.done < n
		f.mu.Unlock()
		if !wait {
			return
		}
		select {
		case <-shown:
		case <-over.C:
			return
		}
	}
}

// Run keeps a process answering until ctx ends, and leaves it answering then.
func (f *Feeder) Run(ctx context.Context) error {
	for failures := 0; ; failures++ {
		begun := time.Now()
		err := f.keep(ctx)
		f.rest()
		if ctx.Err() != nil {
			return nil
		}
		if time.Since(begun) > time.Minute {
			failures = 0
		}
		if f.trouble.IsErr(err) {
			f.log.Warn("name server lost; it is found or started again", "err", err)
		}
		if !backoff.Sleep(ctx, backoff.After(10*time.Millisecond, 5*time.Second, failures)) {
			return nil
		}
	}
}

// rest is how it is while no process is fed.
func (f *Feeder) rest() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.up, f.done, f.answers, f.asked = false, 0, nil, false
	close(f.shown)
	f.shown = make(chan struct{})
	close(f.counted)
	f.counted = make(chan struct{})
}

// keep finds or starts the process, has it answer, and feeds it for as long as that goes.
func (f *Feeder) keep(ctx context.Context) error {
	before, _ := running(f.cfg.Dir, f.cfg.Task.home(), f.path)
	c, err := dial(f.path)
	if isRefused(err) {
		if len(before) > 0 && !f.awaitList(ctx) {
			return errors.New("the name server of another version or configuration ended")
		}
		if ctx.Err() != nil {
			return nil
		}
		_ = os.Remove(f.path) // of one that was killed
		c, err = f.start(ctx)
	}
	if err != nil {
		return err
	}
	defer c.Close()
	defer context.AfterFunc(ctx, func() { c.Close() })()
	return (&line{f: f, c: c}).run(ctx, before)
}

// awaitList waits until a server has said which sets there are: until then the process of another version or configuration knows
// more than this agent. false: that process is gone.
func (f *Feeder) awaitList(ctx context.Context) bool {
	tick := time.NewTicker(lookTime / 4)
	defer tick.Stop()
	for ctx.Err() == nil {
		f.mu.Lock()
		listed := f.listed
		f.mu.Unlock()
		if listed {
			return true
		}
		select {
		case <-ctx.Done():
		case <-tick.C:
		case <-f.changed.C():
		}
		if before, _ := running(f.cfg.Dir, f.cfg.Task.home(), f.path); len(before) == 0 {
			return false
		}
	}
	return true
}

// countsTime bounds how long Counts waits for the process.
const countsTime = time.Second

// Counts are what the process that is fed has answered; without one, or if it does not say so in time, what it last said.
func (f *Feeder) Counts() dnsd.Counts {
	f.mu.Lock()
	up, counted := f.up, f.counted
	f.asked = f.asked || up
	f.mu.Unlock()
	if up {
		f.changed.Notify()
		select {
		case <-counted:
		case <-time.After(countsTime):
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.counts
}

// Dismiss ends all processes that are found in dir.
func Dismiss(dir string) error {
	ours, others := running(dir, "", "")
	var errs []error
	for _, path := range append(ours, others...) {
		if _, err := ask(path, request{Ask: askQuit}, nil); err != nil && !isRefused(err) && !errors.Is(err, errNothing) {
			errs = append(errs, fmt.Errorf("end the name server: %w", err))
		}
	}
	return errors.Join(errs...)
}
