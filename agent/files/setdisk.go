package files

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/stead-project/stead/internal/durable"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
)

// SetKey names a set, of all that have had its name. The zero value is no set: the file
// confirmed is one for all.
type SetKey struct {
	Ref spec.SetRef
	UID spec.UID
}

// SetHead is what a member was shown of its set; the zero value is nothing.
type SetHead struct {
	Sequence       spec.Sequence
	Event          records.ChangeID // that set.json includes
	ConfirmedUntil Uptime           // in set.json
	Last           records.ChangeID // in events
}

// SetDisk is where SetFiles writes. Each call may be repeated.
type SetDisk interface {
	// Head reads what a member was shown, by whatever agent, and the moment in its file confirmed.
	Head(p Place) (head SetHead, until Uptime)
	// Write replaces a set's file; what was linked before stays as it is. content is the caller's again when it returns.
	Write(set SetKey, name string, content []byte) error
	// Link puts a set's file in the place of a member's. first: the member was shown none of them yet, so that nobody can
	// wait for it.
	Link(set SetKey, name string, p Place, first bool) error
	// IsShown reports that a member's file is the set's.
	IsShown(set SetKey, name string, p Place) bool
	// Drop removes a set's files; absent is no error.
	Drop(set SetKey) error
}

// hostSets is SetDisk below the run directory.
type hostSets struct{ runDir string }

var _ SetDisk = hostSets{}

// SetsOnHost writes below runDir, which is on tmpfs.
func SetsOnHost(runDir string) SetDisk { return hostSets{runDir} }

func (h hostSets) dir(set SetKey) string {
	if set == (SetKey{}) {
		return filepath.Join(h.runDir, "confirmed")
	}
	return h.runDir + "/shown/" + string(set.Ref.Namespace) + "/" + string(set.Ref.Name) + "/uid-" + string(set.UID)
}

// Head implements SetDisk.
func (h hostSets) Head(p Place) (head SetHead, until Uptime) {
	if b, err := os.ReadFile(filepath.Join(p.Stead, SetFile)); err == nil {
		var doc struct { // setDoc without the peers, who are many
			Sequence       spec.Sequence
			Event          records.ChangeID
			ConfirmedUntil Uptime
		}
		if json.Unmarshal(b, &doc) == nil {
			head.Sequence, head.Event, head.ConfirmedUntil = doc.Sequence, doc.Event, doc.ConfirmedUntil
		}
	}
	if b, err := os.ReadFile(filepath.Join(p.Stead, EventsFile)); err == nil {
		lines := bytes.Split(bytes.TrimSuffix(b, []byte("\n")), []byte("\n"))
		var last records.Change
		if json.Unmarshal(lines[len(lines)-1], &last) == nil {
			head.Last = last.ID()
		}
	}
	if b, err := os.ReadFile(filepath.Join(p.Stead, ConfirmedFile)); err == nil && until.UnmarshalJSON(bytes.TrimSpace(b)) != nil {
		until = 0
	}
	return head, until
}

// Write implements SetDisk.
func (h hostSets) Write(set SetKey, name string, content []byte) error {
	return durable.PutUnsyncedIn(h.dir(set)+"/"+name, content, 0o444, 0o700)
}

// Link implements SetDisk. Where a file cannot be linked it is copied. One system call does at first, and two later: each change of a
// set costs them for each of its members.
func (h hostSets) Link(set SetKey, name string, p Place, first bool) error {
	from, to, draft := h.dir(set)+"/"+name, p.Stead+"/"+name, p.Stead+"/."+name+".new"
	if first {
		if err := unix.Link(from, to); err == nil {
			return nil
		}
	}
	err := unix.Link(from, draft)
	if errors.Is(err, fs.ErrExist) { // left by a crash
		if err = absent(draft); err == nil {
			err = unix.Link(from, draft)
		}
	}
	switch {
	case err == nil:
		if err = unix.Rename(draft, to); err != nil {
			err = errors.Join(&os.LinkError{Op: "rename", Old: draft, New: to, Err: err}, absent(draft))
		}
		return err
	case errors.Is(err, unix.EXDEV), errors.Is(err, unix.EPERM), errors.Is(err, unix.EMLINK), errors.Is(err, unix.EOPNOTSUPP):
		content, err := os.ReadFile(from)
		if err != nil {
			return err
		}
		return durable.PutUnsynced(to, content, 0o444)
	}
	return &os.LinkError{Op: "link", Old: from, New: draft, Err: err}
}

// IsShown implements SetDisk.
func (h hostSets) IsShown(set SetKey, name string, p Place) bool {
	from, err := os.Stat(filepath.Join(h.dir(set), name))
	at, err2 := os.Lstat(filepath.Join(p.Stead, name))
	return err == nil && err2 == nil && os.SameFile(from, at)
}

// Drop implements SetDisk.
func (h hostSets) Drop(set SetKey) error { return os.RemoveAll(h.dir(set)) }
