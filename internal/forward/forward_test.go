package forward_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"net"
	"testing"
	"time"

	"github.com/stead-project/stead/internal/forward"
	"github.com/stead-project/stead/proto"
)

// patience bounds what a test waits for.
const patience = time.Minute

// connection is both ends of a TCP connection on this machine.
func connection(t *testing.T) (here, there *net.TCPConn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	a, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	b, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { a.Close(); b.Close() })
	for _, c := range []net.Conn{a, b} {
		if err := c.SetDeadline(time.Now().Add(patience)); err != nil {
			t.Fatal(err)
		}
	}
	return a.(*net.TCPConn), b.(*net.TCPConn)
}

// linked are two connections that are one: what is written to left comes out of right. ended has
// what each of the two links returned.
func linked(t *testing.T, ctx context.Context) (left, right *net.TCPConn, ended <-chan error) {
	t.Helper()
	left, near := connection(t)
	right, far := connection(t)
	toFar, toNear := make(chan *proto.Frame), make(chan *proto.Frame)
	ctx, cancel := context.WithCancel(ctx)
	send := func(to chan<- *proto.Frame) func(*proto.Frame) error {
		return func(f *proto.Frame) error {
			f = &proto.Frame{Channel: f.GetChannel(), Data: bytes.Clone(f.GetData()), Done: f.GetDone(), Taken: f.GetTaken()}
			select {
			case to <- f:
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		}
	}
	a := forward.New(near, send(toFar), proto.ChannelIn, proto.ChannelOut)
	b := forward.New(far, send(toNear), proto.ChannelOut, proto.ChannelIn)
	take := func(l *forward.Link, from <-chan *proto.Frame) {
		for {
			select {
			case f := <-from:
				if err := l.Take(f); err != nil {
					t.Errorf("take %v: %v", f, err)
				}
			case <-ctx.Done():
				return
			}
		}
	}
	go take(a, toNear)
	go take(b, toFar)
	results := make(chan error, 2)
	go func() { results <- a.Run(ctx) }()
	go func() { results <- b.Run(ctx) }()
	t.Cleanup(cancel)
	return left, right, results
}

// TestEachDirectionEndsByItself: the answer comes after the end of the question, and then both links
// have ended without an error.
func TestEachDirectionEndsByItself(t *testing.T) {
	left, right, ended := linked(t, t.Context())
	question := bytes.Repeat([]byte("0123456789abcdef"), 1<<19) // 8 MiB, many windows
	go func() {
		got, err := io.ReadAll(right)
		if err != nil {
			t.Error(err)
		}
		sum := sha256.Sum256(got)
		_, err = right.Write(sum[:])
		if err = errors.Join(err, right.CloseWrite()); err != nil {
			t.Error(err)
		}
	}()
	if _, err := left.Write(question); err != nil {
		t.Fatal(err)
	}
	if err := left.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	got, err := io.ReadAll(left)
	if want := sha256.Sum256(question); err != nil || !bytes.Equal(got, want[:]) {
		t.Errorf("got %x, %v, want %x", got, err, want)
	}
	for range 2 {
		if err := <-ended; err != nil {
			t.Errorf("a link ended with %v", err)
		}
	}
}

// TestADirectionThatIsNotReadDoesNotHoldUpTheOther.
func TestADirectionThatIsNotReadDoesNotHoldUpTheOther(t *testing.T) {
	left, right, _ := linked(t, t.Context())
	go func() { // until the test is over: nobody reads it
		for {
			if _, err := right.Write(make([]byte, 1<<20)); err != nil {
				return
			}
		}
	}()
	const size = 4 << 20
	go func() { _, _ = left.Write(make([]byte, size)) }()
	if n, err := io.CopyN(io.Discard, right, size); err != nil {
		t.Errorf("%d bytes came, then %v", n, err)
	}
}

// TestWhatIsNotTakenIsBounded: a sender that goes beyond the window, or says what cannot be, is refused.
func TestWhatIsNotTakenIsBounded(t *testing.T) {
	_, near := connection(t)
	for name, frames := range map[string][]*proto.Frame{
		"more than the window": {{Channel: proto.ChannelIn, Data: make([]byte, forward.Window)}, {Channel: proto.ChannelIn, Data: []byte("x")}},
		"after the end":        {{Channel: proto.ChannelIn, Done: true}, {Channel: proto.ChannelIn, Data: []byte("x")}},
		"taken before sent":    {{Channel: proto.ChannelOut, Taken: 1}},
		"another channel":      {{Channel: proto.ChannelErr, Data: []byte("x")}},
	} {
		l := forward.New(near, func(*proto.Frame) error { return nil }, proto.ChannelOut, proto.ChannelIn)
		last := len(frames) - 1
		for i, f := range frames {
			if err := l.Take(f); (err != nil) != (i == last) {
				t.Errorf("%s: frame %d: got %v", name, i, err)
			}
		}
	}
}

// TestAConnectionIsResetWhenItsOtherEndGoes, and not ended as if all had come.
func TestAConnectionIsResetWhenItsOtherEndGoes(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	left, right, ended := linked(t, ctx)
	if _, err := left.Write([]byte("x")); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(right, make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	cancel()
	for _, c := range []*net.TCPConn{left, right} {
		if n, err := c.Read(make([]byte, 1)); err == nil || errors.Is(err, io.EOF) {
			t.Errorf("got %d bytes, %v, want a reset", n, err)
		}
	}
	for range 2 {
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("got %v, want %v", err, context.Canceled)
		}
	}
}
