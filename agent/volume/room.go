package volume

import (
	"errors"
	"maps"
	"os"
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

// statTime is how long a file system may take to say how much of it is free.
const statTime = 2 * time.Second

// Room is what a file system has: bytes and inodes, and what of them programs may still have that are not root's.
// Device is the same of directories that are on one.
type Room struct {
	Dir                   string
	Device                uint64
	TotalBytes, FreeBytes int64
	UsedBytes             int64 // by whomever
	Files, FreeFiles      int64
}

// RoomAt asks the file system on which an open directory is.
func RoomAt(dir *os.File) (Room, error) {
	var st unix.Statfs_t
	var at unix.Stat_t
	if err := errors.Join(unix.Fstatfs(int(dir.Fd()), &st), unix.Fstat(int(dir.Fd()), &at)); err != nil {
		return Room{}, err
	}
	return Room{
		Dir: dir.Name(), Device: at.Dev, TotalBytes: int64(st.Blocks) * st.Bsize, FreeBytes: int64(st.Bavail) * st.Bsize,
		UsedBytes: int64(st.Blocks-st.Bfree) * st.Bsize,
		Files:     int64(st.Files), FreeFiles: int64(st.Ffree),
	}, nil
}

// Rooms is what the file system of each storage class has, by class. One that does not answer in a moment is left out.
func (m *Meter) Rooms() map[string]Room {
	return m.rooms(m.ofClasses(slices.Collect(maps.Keys(m.v.classes))))
}

// look asks one file system.
type look func() (Room, error)

func (m *Meter) ofClasses(classes []string) map[string]look {
	out := map[string]look{}
	for _, class := range classes {
		out[class] = func() (Room, error) { return m.v.room(class) }
	}
	return out
}

// rooms asks file systems, by names of their own.
func (m *Meter) rooms(looks map[string]look) map[string]Room {
	late := time.NewTimer(statTime)
	defer late.Stop()
	answers := map[string]<-chan struct{}{}
	for name, do := range looks {
		answers[name] = m.ask(name, do)
	}
	out := map[string]Room{}
	for name, answer := range answers {
		select {
		case <-answer:
		default:
			select {
			case <-answer:
			case <-late.C:
				late.Reset(0) // nor is another waited for
				continue
			}
		}
		m.mu.Lock()
		if disk, known := m.disks[name]; known {
			out[name] = disk
		}
		m.mu.Unlock()
	}
	return out
}

// ask asks a file system, once at a time: one that hangs has one goroutine. The channel is closed when
// it has answered.
func (m *Meter) ask(name string, do look) <-chan struct{} {
	m.mu.Lock()
	defer m.mu.Unlock()
	if asked := m.asking[name]; asked != nil {
		return asked
	}
	done := make(chan struct{})
	m.asking[name] = done
	go func() {
		disk, err := do()
		m.mu.Lock()
		defer m.mu.Unlock()
		delete(m.asking, name)
		delete(m.disks, name)
		if err == nil {
			m.disks[name] = disk
		}
		close(done)
	}()
	return done
}

// room is what the file system has on which the directory of a class is.
func (v *Volumes) room(class string) (Room, error) {
	root, err := v.open(class)
	if err != nil {
		return Room{}, err
	}
	defer root.Close()
	dir, err := root.Open(".")
	if err != nil {
		return Room{}, err
	}
	defer dir.Close()
	disk, err := RoomAt(dir)
	disk.Dir = root.Name()
	return disk, err
}
