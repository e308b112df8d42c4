package watchdog

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// Logger guards a life from one half of a logger of it.
type Logger struct {
	// Record is the path of the life's record, Token its token.
	Record, Token string
	// Container and Run name what is logged; together with the member they are one file.
	Container, Run string
	Clock          func() time.Duration
	Empty          func(cgroup string) (bool, error)
	Kill           func(cgroup string) error

	life      Record
	confirmed time.Duration
	lock      *os.File
}

// lookTime is how often a logger looks at least; it wakes at the deadline by itself.
const lookTime = time.Second

// holdPath is the file that the halves of a run's logger hold.
func holdPath(record, container, run string) string {
	dir, file := filepath.Split(record)
	member := file[:len(file)-len(filepath.Ext(file))]
	return filepath.Join(filepath.Dir(filepath.Clean(dir)), "loggers", member+"."+container+"."+run)
}

// Holds reports whether a logger guards a run of a container. One at a time may look.
func Holds(record, container, run string) bool {
	return held(holdPath(record, container, run), syscall.LOCK_EX)
}

// Check refuses to guard a life that may not be started any more, or cannot be guarded from
// here. After nil Holds says true for as long as this process lives.
func (l *Logger) Check() error {
	if err := l.check(); err != nil {
		return fmt.Errorf("guard token %s: %w", l.Token, err)
	}
	return nil
}

func (l *Logger) check() error {
	r, err := read(l.Record)
	if err != nil {
		return err
	}
	confirmed, err := l.dir().Confirmed()
	switch {
	case err != nil:
		return err
	case r.Token != l.Token:
		return fmt.Errorf("the member's life is %s", r.Token)
	case condemned(r, confirmed, l.Clock()):
		return errors.New("its deadline has passed")
	}
	if _, err := l.Empty(r.Cgroup); err != nil {
		return err
	}
	l.life, l.confirmed = r, confirmed
	return l.hold()
}

func (l *Logger) dir() Dir { return Dir(filepath.Dir(filepath.Dir(l.Record))) }

// hold shares the lock of the run's file with the other half.
func (l *Logger) hold() error {
	f, err := os.OpenFile(holdPath(l.Record, l.Container, l.Run), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	err = syscall.EINTR
	for errors.Is(err, syscall.EINTR) { // Holds has it for a moment
		err = syscall.Flock(int(f.Fd()), syscall.LOCK_SH)
	}
	if err != nil {
		return errors.Join(err, f.Close())
	}
	l.lock = f
	return nil
}

// Guard guards until the life is over: its record is gone, or another's. A half that the
// other started guards without having checked; nothing is refused any more then.
func (l *Logger) Guard() {
	if l.lock == nil {
		_ = l.hold() // the other half has it, too
	}
	for {
		wait, over := l.look()
		if over {
			return
		}
		time.Sleep(wait)
	}
}

// look takes in the files and kills a life that is condemned.
func (l *Logger) look() (wait time.Duration, over bool) {
	r, err := read(l.Record)
	switch {
	case err == nil && r.Token != l.Token:
		return 0, true
	case err == nil:
		l.life = r
	case errors.Is(err, fs.ErrNotExist) && exists(filepath.Dir(l.Record)):
		return 0, true
	}
	if at, err := l.dir().Confirmed(); err == nil && at != 0 {
		l.confirmed = at
	}
	if l.life.Token == "" {
		return lookTime, false // never read yet; the other half knows it
	}
	now := l.Clock()
	if !condemned(l.life, l.confirmed, now) {
		return min(lookTime, max(l.confirmed+l.life.Bound-now, time.Millisecond)), false
	}
	if empty, err := l.Empty(l.life.Cgroup); err == nil && empty {
		return pollTime, false
	}
	_ = l.Kill(l.life.Cgroup) // and again at once
	return killTime, false
}
