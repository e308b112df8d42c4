package enter

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// A message between the agent and its helper is a length and so many bytes: numbers of
// 8 bytes, and what has a length after that, in a fixed order. Both are of one version of
// Stead. A general encoding took a tenth of the helper's time.

// maxWire is the most bytes of one plan or answer. The kernel gives a program at most
// 6 MiB of arguments and environment (execve(2)); the rest of a plan is below 100 KiB.
const maxWire = 8 << 20

// sizeBytes is the length in front of a plan or answer.
const sizeBytes = 4

var errWire = errors.New("it is not understood")

// wire writes what it is shown, or reads it.
type wire struct {
	text  []byte // what was written; of a reader, what is left
	reads bool
	bad   bool // too little or too much was there
}

// send writes what fields shows.
func send(to io.Writer, fields func(*wire)) error {
	w := wire{text: make([]byte, sizeBytes, 8<<10)}
	fields(&w)
	n := len(w.text) - sizeBytes
	if n > maxWire {
		return fmt.Errorf("%d bytes are more than %d", n, maxWire)
	}
	binary.LittleEndian.PutUint32(w.text, uint32(n))
	_, err := to.Write(w.text)
	return err
}

// receive reads into what fields shows. io.EOF: there was nothing.
func receive(from io.Reader, fields func(*wire)) error {
	var size [sizeBytes]byte
	if _, err := io.ReadFull(from, size[:]); err != nil {
		return err
	}
	n := binary.LittleEndian.Uint32(size[:])
	if n > maxWire {
		return errWire
	}
	w := wire{text: make([]byte, n), reads: true}
	if _, err := io.ReadFull(from, w.text); err != nil {
		return err
	}
	fields(&w)
	if w.bad || len(w.text) > 0 {
		return errWire
	}
	return nil
}

// take returns the next n bytes of a reader; nil: there are not so many.
func (w *wire) take(n int) []byte {
	if n > len(w.text) {
		w.bad, w.text = true, nil
		return nil
	}
	taken := w.text[:n:n]
	w.text = w.text[n:]
	return taken
}

// number is one of those, in 8 bytes.
func number[T ~int | ~uint32 | ~uint64 | ~uintptr](w *wire, v *T) {
	if !w.reads {
		w.text = binary.LittleEndian.AppendUint64(w.text, uint64(*v))
		return
	}
	raw := w.take(8)
	if raw == nil {
		return
	}
	n := binary.LittleEndian.Uint64(raw)
	*v = T(n)
	if uint64(*v) != n {
		w.bad = true
	}
}

// truth is 1 or 0, as a number.
func truth(w *wire, v *bool) {
	n := 0
	if *v {
		n = 1
	}
	number(w, &n)
	if w.reads {
		*v = n == 1
		w.bad = w.bad || n != 0 && n != 1
	}
}

// text is a string or bytes.
func text[T ~string | ~[]byte](w *wire, v *T) {
	n := len(*v)
	count(w, &n, 1)
	if !w.reads {
		w.text = append(w.text, *v...)
	} else if n > 0 {
		*v = T(w.take(n))
	}
}

// count is how many elements come, of at least size bytes each: a reader makes no room
// for more than can be there.
func count(w *wire, n *int, size int) {
	number(w, n)
	if w.reads && (*n < 0 || *n > len(w.text)/size) {
		w.bad, w.text, *n = true, nil, 0
	}
}

// list is one of elements that each shows.
func list[T any](w *wire, v *[]T, size int, each func(*wire, *T)) {
	n := len(*v)
	count(w, &n, size)
	if w.reads && n > 0 {
		*v = make([]T, n)
	}
	for i := range *v {
		each(w, &(*v)[i])
	}
}

func (p *Plan) wire(w *wire) {
	list(w, &p.Command, 8, text)
	list(w, &p.Env, 8, text)
	text(w, &p.Dir)
	number(w, &p.UID)
	number(w, &p.GID)
	list(w, &p.Groups, 8, number)
	number(w, &p.Umask)
	for _, set := range []*uint64{&p.Caps.Bounding, &p.Caps.Effective, &p.Caps.Permitted, &p.Caps.Inheritable, &p.Caps.Ambient} {
		number(w, set)
	}
	truth(w, &p.NoNewPrivileges)
	list(w, &p.Limits, 24, func(w *wire, l *Limit) {
		number(w, &l.Kind)
		number(w, &l.Soft)
		number(w, &l.Hard)
	})
	text(w, &p.Filter)
	text(w, &p.Keyring)
	number(w, &p.Like.OOMScore)
	number(w, &p.Like.Nice)
	for i := range p.Like.CPUs {
		number(w, &p.Like.CPUs[i])
	}
	list(w, &p.Procs, 8, text)
	text(w, &p.CgroupRoot)
	text(w, &p.Cgroup)
}

func (m *message) wire(w *wire) {
	text(w, &m.Kind)
	text(w, &m.Text)
	number(w, &m.Code)
}

// file is a descriptor of the helper's. It only waits in the call: an os.File would first
// be made known to the poller, which costs the helper more than all that it reads.
type file int

// openFile opens a file of the kernel's to be written to.
func openFile(path string) (file, error) {
	fd, err := again(func() (int, error) { return unix.Open(path, unix.O_WRONLY|unix.O_CLOEXEC, 0) })
	if err != nil {
		return -1, &os.PathError{Op: "open", Path: path, Err: err}
	}
	return file(fd), nil
}

// Read implements io.Reader.
func (f file) Read(p []byte) (int, error) {
	n, err := again(func() (int, error) { return unix.Read(int(f), p) })
	switch {
	case err != nil:
		return 0, err
	case n == 0 && len(p) > 0:
		return 0, io.EOF
	}
	return n, nil
}

// Write implements io.Writer.
func (f file) Write(p []byte) (int, error) {
	for done := 0; ; {
		n, err := again(func() (int, error) { return unix.Write(int(f), p[done:]) })
		if err != nil {
			return done, err
		}
		done += n
		if done >= len(p) {
			return done, nil
		}
	}
}

// again calls until no signal cuts in.
func again(call func() (int, error)) (int, error) {
	for {
		if n, err := call(); err != unix.EINTR {
			return n, err
		}
	}
}
