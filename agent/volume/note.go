package volume

import (
	"encoding/json"
	"os"
	"path/filepath"
	"time"

	"github.com/stead-project/stead/spec"
)

const (
	noteFile = "trash.json"
	// noteEvery is more than a reboot may take of the time that a volume lay in the trash.
	noteEvery = 10 * time.Minute
)

// note says how long a volume is to lie in the trash still. The time is counted on the
// clock since boot, and only while an agent could write it down: neither a wall clock
// nor a machine that is off shortens it.
type note struct {
	Class string `json:"class"`
	// Left remained at the moment Since of the boot Boot.
	Left  time.Duration `json:"left"`
	Since time.Duration `json:"since"`
	Boot  spec.BootID   `json:"boot"`
	// Turn and SizeBytes are as the order said.
	Turn      int   `json:"turn,omitempty"`
	SizeBytes int64 `json:"sizeBytes,omitempty"`
}

// timeLeft reads the note of the volume at bin, with what remains now. It is written again in a
// new boot, and from time to time.
func (v *Volumes) timeLeft(root *os.Root, bin string) (note, error) {
	v.notes.Lock() // sessions and erasures look at once, and each may write
	defer v.notes.Unlock()
	var n note
	content, err := root.ReadFile(filepath.Join(bin, noteFile))
	if err == nil {
		err = json.Unmarshal(content, &n)
	}
	if err != nil {
		return n, err
	}
	passed := time.Duration(0)
	if n.Boot == v.boot {
		passed = max(0, v.clock()-n.Since)
	}
	if n.Boot != v.boot || passed >= noteEvery {
		n.Left -= passed
		err = v.writeNote(root, bin, n)
		passed = 0
	}
	n.Left = max(0, n.Left-passed)
	return n, err
}

// writeNote writes, durably, that n.Left remains as of now.
func (v *Volumes) writeNote(root *os.Root, dir string, n note) error {
	n.Since, n.Boot = v.clock(), v.boot
	content, err := json.Marshal(n)
	if err != nil {
		return err
	}
	return v.writer.Put(root, filepath.Join(dir, noteFile), append(content, '\n'), 0o600)
}
