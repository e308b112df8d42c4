package session

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"

	"github.com/stead-project/stead/agent/logs"
	"github.com/stead-project/stead/agent/runtime"
	"github.com/stead-project/stead/proto"
	"github.com/stead-project/stead/proto/wire"
	"github.com/stead-project/stead/spec"
)

// frameBytes bounds the data of one frame.
const frameBytes = 256 << 10

type tunnel struct {
	stream grpc.BidiStreamingClient[proto.Frame, proto.Frame]
	rest   []byte // received and not yet read
	done   bool   // the server's direction ended
	// heard is closed when the stream is over; nil: listen was not called yet.
	heard chan struct{}

	sending sync.Mutex // one at a time may send
	closed  bool       // nothing more may be sent
}

// listen gives what the asker sends to take, and calls gone when it went away or
// take fails. Afterwards nothing can be read.
func (t *tunnel) listen(take func(*proto.Frame) error, gone func()) {
	t.heard = make(chan struct{})
	go func() {
		defer close(t.heard)
		defer gone()
		for {
			f, err := t.stream.Recv()
			if err != nil {
				return
			}
			if take(f) != nil {
				gone()
			}
		}
	}()
}

func ignore(*proto.Frame) error { return nil }

func (t *tunnel) send(f *proto.Frame) error {
	t.sending.Lock()
	defer t.sending.Unlock()
	if t.closed {
		return io.ErrClosedPipe
	}
	return t.stream.Send(f)
}

// close sends the last frame.
func (t *tunnel) close(last *proto.Frame) error {
	t.sending.Lock()
	defer t.sending.Unlock()
	t.closed = true
	return errors.Join(t.stream.Send(last), t.stream.CloseSend())
}

// linger keeps the stream until the asker has read all and closed it.
func (t *tunnel) linger() {
	if t.heard == nil {
		t.listen(ignore, func() {})
	}
	<-t.heard
}

// Answerer does what people ask of a node: logs, a command, images. All fields are needed.
type Answerer struct {
	Runtime runtime.Runtime
	// Root is the node's; logs are below it.
	Root string
	// ImagesChanged is called when images were loaded.
	ImagesChanged func()
	// VolumeUses says how full the node's volumes are.
	VolumeUses func() []runtime.VolumeUse
	Logger     *slog.Logger

	forwards atomic.Int64 // connections that are forwarded now
}

// Answer opens the tunnel of an ask and answers it; it ends when the asker has
// enough or ctx ends.
func (a *Answerer) Answer(ctx context.Context, client proto.NodesClient, ask *proto.Ask) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := client.Tunnel(ctx)
	if err == nil {
		err = stream.Send(&proto.Frame{Ask: ask.GetId()})
	}
	if err != nil {
		a.Logger.Warn("request not answered", "err", plain(err))
		return
	}
	t := &tunnel{stream: stream}
	last := &proto.Frame{Done: true, Channel: proto.ChannelControl}
	switch {
	case ask.GetLogs() != nil:
		t.listen(ignore, cancel) // ends a log that is followed
		err = a.answerLogs(ctx, t, ask.GetLogs())
	case ask.GetImageLoad() != nil:
		last.Data, err = a.loadImage(ctx, t)
	case ask.GetImages() != nil:
		last.Data, err = a.listImages(ctx)
	case ask.GetExec() != nil:
		var code int
		code, err = a.exec(ctx, t, ask.GetExec())
		last.ExitCode = int32(code)
	case ask.GetUsage().GetVolumes():
		last.Data, err = a.volumeUsage()
	case ask.GetUsage() != nil:
		t.listen(ignore, cancel)
		last.Data, err = a.usage(ctx)
	case ask.GetForward() != nil:
		err = a.forward(ctx, t, ask.GetForward())
	default:
		err = errors.New("this agent does not know the request; it may be older than the server")
	}
	if err != nil {
		last.Error, last.Code = err.Error(), int32(codeOf(err))
	}
	if t.close(last) != nil {
		cancel() // the asker went away
	}
	t.linger()
}

