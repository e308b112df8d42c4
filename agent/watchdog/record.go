package watchdog

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/stead-project/stead/internal/durable"
)

// Record is what a killer knows of a guarded life.
type Record struct {
	Namespace string `json:"namespace"`
	Set       string `json:"set"`
	Ordinal   int    `json:"ordinal"`
	Token     string `json:"token"`
	// Bound is how long after the confirmed moment the life ends.
	Bound time.Duration `json:"bound"`
	// Cgroup holds all processes of the identity: a path below each hierarchy's root.
	Cgroup string `json:"cgroup"`
	// Ended: its deadline was missed once; it is over for good, whatever is confirmed.
	Ended bool `json:"ended,omitempty"`
}

// Passed reports whether the deadline of a life has passed at now, when the node was
// last confirmed at confirmed; 0: never. A moment that lies ahead confirms nothing.
func Passed(confirmed, bound, now time.Duration) bool {
	return confirmed <= 0 || confirmed > now || now >= confirmed+bound
}

// condemned reports whether nothing of the life may be alive.
func condemned(r Record, confirmed, now time.Duration) bool {
	return r.Ended || Passed(confirmed, r.Bound, now)
}

// BootTime is CLOCK_BOOTTIME: it counts suspended time too and never jumps.
func BootTime() time.Duration {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts); err != nil {
		panic(err) // every Linux has it
	}
	return time.Duration(ts.Nano())
}

// Dir is the directory of a node's guarded lives. Its writing methods are for one agent
// at a time; a file is there whole or not at all.
type Dir string

// Below is the directory of a node's guarded lives below its run directory.
func Below(runDir string) Dir { return Dir(filepath.Join(runDir, "guard")) }

// Count returns how many lives are guarded, none where no directory is, and whether a
// watchdog runs.
func (d Dir) Count() (lives int, watched bool, err error) {
	found, err := d.Records()
	if errors.Is(err, fs.ErrNotExist) {
		return 0, false, nil
	}
	return len(found), d.Alive(), err
}

// Make makes the directory.
func (d Dir) Make() error {
	for _, sub := range []string{"lives", "loggers"} {
		if err := os.MkdirAll(d.file(sub), 0o700); err != nil {
			return fmt.Errorf("make the guarded lives' directory: %w", err)
		}
	}
	return nil
}

// Record is the path of a member's record.
func (d Dir) Record(member string) string { return filepath.Join(string(d), "lives", member+".json") }

// Put writes a member's record in place of an older one.
func (d Dir) Put(member string, r Record) error {
	if err := durable.PutJSONUnsynced(d.Record(member), r); err != nil {
		return fmt.Errorf("record the guarded life of %s: %w", member, err)
	}
	return nil
}

// Remove removes a member's record; absent is no error. From then on no killer acts on it.
func (d Dir) Remove(member string) error {
	if err := os.Remove(d.Record(member)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove the record of a guarded life: %w", err)
	}
	held, _ := os.ReadDir(d.file("loggers")) // they say nothing without a record
	for _, e := range held {
		if strings.HasPrefix(e.Name(), member+".") {
			_ = os.Remove(filepath.Join(d.file("loggers"), e.Name()))
		}
	}
	return nil
}

// Records reads all records by member. One that cannot be read is an error beside the
// others, and so is a directory that is not there.
func (d Dir) Records() (map[string]Record, error) {
	entries, err := os.ReadDir(d.file("lives"))
	if err != nil {
		return nil, fmt.Errorf("list guarded lives: %w", err)
	}
	out := map[string]Record{}
	var errs []error
	for _, e := range entries {
		member, ok := strings.CutSuffix(e.Name(), ".json")
		if !ok {
			continue
		}
		r, err := read(d.Record(member))
		switch {
		case err == nil:
			out[member] = r
		case !errors.Is(err, fs.ErrNotExist):
			errs = append(errs, fmt.Errorf("guarded life of %s: %w", member, err))
		}
	}
	return out, errors.Join(errs...)
}

func read(path string) (Record, error) {
	var r Record
	err := durable.GetJSON(path, &r)
	if err == nil && (r.Token == "" || r.Bound <= 0 || !filepath.IsAbs(r.Cgroup) || filepath.Clean(r.Cgroup) == "/") {
		err = fmt.Errorf("%s is not a record of a guarded life", path)
	}
	return r, err
}

// Confirm moves the moment at which the node was last confirmed.
func (d Dir) Confirm(at time.Duration) error {
	if err := durable.PutJSONUnsynced(d.file("confirmed"), at); err != nil {
		return fmt.Errorf("confirm guarded lives: %w", err)
	}
	return nil
}

// Confirmed reads that moment; 0: there was none since boot.
func (d Dir) Confirmed() (time.Duration, error) {
	var at time.Duration
	err := durable.GetJSON(d.file("confirmed"), &at)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("read when the node was confirmed: %w", err)
	}
	return at, nil
}

// file is the path of one of the files beside the records.
func (d Dir) file(name string) string { return filepath.Join(string(d), name) }

// held reports whether another open file has a lock on path that how (LOCK_SH or LOCK_EX)
// cannot be had beside.
func held(path string, how int) bool {
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	return errors.Is(syscall.Flock(int(f.Fd()), how|syscall.LOCK_NB), syscall.EWOULDBLOCK)
}
