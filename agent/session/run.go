package session

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/status"

	"github.com/stead-project/stead/internal/backoff"
	"github.com/stead-project/stead/internal/trouble"
	"github.com/stead-project/stead/proto"
)

// Dial makes a connection to a server; the caller closes it.
type Dial func(ctx context.Context) (*grpc.ClientConn, error)

// Loop is what Run needs beside a client; all of it.
type Loop struct {
	Dial Dial
	// Answer answers an ask of the server until ctx ends.
	Answer func(ctx context.Context, client proto.NodesClient, ask *proto.Ask)
	// RetryFirst is the wait after a session; while none is welcomed it doubles up to RetryMost,
	// with jitter.
	RetryFirst, RetryMost time.Duration
	// Welcome is how long a server may take to welcome us.
	Welcome time.Duration
}

// Run holds one session after the other until ctx ends. What ends them is logged once, not
// each time.
func (c *Client) Run(ctx context.Context, l Loop) {
	failures, last := 0, trouble.Last{}
	for {
		welcomed, err := c.run(ctx, l)
		if ctx.Err() != nil {
			return
		}
		if welcomed {
			failures, last = 0, trouble.Last{}
		}
		if last.Is(plain(err)) {
			c.log.Warn("session ended", "err", plain(err))
		}
		failures++
		wait := backoff.After(l.RetryFirst, l.RetryMost, failures)
		if !backoff.Sleep(ctx, wait/2+rand.N(wait)) {
			return
		}
	}
}

// plain is an error's sentence without the wrapping of gRPC.
func plain(err error) string {
	if s, ok := status.FromError(err); ok {
		return s.Message()
	}
	return err.Error()
}

type stream = grpc.BidiStreamingClient[proto.FromNode, proto.ToNode]

// run talks with a server until either side ends it.
func (c *Client) run(ctx context.Context, l Loop) (welcomed bool, err error) {
	conn, err := l.Dial(ctx)
	if err != nil {
		return false, fmt.Errorf("reach a server: %w", err)
	}
	defer conn.Close()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	client := proto.NewNodesClient(conn)
	stream, welcome, err := c.sayHello(ctx, cancel, client, l.Welcome)
	if err != nil {
		return false, err
	}
	s, err := c.Begin(ctx, welcome)
	defer c.End()
	if err != nil {
		return false, err
	}
	var group sync.WaitGroup
	defer group.Wait()
	defer cancel(nil)
	group.Go(func() { cancel(s.send(ctx, stream)) })
	err = s.receive(stream, func(ask *proto.Ask) {
		group.Go(func() { l.Answer(ctx, client, ask) })
	})
	if cause := context.Cause(ctx); cause != nil && !errors.Is(cause, context.Canceled) {
		err = cause
	}
	return true, err
}

// sayHello opens the session and waits to be welcomed, at most so long.
func (c *Client) sayHello(ctx context.Context, cancel context.CancelCauseFunc, client proto.NodesClient, most time.Duration) (stream, *proto.Welcome, error) {
	late := time.AfterFunc(most, func() { cancel(errors.New("the server does not answer hello")) })
	defer late.Stop()
	stream, err := client.Session(ctx)
	if err != nil {
		return nil, nil, err
	}
	hello, err := c.Hello(ctx)
	if err != nil {
		return nil, nil, err
	}
	if err := stream.Send(hello); err != nil {
		return nil, nil, receiveError(stream, err)
	}
	answer, err := stream.Recv()
	if err != nil {
		if cause := context.Cause(ctx); cause != nil {
			err = cause
		}
		return nil, nil, err
	}
	welcome := answer.GetWelcome()
	if welcome == nil {
		return nil, nil, errors.New("the server did not answer hello with welcome")
	}
	return stream, welcome, nil
}

// receiveError is the reason for which a stream ended: a failed Send only says EOF.
func receiveError(stream stream, sent error) error {
	if _, err := stream.Recv(); err != nil {
		return err
	}
	return sent
}

// send sends what comes due, and pings; it returns when ctx ends, the stream is broken, or
// the session is to end.
func (s *Session) send(ctx context.Context, stream stream) error {
	ping := time.NewTicker(s.PingEvery())
	defer ping.Stop()
	for {
		messages, next, err := s.Flush()
		if err != nil {
			return err
		}
		for _, m := range messages {
			if err := stream.Send(m); err != nil {
				return err
			}
		}
		var later <-chan time.Time
		if next > 0 {
			later = time.After(next)
		}
		select {
		case <-ctx.Done():
			return context.Canceled
		case <-s.c.cfg.Outbox.changed.C():
		case <-later:
		case <-ping.C:
			m, err := s.Ping()
			if err != nil {
				return err
			}
			if err := stream.Send(m); err != nil {
				return err
			}
		}
	}
}

// receive takes what the server says until the stream ends.
func (s *Session) receive(stream stream, answer func(*proto.Ask)) error {
	for {
		m, err := stream.Recv()
		if err != nil {
			return err
		}
		if m.GetAsk() != nil {
			answer(m.GetAsk())
			continue
		}
		if err := s.Handle(m); err != nil {
			return err
		}
	}
}
