package peer

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"github.com/stead-project/stead/agent/move/tree"
	"github.com/stead-project/stead/spec"
)

// A connection carries frames: a kind, a length, a content. The target asks for a tree (walk), and gets it as tree.Walk
// shows it: directories (enter, leave) with entries (batch). It answers each batch with what it needs of the contents, in
// order, and gets that (file, data, hole, end) between further entries.
type kind byte

const (
	walkFrame  kind = 'w' // target: walk
	needsFrame kind = 'n' // target: needs
	totalFrame kind = 't' // source: total
	enterFrame kind = 'd' // source: enter
	leaveFrame kind = 'l'
	batchFrame kind = 'b' // source: batch
	fileFrame  kind = 'F' // source: file; until its end come data and holes of it
	dataFrame  kind = 'D' // source: offset, content
	holeFrame  kind = 'H' // source: offset, length
	endFrame   kind = 'E' // source: end
	aliveFrame kind = 'a' // source: it reads, and has nothing to say yet
	doneFrame  kind = 'z' // source: the tree is shown
	errorFrame kind = 'x' // source: failure
)

type walk struct {
	Claim spec.ClaimName
	Fresh bool // no sum is believed
}

type total struct{ Bytes int64 }

type enter struct {
	Depth int
	Name  string
}

type batch struct {
	Number  int64
	Entries []tree.Item
}

// needs is what the target needs of a batch, ascending; empty: nothing.
type needs struct {
	Batch int64
	Files []need
}

// need is one file: of what the target has the blocks, of its size.
type need struct {
	Index  int
	Size   int64
	Blocks []tree.Digest
}

type file struct {
	Batch int64
	Index int
	Size  int64
}

// end is that of a file, as it is now. Not OK: it vanished, or was written to, and what was sent counts as far as it goes.
type end struct {
	Batch int64
	Index int
	OK    bool
	Item  tree.Item
	Sum   []byte
}

type failure struct {
	Text  string
	Never bool
}

const (
	// frameMost bounds a frame: a batch, with all attributes that one file may have.
	frameMost = 5 << 20
	// silenceMost is how long a peer may say nothing.
	silenceMost = 2 * time.Minute
	aliveEvery  = 10 * time.Second
	dataBytes   = 256 << 10
)

// wire is one end of a connection. Several may send; one receives.
type wire struct {
	conn net.Conn
	in   *bufio.Reader

	mu  sync.Mutex
	out *bufio.Writer
}

func newWire(c net.Conn) *wire {
	return &wire{conn: c, in: bufio.NewReaderSize(c, 64<<10), out: bufio.NewWriterSize(c, 64<<10)}
}

// send sends a frame whose content is the parts, one after the other. flush: the peer waits for it.
func (w *wire) send(k kind, flush bool, parts ...[]byte) error {
	n := 0
	for _, p := range parts {
		n += len(p)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	head := binary.BigEndian.AppendUint32([]byte{byte(k)}, uint32(n))
	_, err := w.out.Write(head)
	for _, p := range parts {
		if err == nil {
			_, err = w.out.Write(p)
		}
	}
	if err == nil && flush {
		err = w.out.Flush()
	}
	return err
}

func (w *wire) say(k kind, doc message) error {
	var p packer
	doc.pack(&p)
	if len(p.b) > frameMost {
		return fmt.Errorf("%d bytes are too much for one message", len(p.b))
	}
	return w.send(k, true, p.b)
}

// receive returns the next frame. Its content is valid until the next call. patient: the peer may take any time.
func (w *wire) receive(buf []byte, patient bool) (kind, []byte, error) {
	var head [5]byte
	limit := time.Time{}
	if !patient {
		limit = time.Now().Add(silenceMost)
	}
	if err := w.conn.SetReadDeadline(limit); err != nil {
		return 0, buf, err
	}
	if _, err := io.ReadFull(w.in, head[:]); err != nil {
		return 0, buf, err
	}
	n := binary.BigEndian.Uint32(head[1:])
	if n > frameMost {
		return 0, buf, fmt.Errorf("a message of %d bytes", n)
	}
	if cap(buf) < int(n) {
		buf = make([]byte, n)
	}
	buf = buf[:n]
	_, err := io.ReadFull(w.in, buf)
	return kind(head[0]), buf, err
}
