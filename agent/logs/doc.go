// Package logs is the log files of containers: written by `stead-node logger`,
// read by the agent. It imports the standard library only, because the logger
// that links it must stay tiny.
//
// Layout below a container's log directory (runtime.Log.Dir):
//
//	<epoch>.<number>.<attempt>/     one run: token of the life, restart in place
//	    0.log                       written now
//	    1.log 2.log …               older and older
//	    lock                        held (flock) while the run's writer lives
//
// The newest two runs are kept, so `logs --previous` shows the run before the
// last restart, also when a new life has started since. A line is
//
//	<RFC3339Nano, UTC> <stdout|stderr> <text>\n
//
// Text longer than MaxLine is split into several lines.
package logs

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// MaxLine is the longest text of one line in bytes.
const MaxLine = 64 << 10

// keepRuns is how many runs of a container stay on disk.
const keepRuns = 2

const lockName = "lock"

// ErrNoRun says that there is no such run: the container has not started yet, or
// has not been restarted (previous).
var ErrNoRun error = noRun{}

// noRun is made by the linker: stead-node is started for each probe, and what packages
// make at the start is paid for there.
type noRun struct{}

func (noRun) Error() string { return "no log: " + fs.ErrNotExist.Error() }
func (noRun) Unwrap() error { return fs.ErrNotExist }

// Config says where and how the logger of one run writes. It travels as one
// argument, because containerd's shim shuffles several.
type Config struct {
	Dir       string `json:"dir"`       // the container's log directory
	Run       string `json:"run"`       // see RunName
	FileBytes int64  `json:"fileBytes"` // rotate above this size; 0: 10 MiB
	Files     int    `json:"files"`     // keep so many files of a run; 0: 5
	// Guard is the record of the life that the logger guards (agent/watchdog); "": none.
	Guard string `json:"guard,omitempty"`
}

// Token is that of the life that the run belongs to, as the record has it.
func (c Config) Token() string { return c.Run[:max(0, strings.LastIndexByte(c.Run, '.'))] }

// Encode makes the argument that ParseConfig reads.
func (c Config) Encode() string {
	b, err := json.Marshal(c)
	if err != nil {
		panic(err) // strings and numbers only
	}
	return string(b)
}

// ParseConfig reads what Encode made and fills in the defaults.
func ParseConfig(s string) (Config, error) {
	var c Config
	if err := json.Unmarshal([]byte(s), &c); err != nil {
		return c, fmt.Errorf("parse the logger's configuration: %w", err)
	}
	if !filepath.IsAbs(c.Dir) {
		return c, fmt.Errorf("log directory %q is not absolute", c.Dir)
	}
	if _, ok := parseRun(c.Run); !ok {
		return c, fmt.Errorf("invalid run %q: want epoch.number.attempt", c.Run)
	}
	if c.Guard != "" && !filepath.IsAbs(c.Guard) {
		return c, fmt.Errorf("record of a guarded life %q is not absolute", c.Guard)
	}
	if c.FileBytes <= 0 {
		c.FileBytes = 10 << 20
	}
	if c.Files <= 0 {
		c.Files = 5
	}
	return c, nil
}

// RunName names a run by its token (epoch and number) and its restart in place.
func RunName(epoch, number int64, attempt int) string {
	return fmt.Sprintf("%d.%d.%d", epoch, number, attempt)
}

// Runs lists the runs below a container's log directory, oldest first. A missing
// directory has none.
func Runs(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("list runs: %w", err)
	}
	var names []string
	for _, e := range entries {
		if _, ok := parseRun(e.Name()); ok && e.IsDir() {
			names = append(names, e.Name())
		}
	}
	slices.SortFunc(names, func(a, b string) int {
		ka, _ := parseRun(a)
		kb, _ := parseRun(b)
		return cmp.Or(cmp.Compare(ka[0], kb[0]), cmp.Compare(ka[1], kb[1]), cmp.Compare(ka[2], kb[2]))
	})
	return names, nil
}

func parseRun(name string) ([3]int64, bool) {
	var key [3]int64
	parts := strings.Split(name, ".")
	if len(parts) != len(key) {
		return key, false
	}
	for i, p := range parts {
		n, err := strconv.ParseInt(p, 10, 64)
		if err != nil || n < 0 || strconv.FormatInt(n, 10) != p {
			return key, false
		}
		key[i] = n
	}
	return key, true
}

func fileName(run string, n int) string {
	return filepath.Join(run, strconv.Itoa(n)+".log")
}
