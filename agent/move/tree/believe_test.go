package tree

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// readOnce reads a file as a round does, and reports whether its sum is believed from then on.
func readOnce(t *testing.T, s *Sums, path string) (believed bool) {
	t.Helper()
	dir, err := os.Open(filepath.Dir(path))
	must(t, err)
	defer dir.Close()
	f, err := s.Read(dir, filepath.Base(path))
	must(t, err)
	defer f.Close()
	blocks, err := Blocks(f, f.Stat.Size, func() error { return nil })
	must(t, err)
	if !f.End(blocks) {
		t.Error("it did not change, and counts as changed")
	}
	return isKnown(t, s, path)
}

func isKnown(t *testing.T, s *Sums, path string) bool {
	t.Helper()
	var st unix.Stat_t
	must(t, unix.Lstat(path, &st))
	return s.Find(&st) != nil
}

// onDisk is a directory of a file system whose times are believed.
func onDisk(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if !believes(t, dir) {
		t.Skip("the directory of tests is on a file system of which nothing is believed")
	}
	return dir
}

// A sum is believed for as long as a file has the times that it had, and only if these were not new when it was read.
func TestWhenASumIsBelieved(t *testing.T) {
	path := filepath.Join(onDisk(t), "f")
	must(t, os.WriteFile(path, []byte("one"), 0o600))
	var st unix.Stat_t
	must(t, unix.Lstat(path, &st))
	changed := time.Unix(st.Ctim.Unix())
	for _, c := range []struct {
		name  string
		after time.Duration
		want  bool
	}{
		{"at once", 0, false},
		{"before it", -time.Minute, false},
		{"a moment too early", racy - 1, false},
		{"in time", racy, true},
	} {
		if got := readOnce(t, NewSums(func() time.Time { return changed.Add(c.after) }), path); got != c.want {
			t.Errorf("read %s: believed %v, want %v", c.name, got, c.want)
		}
	}
	for name, change := range map[string]func() error{
		"content": func() error { return os.WriteFile(path, []byte("two"), 0o600) },
		"content, with the time set back": func() error {
			return errors.Join(os.WriteFile(path, []byte("six"), 0o600), os.Chtimes(path, time.Time{}, time.Unix(st.Mtim.Unix())))
		},
		"size": func() error { return os.Truncate(path, 5) },
		"mode": func() error { return os.Chmod(path, 0o640) },
		"another file": func() error {
			return errors.Join(os.WriteFile(path+"x", []byte("two"), 0o600), os.Rename(path+"x", path))
		},
	} {
		s := NewSums(later)
		if !readOnce(t, s, path) {
			t.Fatalf("%s: not believed before", name)
		}
		must(t, change())
		if isKnown(t, s, path) {
			t.Errorf("%s changed, and the sum is believed", name)
		}
	}
	s := NewSums(later)
	readOnce(t, s, path)
	s.Clear()
	if isKnown(t, s, path) {
		t.Error("it is known after all was forgotten")
	}
}

