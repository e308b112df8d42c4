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

	"github.com/stead-project/stead/internal/durable"
	"github.com/stead-project/stead/records"
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
	root, err := os.OpenRoot(agentRoot)
	if err != nil {
		return recordDir{}, err
	}
	defer root.Close()
	return newRecords(agentRoot, w), errors.Join(w.MakeDirs(root, disksDir), w.MakeDirs(root, madeDir))
}

func newRecords(agentRoot string, w durable.Writer) recordDir {
	return recordDir{writer: w, root: agentRoot, settled: &sync.Map{}}
}

// settle puts the names of a kind on disk, unless they are.
func (r recordDir) settle(kind string) error {
	if _, done := r.settled.Load(kind); done {
		return nil
	}
	root, err := os.OpenRoot(r.root)
	if err != nil {
		return err
	}
	defer root.Close()
	if err := r.writer.SyncDir(root, kind); err != nil {
		return err
	}
	r.settled.Store(kind, true)
	return nil
}

// read fills in a record, which is on disk; false: there is none.
func (r recordDir) read(kind, name string, into any) (bool, error) {
	if err := r.settle(kind); err != nil {
		return false, err
	}
	path := filepath.Join(r.root, kind, name+".json")
	content, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if err := json.Unmarshal(content, into); err != nil {
		return false, fmt.Errorf("%s: %w", path, err)
	}
	return true, nil
}

// write writes a record whole and durably, or not at all.
func (r recordDir) write(kind, name string, record any) error {
	content, err := json.Marshal(record)
	if err != nil {
		return err
	}
	root, err := os.OpenRoot(r.root)
	if err != nil {
		return err
	}
	defer root.Close()
	if err := r.writer.Put(root, filepath.Join(kind, name+".json"), append(content, '\n'), 0o600); err != nil {
		r.settled.Delete(kind)
		return err
	}
	return nil
}

// remove removes a record, durably; absent is no error.
func (r recordDir) remove(kind, name string) error {
	root, err := os.OpenRoot(r.root)
	if err != nil {
		return err
	}
	defer root.Close()
	if err := except(root.Remove(filepath.Join(kind, name+".json")), fs.ErrNotExist); err != nil {
		return err
	}
	return r.writer.SyncDir(root, kind)
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
	owner
}

// wasMade reports whether this node made the volume, or had it before.
func (d *disks) wasMade(id records.VolumeID) (bool, error) {
	var m made
	known, err := d.records.read(madeDir, string(id), &m)
	if err != nil {
		return false, fmt.Errorf("cannot tell whether the volume was made before: %w", err)
	}
	return known, nil
}

// inSomeTrash reports whether a volume of a shared class lies in the trash of any node: that
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

// noteMade notes that the volume exists. Nobody can have written to it before: its
// directory is handed out after this.
func (d *disks) noteMade(class string, o owner) error {
	if err := d.records.write(madeDir, string(o.Volume), made{Class: class, owner: o}); err != nil {
		return fmt.Errorf("note that the volume was made: %w", err)
	}
	return nil
}
