package volume

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/stead-project/stead/agent/runtime"
	"github.com/stead-project/stead/internal/wrap"
	"github.com/stead-project/stead/records"
)

// imageName names the file system of a volume beside those of classes.
func imageName(k made) string { return "image " + string(k.Volume) }

// useOfImage fills in what the file system of an image said now, if it is mounted; else what it said last of
// what it has in it. The caller holds m.mu.
func (m *Meter) useOfImage(use *runtime.VolumeUse, k made, rooms map[string]Room) {
	room, known := rooms[imageName(k)]
	if !known {
		return
	}
	use.FreeBytes, use.TotalBytes = room.FreeBytes, room.TotalBytes
	m.measured[k.Volume] = measured{room.UsedBytes, m.clock()}
}

// mountOf is where the image of a volume is mounted for a member; "": it is not.
func (v *Volumes) mountOf(volume records.VolumeID) (string, error) {
	found, err := filepath.Glob(filepath.Join(v.images, "*", "*", string(volume)))
	for _, path := range found {
		var at, above unix.Stat_t
		if unix.Stat(path, &at) == nil && unix.Stat(filepath.Dir(path), &above) == nil && at.Dev != above.Dev {
			return path, nil
		}
	}
	return "", err
}

// roomIn asks the file system of an image.
func (v *Volumes) roomIn(k made) (Room, error) {
	path, err := v.mountOf(k.Volume)
	if err == nil && path == "" {
		err = fmt.Errorf("%w: it is not mounted", runtime.ErrAbsent)
	}
	if err != nil {
		return Room{}, err
	}
	dir, err := os.Open(path)
	if err != nil {
		return Room{}, err
	}
	defer dir.Close()
	return RoomAt(dir)
}

// fit grows the file system of a mounted image to the size of that, where an earlier growth was not finished.
func (v *Volumes) fit(ctx context.Context, k made) (err error) {
	defer wrap.Error(&err, "volume %s", k.Volume)
	lock := v.lock(k.Volume)
	lock.Lock()
	defer lock.Unlock()
	path, err := v.mountOf(k.Volume)
	if err != nil || path == "" {
		return err
	}
	root, err := v.open(k.Class)
	if err != nil {
		return err
	}
	defer root.Close()
	f, err := root.OpenFile(filepath.Join(placeOf(k.identity(), k.Claim), imageFile), os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	if !isOf(f, path) {
		return nil
	}
	return fitFS(ctx, f, path)
}