// What a member writes through a mapping, without a system call, is found: also where the page was dirty before the file was read.
func TestWhatIsWrittenThroughAMappingIsFound(t *testing.T) {
	path := filepath.Join(onDisk(t), "f")
	must(t, os.WriteFile(path, bytes.Repeat([]byte("x"), 8<<10), 0o600))
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	must(t, err)
	defer f.Close()
	m, err := unix.Mmap(int(f.Fd()), 0, 8<<10, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	must(t, err)
	defer func() { must(t, unix.Munmap(m)) }()
	m[0] = 'a' // dirty from now on: a further write leaves no trace by itself
	s := NewSums(later)
	if !readOnce(t, s, path) {
		t.Fatal("it is not believed, and nobody writes to it")
	}
	time.Sleep(20 * time.Millisecond) // a tick of the kernel's clock of files: far less than racy
	m[0] = 'b'
	if isKnown(t, s, path) {
		t.Error("it was written to through a mapping, and its sum is believed")
	}
}

// Of a file system of which it is not known what a mapping does to the times nothing is believed.
func TestNothingIsBelievedWhereMappingsAreNotKnown(t *testing.T) {
	dir, err := os.MkdirTemp("/dev/shm", "stead-test-")
	if err != nil {
		t.Skip(err)
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "f")
	must(t, os.WriteFile(path, []byte("x"), 0o600))
	if readOnce(t, NewSums(later), path) {
		t.Error("believed")
	}
}

// A file that changes while it is read is not remembered, whatever was read.
func TestAFileThatChangesWhileItIsRead(t *testing.T) {
	path := filepath.Join(onDisk(t), "f")
	for name, change := range map[string]func() error{
		"grows":   func() error { return os.Truncate(path, 9) },
		"written": func() error { return os.WriteFile(path, []byte("two"), 0o600) },
		"shrinks": func() error { return os.Truncate(path, 1) },
		"renamed": func() error { return os.Rename(path, path+"y") },
	} {
		must(t, os.WriteFile(path, []byte("one"), 0o600))
		s := NewSums(later)
		dir, err := os.Open(filepath.Dir(path))
		must(t, err)
		f, err := s.Read(dir, "f")
		must(t, err)
		blocks, err := Blocks(f, f.Stat.Size, func() error { return nil })
		must(t, err)
		must(t, change())
		if f.End(blocks) || len(s.files) > 0 {
			t.Errorf("%s: it counts as what was read", name)
		}
		if _, err := Blocks(f, 1<<20, func() error { return nil }); err == nil {
			t.Errorf("%s: it is read beyond its end", name)
		}
		f.Close()
		dir.Close()
	}
}

// The sum of a tree that nobody writes to remembers also what was written just before, so that the last round of a move reads no
// file for a second time.
func TestASealedTreeIsReadOnce(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "f")
	must(t, os.WriteFile(path, []byte("just now"), 0o600))
	s := NewSums(time.Now)
	first, err := Sum(t.Context(), dir, s, false)
	must(t, err)
	if !isKnown(t, s, path) {
		t.Error("it would be read again")
	}
	must(t, os.WriteFile(path, []byte("new time"), 0o600))
	for _, fresh := range []bool{false, true} {
		if again, err := Sum(t.Context(), dir, s, fresh); err != nil || again == first {
			t.Errorf("fresh %v: it has another content and the same sum, %v", fresh, err)
		}
	}
}

// A sum that is asked for anew reads each file, whatever is believed of it.
func TestASumThatIsAskedForAnewReadsEachFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "f")
	must(t, os.WriteFile(path, []byte("content"), 0o600))
	var st unix.Stat_t
	must(t, unix.Lstat(path, &st))
	s := NewSums(later)
	s.Put(&st, []Digest{{1}}) // something else
	wrong, err := Sum(t.Context(), dir, s, false)
	must(t, err)
	if right, err := Sum(t.Context(), dir, s, true); err != nil || right == wrong {
		t.Errorf("what was believed was summed, %v", err)
	}
}

// The memory that is kept is bounded, however many files there are; what is not remembered is read again.
func TestTheFilesThatAreRememberedAreBounded(t *testing.T) {
	s := NewSums(later)
	s.most = 100
	for i := range uint64(110) {
		s.Put(&unix.Stat_t{Ino: i}, nil)
	}
	if len(s.files) != s.most {
		t.Errorf("%d are remembered", len(s.files))
	}
	old := unix.Stat_t{Ino: 3, Size: 1}
	s.Put(&old, nil)
	if s.Find(&old) == nil {
		t.Error("one that is known is not renewed")
	}
	s.Forget(&old)
	if s.Find(&old) != nil {
		t.Error("it is known after it was forgotten")
	}
}

// Blocks grow with the file, so that their digests stay few.
func TestTheSizeOfBlocks(t *testing.T) {
	for size, want := range map[int64]int64{
		0: leastBlock, 1: leastBlock, leastBlock*BlocksMost - 1: leastBlock, leastBlock * BlocksMost: 2 * leastBlock, 1<<63 - 1: 1 << 48,
	} {
		got := BlockBytes(size)
		if got != want || size/got >= BlocksMost {
			t.Errorf("of %d bytes: blocks of %d, want %d", size, got, want)
		}
	}
}
