package session

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"syscall"
	"time"

	"github.com/stead-project/stead/agent/runtime"
	"github.com/stead-project/stead/internal/forward"
	"github.com/stead-project/stead/proto"
	"github.com/stead-project/stead/proto/wire"
	"github.com/stead-project/stead/spec"
)

const (
	// maxForwards bounds the connections that a node forwards at a time: each may have
	// 2*forward.Window bytes under way, and all its streams together are bounded by servers.
	maxForwards = 128
	// connectTime bounds the making of a connection inside of a member.
	connectTime = 10 * time.Second
)

var errManyForwards = fmt.Errorf("the node forwards %d connections already, which is the most", maxForwards)

// forward connects to a port of a member, and moves bytes for the asker of t until both directions
// have ended. The connection is reset when the asker goes away.
func (a *Answerer) forward(ctx context.Context, t *tunnel, ask *proto.ForwardAsk) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	id, port := wire.ToIdentity(ask.GetMember()), uint16(ask.GetPort())
	if port == 0 {
		return a.reachable(ctx, id)
	}
	defer a.forwards.Add(-1)
	if a.forwards.Add(1) > maxForwards {
		return errManyForwards
	}
	conn, err := a.dial(ctx, id, port)
	if err != nil {
		return err
	}
	link := forward.New(conn, t.send, proto.ChannelOut, proto.ChannelIn)
	t.listen(link.Take, cancel)
	if err := link.Run(ctx); err != nil {
		return fmt.Errorf("member %s: the connection to port %d broke: %w", id.MemberName(), port, err)
	}
	return nil
}

// reachable fails unless the member has a network namespace here.
func (a *Answerer) reachable(ctx context.Context, id spec.Identity) error {
	all, err := a.Runtime.Sandboxes(ctx)
	if err == nil && !slices.ContainsFunc(all, func(s runtime.Sandbox) bool { return s.ID == id }) {
		err = fmt.Errorf("member %s: %w", id.MemberName(), runtime.ErrNotRunning)
	}
	return err
}

// dial connects to a port of a member.
func (a *Answerer) dial(ctx context.Context, id spec.Identity, port uint16) (forward.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, connectTime)
	defer cancel()
	conn, err := a.Runtime.Dial(ctx, id, port)
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		return nil, fmt.Errorf("member %s: nothing listens on port %d of its loopback", id.MemberName(), port)
	case err != nil:
		return nil, fmt.Errorf("member %s: port %d: %w", id.MemberName(), port, err)
	}
	halves, ok := conn.(forward.Conn)
	if !ok {
		return nil, errors.Join(errors.New("the connection cannot be closed in one direction"), conn.Close())
	}
	return halves, nil
}
