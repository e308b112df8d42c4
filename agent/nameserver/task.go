package nameserver

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Task is what a name server is started for; none of it changes while it runs.
type Task struct {
	// Home says whose names are answered: of another cluster, or boot, nothing is taken over.
	Home string `json:"home"`
	// Listen, Upstreams and Members are as in dnsd.Config.
	Listen    []netip.AddrPort `json:"listen"`
	Upstreams []string         `json:"upstreams,omitempty"`
	Members   netip.Prefix     `json:"members"`
}

// text is the task as the process is given it.
func (t *Task) text() string {
	text, _ := json.Marshal(t) // of strings and numbers alone
	return string(text)
}

// suffix of the files by which a process is found.
const suffix = ".sock"

// path is where the process of a task is found, whose program has this content.
func (t *Task) path(dir string, program [sha256.Size]byte) string {
	return filepath.Join(dir, t.home()+short(string(program[:])+t.text())+suffix)
}

// home is how the names of all processes of the same cluster and boot begin.
func (t *Task) home() string { return short(t.Home) + "-" }

func short(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:4])
}

// running are the paths of the processes that run in dir, of this and of any other home, but for one. What processes
// that were killed left behind is removed.
func running(dir, home, but string) (ours, others []string) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, nil // there is none yet
	}
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		if path == but || !strings.HasSuffix(path, suffix) {
			continue
		}
		c, err := dial(path)
		switch {
		case isRefused(err):
			_ = os.Remove(path)
		case err != nil: // not known: it is asked again
		case strings.HasPrefix(e.Name(), home):
			ours = append(ours, path)
			c.Close()
		default:
			others = append(others, path)
			c.Close()
		}
	}
	return slices.Clip(ours), others
}
