package volume

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/stead-project/stead/agent/runtime"
	"github.com/stead-project/stead/internal/durable"
	"github.com/stead-project/stead/internal/wrap"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/spec/scalar"
)

// markFile is in the directory of every storage class and names its disk. It is how a
// disk is known again: device numbers change over reboots, and not every file system has
// an id. An empty mount point has none.
const markFile = ".stead-disk"

// disksDir is below the agent's root and holds a record for each storage class.
const disksDir = "disks"

// disk is the content of a mark, and of the record below the root, which names the disk
// that this node first used for a class.
type disk struct {
	Disk string `json:"disk"`
	// Directory is where it was then, of a record; for people only.
	Directory string `json:"directory,omitempty"`
}

// disks are the directories of storage classes, and what this node notes of the disks they
// are on and of the volumes it made there.
type disks struct {
	writer  durable.Writer // tests watch and fail its Sync
	records recordDir
	classes map[string]string // directory by storage class
	shared  []string          // classes whose directory other nodes have, too
	sized   []string          // classes whose new volumes are images

	first   sync.Mutex // held by who notes the disk of a class at its first use
	looking sync.Map   // of class to true: while its volumes are looked at
}

// checkDisk fails unless the directory of the class, open as root, is on the disk that was
// first used for it. At the first use the disk is marked and noted.
func (d *disks) checkDisk(class string, root *os.Root) error {
	var want disk
	known, err := d.records.read(disksDir, class, &want)
	switch {
	case err != nil:
		return fmt.Errorf("storage class %s: cannot tell which disk it is on: %w", class, err)
	case !known:
		return d.firstUse(class, root)
	}
	have, err := readMark(root) // after the record, which is written when there is a mark
	switch {
	case err != nil:
		return fmt.Errorf("storage class %s: read %s: %w", class, filepath.Join(root.Name(), markFile), err)
	case want.Disk == have:
		return nil
	}
	was := ""
	if want.Directory != root.Name() {
		was = ", then at " + want.Directory
	}
	return fmt.Errorf("%w: storage class %s: the disk at %s%s is not the one that this node first used for it%s; mount that one; if it was replaced for good: stead agent accept-disk %s",
		runtime.ErrNotFound, class, root.Name(), onMount(root.Name()), was, class)
}

// firstUse notes the disk of a class that has none noted. Workers, and who reads the trash, may come at
// once: a record is written by one at a time.
func (d *disks) firstUse(class string, root *os.Root) error {
	d.first.Lock()
	defer d.first.Unlock()
	switch known, err := d.records.read(disksDir, class, &disk{}); {
	case err != nil:
		return err
	case known:
		return d.checkDisk(class, root)
	}
	return d.useDisk(class, root)
}

// useDisk marks the disk, if it is not marked, and notes it as that of the class.
func (d *disks) useDisk(class string, root *os.Root) (err error) {
	defer wrap.Error(&err, "note the disk of storage class %s", class)
	mark, err := readMark(root)
	if err == nil && mark == "" {
		mark, err = d.makeMark(root)
	}
	if err == nil { // also a mark that was there: the try that made it may have died before it synced it
		err = d.writer.SyncDir(root, ".")
	}
	if err != nil {
		return err
	}
	return d.records.write(disksDir, class, disk{Disk: mark, Directory: root.Name()})
}

// readMark returns what the disk is called; "": it has no mark.
func readMark(root *os.Root) (string, error) {
	var d disk
	err := getJSON(root, markFile, &d)
	if err == nil && d.Disk == "" {
		return "", errors.New("it names no disk")
	}
	return d.Disk, except(err, fs.ErrNotExist)
}