func codeOf(err error) codes.Code {
	switch {
	case errors.Is(err, logs.ErrNoRun), errors.Is(err, runtime.ErrNotFound):
		return codes.NotFound
	case errors.Is(err, runtime.ErrUnavailable):
		return codes.Unavailable
	case errors.Is(err, context.Canceled):
		return codes.Canceled
	case errors.Is(err, runtime.ErrNotRunning):
		return codes.FailedPrecondition
	case errors.Is(err, runtime.ErrBadSpec), errors.Is(err, runtime.ErrImageRefused):
		return codes.InvalidArgument
	case errors.Is(err, runtime.ErrNoSpace), errors.Is(err, errManyForwards):
		return codes.ResourceExhausted
	}
	return codes.Unknown
}

// answerLogs sends the lines of a container.
func (a *Answerer) answerLogs(ctx context.Context, t *tunnel, ask *proto.LogsAsk) error {
	dir, err := a.logDir(wire.ToIdentity(ask.GetMember()), ask.GetContainer())
	if err != nil {
		return err
	}
	o := logs.Options{Tail: ask.GetTail(), Follow: ask.GetFollow(), Previous: ask.GetPrevious(), Timestamps: ask.GetTimestamps()}
	if ns := ask.GetSinceUnixNanos(); ns != 0 {
		o.Since = time.Unix(0, ns)
	}
	return logs.Read(ctx, dir, o, t)
}

// logDir finds the log directory of a container; without a name the member's only one.
func (a *Answerer) logDir(id spec.Identity, container string) (string, error) {
	dir := filepath.Join(a.Root, "logs", string(id.Namespace), id.MemberName())
	if id.Namespace == "" || id.Set == "" || filepath.Base(container) != container && container != "" {
		return "", fmt.Errorf("logs of %s: %w", id, runtime.ErrBadSpec)
	}
	if container != "" {
		return filepath.Join(dir, container), nil
	}
	found, err := filepath.Glob(filepath.Join(dir, "*"))
	switch {
	case err != nil || len(found) == 0:
		return "", fmt.Errorf("logs of %s: no container of it has run on this node: %w", id, runtime.ErrNotFound)
	case len(found) > 1:
		return "", fmt.Errorf("logs of %s: it has several containers; name one with -c: %w", id, runtime.ErrBadSpec)
	}
	return found[0], nil
}

// Write sends data to the asker as output.
func (t *tunnel) Write(p []byte) (int, error) { return channel{t, proto.ChannelOut}.Write(p) }

// channel is one kind of output of a tunnel.
type channel struct {
	t      *tunnel
	number int32
}

// Write implements io.Writer.
func (c channel) Write(p []byte) (int, error) {
	for n := 0; n < len(p); {
		piece := p[n:min(len(p), n+frameBytes)]
		if err := c.t.send(&proto.Frame{Data: piece, Channel: c.number}); err != nil {
			return n, err
		}
		n += len(piece)
	}
	return len(p), nil
}

// Read reads what the asker sends, io.EOF at its end.
func (t *tunnel) Read(p []byte) (int, error) {
	for len(t.rest) == 0 {
		if t.done {
			return 0, io.EOF
		}
		f, err := t.stream.Recv()
		if err != nil {
			return 0, fmt.Errorf("the upload broke off: %w", err)
		}
		if f.GetError() != "" {
			return 0, errors.New(f.GetError())
		}
		t.rest, t.done = f.GetData(), f.GetDone()
	}
	n := copy(p, t.rest)
	t.rest = t.rest[n:]
	return n, nil
}

func (a *Answerer) loadImage(ctx context.Context, t *tunnel) ([]byte, error) {
	images, err := a.Runtime.LoadImage(ctx, t)
	if err != nil {
		return nil, err
	}
	a.ImagesChanged()
	return json.Marshal(images)
}

func (a *Answerer) listImages(ctx context.Context) ([]byte, error) {
	images, err := a.Runtime.Images(ctx)
	if err != nil {
		return nil, err
	}
	return json.Marshal(images)
}
