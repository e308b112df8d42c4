package volume

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/stead-project/stead/internal/durable"
	"github.com/stead-project/stead/internal/wrap"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
)

// recordDir holds records: small files below the agent's root: what this node must know of volumes
// when their disks are away.
type recordDir struct {
	writer durable.Writer
	root   string
	// settled are the kinds whose names are on disk: not before this process saw to it, as
	// the one before may have died while it wrote one, nor after a disk that failed.
	settled *sync.Map
}

// openRecords makes the directories that hold them.
func openRecords(agentRoot string, w durable.Writer) (recordDir, error) {
	r := newRecords(agentRoot, w)
	return r, r.in(func(root *os.Root) error {
		return errors.Join(w.MakeDirs(root, disksDir), w.MakeDirs(root, madeDir), w.MakeDirs(root, usersDir), w.MakeDirs(root, movesDir))
	})
}

func newRecords(agentRoot string, w durable.Writer) recordDir {
	return recordDir{writer: w, root: agentRoot, settled: &sync.Map{}}
}

// in calls do with the agent's root, open.
func (r recordDir) in(do func(root *os.Root) error) error {
	root, err := os.OpenRoot(r.root)
	if err != nil {
		return err
	}
	defer root.Close()
	return do(root)
}

// settle puts the names of a kind on disk, unless they are.
func (r recordDir) settle(kind string) error {
	if _, done := r.settled.Load(kind); done {
		return nil
	}
	err := r.in(func(root *os.Root) error { return r.writer.SyncDir(root, kind) })
	if err == nil {
		r.settled.Store(kind, true)
	}
	return err
}

// read fills in a record, which is on disk; false: there is none.
func (r recordDir) read(kind, name string, into any) (bool, error) {
	if err := r.settle(kind); err != nil {
		return false, err
	}
	err := durable.GetJSON(filepath.Join(r.root, kind, name+".json"), into)
	return err == nil, except(err, fs.ErrNotExist)
}

// write writes a record whole and durably, or not at all.
func (r recordDir) write(kind, name string, record any) error {
	return r.in(func(root *os.Root) error {
		err := putJSON(r.writer, root, filepath.Join(kind, name+".json"), record)
		if err != nil {
			r.settled.Delete(kind)
		}
		return err
	})
}

// putJSON writes a file below root whole and durably, or not at all.
func putJSON(w durable.Writer, root *os.Root, path string, doc any) error {
	content, err := json.Marshal(doc)
	if err != nil {
		return err
	}
	return w.Put(root, path, append(content, '\n'), 0o600)
}

// getJSON reads a file below root.
func getJSON(root *os.Root, path string, into any) error {
	content, err := root.ReadFile(path)
	if err != nil {
		return err
	}
	return json.Unmarshal(content, into)
}

// remove removes a record, durably; absent is no error.
func (r recordDir) remove(kind, name string) error {
	return r.in(func(root *os.Root) error {
		if err := except(root.Remove(filepath.Join(kind, name+".json")), fs.ErrNotExist); err != nil {
			return err
		}
		return r.writer.SyncDir(root, kind)
	})
}

// names lists the records of a kind.
func (r recordDir) names(kind string) ([]string, error) {
	entries, err := os.ReadDir(filepath.Join(r.root, kind))
	var names []string
	for _, e := range entries {
		if name, ok := strings.CutSuffix(e.Name(), ".json"); ok {
			names = append(names, name)
		}
	}
	return names, err
}

// madeDir is below the agent's root and holds a record for each volume that this node
// made, or found when it had no record of it yet.
const madeDir = "made"

// made is the record of a volume that exists, wherever its disk is.
type made struct {
	Class string `json:"class"`
	// Image: it is a file system in a file, and no directory.
	Image bool `json:"image,omitempty"`
	owner
}

// wasMade reports whether this node made the volume, or had it before, and what is noted of it.
func (d *disks) wasMade(id records.VolumeID) (m made, known bool, err error) {
	defer wrap.Error(&err, "cannot tell whether the volume was made before")
	known, err = d.records.read(madeDir, string(id), &m)
	return m, known, err
}

// inSomeTrash reports whether a volume of a shared class is in the trash of any node: that
// one made it, and a store that went back may know of it as of one that is new.
func (d *disks) inSomeTrash(root *os.Root, class string, id records.VolumeID) (bool, error) {
	if !slices.Contains(d.shared, class) {
		return false, nil
	}
	entries, err := fs.ReadDir(root.FS(), ".")
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), trashDir+"-") {
			continue
		}
		switch _, err := root.Lstat(filepath.Join(e.Name(), string(id))); {
		case err == nil:
			return true, nil
		case !errors.Is(err, fs.ErrNotExist):
			return false, err
		}
	}
	return false, err
}

// noteMade notes that the volume exists. Nothing can have been written to it before: its
// directory is handed out after this.
func (d *disks) noteMade(m made) (err error) {
	defer wrap.Error(&err, "note that the volume was made")
	return d.records.write(madeDir, string(m.Volume), m)
}

const ownerFile = "owner.json"

// ownerDraft is what a crash may leave of one that was being written.
var ownerDraft = durable.Draft(ownerFile)

// owner is the content of an owner file: which volume this is (SAFETY S11).
type owner struct {
	Cluster   string           `json:"cluster"`
	Namespace spec.Namespace   `json:"namespace"`
	Set       spec.SetName     `json:"set"`
	Ordinal   int              `json:"ordinal"`
	Claim     spec.ClaimName   `json:"claim"`
	Volume    records.VolumeID `json:"volume"`
	Number    int              `json:"number"`
	// Seal is zero but for a volume that is sealed (seal.go).
	Seal seal `json:"seal,omitzero"`
}

// identity is whose it is.
func (o owner) identity() spec.Identity {
	return spec.Identity{Namespace: o.Namespace, Set: o.Set, Ordinal: o.Ordinal}
}

// String is for messages to people.
func (o owner) String() string {
	return fmt.Sprintf("volume %s (claim %s of %s, number %d, cluster %s)", o.Volume, o.Claim, o.identity(), o.Number, o.Cluster)
}

func readOwner(root *os.Root, place string) (o owner, err error) {
	err = getJSON(root, filepath.Join(place, ownerFile), &o)
	if o.Seal.Move != "" {
		o.Volume, o.Seal.Volume = o.Seal.Volume, ""
	}
	return o, err
}

// writeOwner writes the owner file whole and durably, or not at all.
func (d *disks) writeOwner(root *os.Root, place string, o owner) error {
	if o.Seal.Move != "" {
		o.Volume, o.Seal.Volume = "", o.Volume
	}
	return putJSON(d.writer, root, filepath.Join(place, ownerFile), o)
}

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
	if err := getJSON(root, filepath.Join(bin, noteFile), &n); err != nil {
		return n, err
	}
	passed := time.Duration(0)
	if n.Boot == v.boot {
		passed = max(0, v.clock()-n.Since)
	}
	var err error
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
	return putJSON(v.writer, root, filepath.Join(dir, noteFile), n)
}

// except returns err, or nil when err is harmless.
func except(err, harmless error) error {
	if errors.Is(err, harmless) {
		return nil
	}
	return err
}
