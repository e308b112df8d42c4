package session

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"

	"github.com/stead-project/stead/agent/runtime"
	"github.com/stead-project/stead/proto"
	"github.com/stead-project/stead/proto/wire"
)

// exec runs a command for the asker of t and returns its exit code. The command is
// killed when the asker goes away.
func (a *Answerer) exec(ctx context.Context, t *tunnel, ask *proto.ExecAsk) (int, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	id := runtime.ContainerID{ID: wire.ToIdentity(ask.GetMember()), Name: ask.GetContainer()}
	e := runtime.Exec{Command: ask.GetCommand(), Stdout: t, Stderr: channel{t, proto.ChannelErr}}
	in := &input{t: t, over: ctx.Done(), frames: make(chan *proto.Frame, 1), sizes: make(chan runtime.Size, 1)}
	if ask.GetStdin() {
		e.Stdin = in
	}
	if ask.GetTerminal() != nil {
		e.Terminal = &runtime.Terminal{Size: size(ask.GetTerminal()), Resize: in.sizes}
	}
	t.listen(in.take, cancel)
	return a.Runtime.Exec(ctx, id, e)
}

// input is what the asker sends to a command. It holds one frame: the next may come
// when that was taken. So the tunnel is always read and its end is heard, whether the
// command reads or not.
type input struct {
	t      *tunnel
	over   <-chan struct{} // the command is
	frames chan *proto.Frame
	sizes  chan runtime.Size // holds the newest

	now *proto.Frame // being read; nil: none
	end bool         // the input is over
}

// take accepts a frame of the asker; it does not block. It fails when the asker does
// not keep to the order of things.
func (in *input) take(f *proto.Frame) error {
	switch {
	case f.GetSize() != nil:
		select {
		case <-in.sizes: // it was not looked at; only one goroutine fills
		default:
		}
		in.sizes <- size(f.GetSize())
		return nil
	case f.GetChannel() != proto.ChannelIn:
		return fmt.Errorf("frame of channel %d", f.GetChannel())
	}
	select {
	case in.frames <- f:
		return nil
	default:
		return errors.New("input before the last was taken")
	}
}

// Read implements io.Reader for the command; it ends when the command does.
func (in *input) Read(p []byte) (int, error) {
	for in.now == nil {
		if in.end {
			return 0, io.EOF
		}
		select {
		case in.now = <-in.frames:
			in.end = in.now.GetDone()
		case <-in.over:
			return 0, io.ErrClosedPipe
		}
		if len(in.now.GetData()) == 0 {
			in.now = nil
		}
	}
	n := copy(p, in.now.GetData())
	in.now.Data = in.now.GetData()[n:]
	if len(in.now.Data) > 0 {
		return n, nil
	}
	in.now = nil
	return n, in.t.send(&proto.Frame{Channel: proto.ChannelIn})
}

func size(s *proto.Size) runtime.Size {
	return runtime.Size{Columns: uint16(min(s.GetColumns(), math.MaxUint16)), Rows: uint16(min(s.GetRows(), math.MaxUint16))}
}
