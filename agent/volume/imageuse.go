package volume

import (
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/stead-project/stead/agent/runtime"
	"github.com/stead-project/stead/records"
)

// imageName names the file system of a volume beside those of classes.
func imageName(k made) string { return "image " + string(k.Volume) }

// useOfImage fills in what the file system of an image said now, if it is mounted; else what it said last of
// what it has in it. The caller holds m.mu.
func (m *Meter) useOfImage(use *runtime.VolumeUse, k made, rooms map[string]Room) {
	if why, is := m.v.unfit.Load(k.Volume); is {
		use.Problem = why.(error).Error()
	}
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
