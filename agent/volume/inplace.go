package volume

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"

	"github.com/stead-project/stead/internal/wrap"
	"github.com/stead-project/stead/records"
)

// InPlace implements runtime.Volumes. It reads the records of volumes that were made on this node, and of each the owner file in its
// place.
func (d *disks) InPlace(ctx context.Context) (out []records.HostVolume, err error) {
	defer wrap.Error(&err, "list volumes")
	names, err := d.records.names(madeDir)
	errs := []error{err}
	classes := map[string][]made{}
	for _, name := range names {
		var m made
		known, err := d.records.read(madeDir, name, &m)
		switch {
		case err != nil:
			errs = append(errs, fmt.Errorf("record %s: %w", name, err))
		case known:
			classes[m.Class] = append(classes[m.Class], m)
		}
	}
	for class, all := range classes {
		out = append(out, d.lookInTime(ctx, class, all)...)
	}
	slices.SortFunc(out, func(a, b records.HostVolume) int { return a.Compare(&b) })
	return out, errors.Join(errs...)
}

// lookInTime is seenIn, and when ctx ends before: all as Unseen. A look at a disk that hangs cannot be ended: while it lasts no other one
// of the class is begun.
func (d *disks) lookInTime(ctx context.Context, class string, all []made) []records.HostVolume {
	if _, hangs := d.looking.LoadOrStore(class, true); !hangs {
		seen := make(chan []records.HostVolume, 1)
		go func() {
			defer d.looking.Delete(class)
			seen <- d.seenIn(class, all)
		}()
		select {
		case out := <-seen:
			return out
		case <-ctx.Done():
		}
	}
	var out []records.HostVolume
	for _, m := range all {
		out = append(out, m.unseen())
	}
	return out
}

// seenIn are those of the volumes of a class that are in their places, or not to be seen.
func (d *disks) seenIn(class string, all []made) (out []records.HostVolume) {
	root, err := d.open(class)
	if err == nil {
		defer root.Close()
	}
	for _, m := range all {
		if err != nil {
			out = append(out, m.unseen())
			continue
		}
		switch have, err := readOwner(root, placeOf(m.identity(), m.Claim)); {
		case errors.Is(err, fs.ErrNotExist), err == nil && have.unsealed() != m.owner: // given up, erased, or another stands there
		case err != nil:
			out = append(out, m.unseen())
		default:
			h := m.unseen()
			h.Unseen, h.SealedFor = false, have.Seal.To
			out = append(out, h)
		}
	}
	return out
}

// unseen is the volume as one whose disk is not there.
func (m made) unseen() records.HostVolume {
	return records.HostVolume{ID: m.identity(), Claim: m.Claim, Volume: m.Volume, Number: m.Number, Class: m.Class, Unseen: true}
}

// standsInPlace reports whether a volume is in its place, of which all that is noted stays then.
func (d *disks) standsInPlace(root *os.Root, id records.VolumeID) (bool, error) {
	m, known, err := d.wasMade(id)
	if err != nil || !known {
		return false, err
	}
	have, err := readOwner(root, placeOf(m.identity(), m.Claim))
	return err == nil && have.unsealed() == m.owner, except(err, fs.ErrNotExist)
}
