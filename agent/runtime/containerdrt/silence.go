package containerdrt

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/stead-project/stead/agent/registry"
	"github.com/stead-project/stead/agent/runtime"
)

// silenceTime is how long a pull waits for the next byte of its registry before it is broken off.
const silenceTime = 5 * time.Minute

var errSilent = errors.New("the registry is silent")

// silence breaks off a pull that waits for its registry and gets nothing. What takes long on this host, as
// unpacking does, does not count. It is safe for concurrent use.
type silence struct {
	cancel  context.CancelCauseFunc
	mu      sync.Mutex
	waiting int         // requests and reads that the registry has not answered yet
	timer   *time.Timer // nil: nothing waits
	due     time.Time
}

// breakOffSilent returns a context that ends with errSilent after silenceTime without a byte. stop it.
func breakOffSilent(ctx context.Context) (context.Context, *silence) {
	ctx, cancel := context.WithCancelCause(ctx)
	return ctx, &silence{cancel: cancel}
}

func (s *silence) stop() {
	s.cancel(nil)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.quit()
}

// begin notes that something waits for the registry from now on.
func (s *silence) begin() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.waiting++
	if s.timer == nil {
		s.wait()
	}
}

// end notes that it waits no longer; answered: something has come.
func (s *silence) end(answered bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.waiting--
	if s.waiting == 0 || answered {
		s.quit()
	}
	if s.waiting > 0 && s.timer == nil {
		s.wait()
	}
}

// wait and quit: the caller holds the lock.
func (s *silence) wait() {
	s.due = time.Now().Add(silenceTime)
	s.timer = time.AfterFunc(silenceTime, s.over)
}

func (s *silence) quit() {
	if s.timer != nil {
		s.timer.Stop()
		s.timer = nil
	}
}

func (s *silence) over() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.timer != nil && !time.Now().Before(s.due) { // a timer that was stopped may run once more
		s.cancel(errSilent)
	}
}

// isSilent reports whether a pull was broken off for silence.
func isSilent(ctx context.Context) bool { return errors.Is(context.Cause(ctx), errSilent) }

// silentRefusal says that the registry of an image was silent. It has no error of the library in it.
func silentRefusal(image, hostsDir string) error {
	return fmt.Errorf("pull %q: %s is silent: %w: nothing came for %s, and the pull was broken off; check the registry, the network to it, and the mirrors of %s",
		image, registry.Host(image), runtime.ErrImagePull, silenceTime, hostsFile(hostsDir, image))
}