// makeMark marks the disk. Nodes that share it may do so at once: one mark is made, whole.
func (d *disks) makeMark(root *os.Root) (string, error) {
	name := rand.Text()
	temp := markFile + "." + name
	content, err := json.Marshal(disk{Disk: name})
	if err != nil {
		return "", err
	}
	if err := d.writer.Create(root, temp, append(content, '\n'), 0o600); err != nil {
		return "", errors.Join(err, root.Remove(temp))
	}
	err = root.Link(temp, markFile)
	if err := errors.Join(except(err, fs.ErrExist), root.Remove(temp)); err != nil {
		return "", err
	}
	return readMark(root)
}

// AcceptDisk takes the disk on which the directory of a class is now as that of the class
// from now on, also for a running agent of that root, and says what it is. dir is the
// directory; "": the same as before. Volumes that were made on another disk are missing
// until that is back and accepted.
func AcceptDisk(agentRoot, class, dir string) (says string, err error) {
	defer wrap.Error(&err, "accept the disk of storage class %s", class)
	if _, err := os.Stat(filepath.Join(agentRoot, disksDir)); err != nil {
		return "", fmt.Errorf("%w; give the --root of an agent that ran", err)
	}
	w := durable.Writer{Sync: (*os.File).Sync}
	d := &disks{writer: w, records: newRecords(agentRoot, w)}
	if dir == "" {
		var was disk
		known, err := d.records.read(disksDir, class, &was)
		if err != nil {
			return "", err
		}
		if !known {
			return "", errors.New("this node never used it: there is nothing to accept")
		}
		dir = was.Directory
	}
	dir, err = filepath.EvalSymlinks(dir)
	if err != nil {
		return "", err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return "", err
	}
	defer root.Close()
	return dir + onMount(dir), d.useDisk(class, root)
}

// ClassNames are the storage classes of a node that declares these, ascending:
// spec.LocalClass is always one of them.
func ClassNames(declared map[string]string) []string {
	names := slices.AppendSeq([]string{spec.LocalClass}, maps.Keys(declared))
	slices.Sort(names)
	return slices.Compact(names)
}

// classes checks the declared classes and adds that in local, an existing path
// without symbolic links. No directory may hold another: the names in one would be
// taken for volumes of the other.
func classes(declared map[string]string, local string) (map[string]string, error) {
	all := map[string]string{spec.LocalClass: local}
	for name, dir := range declared {
		if !scalar.ValidSubdomain(name) {
			return nil, fmt.Errorf("invalid storage class name %q", name)
		}
		if !filepath.IsAbs(dir) {
			return nil, fmt.Errorf("storage class %s: %q must be an absolute path", name, dir)
		}
		dir = filepath.Clean(dir)
		if real, err := filepath.EvalSymlinks(dir); err == nil {
			dir = real
		} else if !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("storage class %s: %w", name, err)
		}
		all[name] = dir
	}
	names := slices.Sorted(maps.Keys(all))
	for i, a := range names {
		for _, b := range names[i+1:] {
			if inside(all[a], all[b]) || inside(all[b], all[a]) {
				return nil, fmt.Errorf("storage classes %s (%s) and %s (%s): one must not be inside the other", a, all[a], b, all[b])
			}
		}
	}
	return all, nil
}

// inside reports whether path is dir or below it.
func inside(path, dir string) bool {
	return path == dir || strings.HasPrefix(path, strings.TrimSuffix(dir, "/")+"/")
}

// open opens the directory of a storage class, if it is on the disk of that; the caller
// closes it.
func (d *disks) open(class string) (*os.Root, error) {
	dir, known := d.classes[class]
	if !known {
		return nil, fmt.Errorf("%w: this node has no storage class %q, only %s; declare it with --storage-class",
			runtime.ErrNotFound, class, strings.Join(slices.Sorted(maps.Keys(d.classes)), ", "))
	}
	root, err := os.OpenRoot(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w: the directory %s of storage class %s is not there; is its filesystem mounted?",
			runtime.ErrNotFound, dir, class)
	}
	if err != nil {
		return nil, err
	}
	if err := d.checkDisk(class, root); err != nil {
		return nil, errors.Join(err, root.Close())
	}
	return root, nil
}
