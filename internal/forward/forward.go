// Package forward moves the bytes of one TCP connection as frames over a stream, both ways. Each
// direction ends by itself, and has a window: what was sent and not yet taken is bounded, so that
// whoever receives frames is never held up by a connection that is not read.
package forward

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"syscall"

	"github.com/stead-project/stead/proto"
)

const (
	// Window is the most bytes of a direction that are under way: sent, and not yet taken.
	Window = 256 << 10
	// frameBytes bounds the data of one frame.
	frameBytes = 32 << 10
)

// Conn is a connection whose directions end apart, such as a *net.TCPConn.
type Conn interface {
	io.ReadWriteCloser
	CloseWrite() error
}

// Link is one connection that is forwarded.
type Link struct {
	conn Conn
	send func(*proto.Frame) error
	// out is the channel of what is read from the connection, in of what is written to it.
	out, in int32

	mu     sync.Mutex
	credit int    // bytes that may still be sent
	queue  []byte // received, and not yet being written
	unsaid int    // bytes received and not yet said to be taken
	end    bool   // the other side sends nothing more
	news   chan struct{}
	room   chan struct{}
}

// New makes a Link. send is called by two goroutines at a time.
func New(conn Conn, send func(*proto.Frame) error, out, in int32) *Link {
	return &Link{conn: conn, send: send, out: out, in: in, credit: Window, news: make(chan struct{}, 1), room: make(chan struct{}, 1)}
}

// Take takes a frame of the other side. It does not block. It fails when the other side does not
// keep to the window, or sends what does not belong here.
func (l *Link) Take(f *proto.Frame) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case f.GetChannel() == l.out && len(f.GetData()) == 0 && f.GetTaken() > 0 && f.GetTaken() <= int64(Window-l.credit):
		l.credit += int(f.GetTaken())
		wake(l.room)
		return nil
	case f.GetChannel() != l.in || l.end:
		return fmt.Errorf("unexpected frame of channel %d", f.GetChannel())
	case l.unsaid+len(f.GetData()) > Window:
		return errors.New("more was sent than the window allows")
	}
	l.queue, l.end = append(l.queue, f.GetData()...), f.GetDone()
	l.unsaid += len(f.GetData())
	wake(l.news)
	return nil
}

func wake(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default: // it will look anyway
	}
}

// Run moves bytes until both directions have ended, or one failed or ctx ended: the connection is
// reset then. It closes the connection.
func (l *Link) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	stop := context.AfterFunc(ctx, l.reset)
	var both sync.WaitGroup
	for _, direction := range []func(context.Context) error{l.read, l.write} {
		both.Go(func() {
			if err := direction(ctx); err != nil {
				cancel(err)
			}
		})
	}
	both.Wait()
	if stop() {
		return l.conn.Close()
	}
	return context.Cause(ctx)
}

// reset closes the connection such that the program at its end hears that it broke.
func (l *Link) reset() {
	if c, ok := l.conn.(interface{ SetLinger(int) error }); ok {
		_ = c.SetLinger(0) // it may be closed
	}
	_ = l.conn.Close()
}

// read sends what the connection brings.
func (l *Link) read(ctx context.Context) error {
	buf := make([]byte, frameBytes)
	for {
		most, err := l.mayRead(ctx, len(buf))
		if err != nil {
			return err
		}
		n, err := l.conn.Read(buf[:most])
		if n > 0 {
			l.mu.Lock()
			l.credit -= n
			l.mu.Unlock()
			if err := l.send(&proto.Frame{Channel: l.out, Data: buf[:n]}); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			return l.send(&proto.Frame{Channel: l.out, Done: true})
		}
		if err != nil {
			return err
		}
	}
}

// mayRead waits until something may be sent, and returns how much, at most want.
func (l *Link) mayRead(ctx context.Context, want int) (int, error) {
	for {
		l.mu.Lock()
		credit := l.credit
		l.mu.Unlock()
		if credit > 0 {
			return min(credit, want), nil
		}
		select {
		case <-l.room:
		case <-ctx.Done():
			return 0, context.Cause(ctx)
		}
	}
}

// write gives the connection what the other side sends.
func (l *Link) write(ctx context.Context) error {
	for {
		l.mu.Lock()
		data, end := l.queue, l.end
		l.queue = nil
		l.mu.Unlock()
		if len(data) > 0 {
			if err := l.writePart(data); err != nil {
				return err
			}
			continue
		}
		if end {
			if err := l.conn.CloseWrite(); !errors.Is(err, syscall.ENOTCONN) { // the program has closed both directions
				return err
			}
			return nil
		}
		select {
		case <-l.news:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

func (l *Link) writePart(data []byte) error {
	if _, err := l.conn.Write(data); err != nil {
		return err
	}
	l.mu.Lock()
	l.unsaid -= len(data)
	l.mu.Unlock()
	return l.send(&proto.Frame{Channel: l.in, Taken: int64(len(data))})
}
