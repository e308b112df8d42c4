package containerdrt

import (
	"io"
	"sync"
	"time"

	"github.com/containerd/containerd/v2/pkg/cio"
)

// drainTime is how long a silent output is waited for after the command has ended:
// what it left in the background may hold its stdout open without end.
const drainTime = 2 * time.Second

// input is a command's stdin; ended is closed when it is read to its end.
type input struct {
	from  io.Reader
	ended chan struct{}
	once  sync.Once
}

func newInput(from io.Reader) *input { return &input{from: from, ended: make(chan struct{})} }

// Read implements io.Reader.
func (i *input) Read(p []byte) (int, error) {
	n, err := i.from.Read(p)
	if err != nil {
		i.once.Do(func() { close(i.ended) })
	}
	return n, err
}

// output watches what a command's writers are given.
type output struct {
	mu      sync.Mutex
	writing int       // writers that take their time now
	last    time.Time // when something was written last
}

// to is a writer to w (nil: nowhere) that is watched.
func (o *output) to(w io.Writer) io.Writer {
	if w == nil {
		w = io.Discard
	}
	return watched{o, w}
}

type watched struct {
	o *output
	w io.Writer
}

// Write implements io.Writer.
func (w watched) Write(p []byte) (int, error) {
	w.o.step(1)
	defer w.o.step(-1)
	return w.w.Write(p)
}

func (o *output) step(n int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.writing, o.last = o.writing+n, time.Now()
}

// silent reports whether nothing was written for drainTime, and nothing is.
func (o *output) silent() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.writing == 0 && time.Since(o.last) > drainTime
}

// drain waits for the rest of the output, then closes the pipes. A reader that is
// slow gets all of it.
func (o *output) drain(pipes cio.IO) {
	o.step(0)
	rest := make(chan struct{})
	go func() {
		defer close(rest)
		pipes.Wait()
	}()
	tick := time.NewTicker(drainTime / 20)
	defer tick.Stop()
	for {
		select {
		case <-rest:
			return
		case <-tick.C:
			if o.silent() {
				pipes.Close()
				<-rest
				return
			}
		}
	}
}
