package dispatch

import (
	"context"
	"crypto/rand"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/stead-project/stead/proto"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/server/cache"
	"github.com/stead-project/stead/spec"
)

// DefaultAnswerTime is how long a node may take to come and to open the tunnel of
// an ask.
const DefaultAnswerTime = 10 * time.Second

// Broker brings what people ask of a node to its session, and the tunnel that the
// node opens for it back to them.
type Broker struct {
	answer time.Duration
	cache  cache.Reader
	// elsewhere says which other server holds a node's session; relay asks that.
	elsewhere func(spec.NodeName) *records.Session
	relay     func(context.Context, *records.Session, *proto.Ask) (*Tunnel, error)

	mu        sync.Mutex
	nodes     map[spec.NodeName]*outbox
	waiting   map[string]waiter
	connected chan struct{} // closed and replaced when a node comes
}

// waiter is who waits for the answer to an ask, and of whom.
type waiter struct {
	node   spec.NodeName
	answer chan *Tunnel
}

func newBroker(answer time.Duration, w cache.Reader) *Broker {
	return &Broker{answer: answer, cache: w, nodes: map[spec.NodeName]*outbox{}, waiting: map[string]waiter{}, connected: make(chan struct{})}
}

// AnswerTime is how long a node is waited for.
func (b *Broker) AnswerTime() time.Duration { return b.answer }

// Open asks node and returns the tunnel it opens; the caller closes it. ask's id
// is set here. It blocks until the node answers, at most AnswerTime; one that has
// no session yet is waited for, and one of another server is asked by that. Codes:
// UNAVAILABLE the node has no session, or does not answer.
func (b *Broker) Open(ctx context.Context, node spec.NodeName, ask *proto.Ask) (*Tunnel, error) {
	return b.open(ctx, node, ask, b.elsewhere)
}

func (b *Broker) open(ctx context.Context, node spec.NodeName, ask *proto.Ask, far func(spec.NodeName) *records.Session) (*Tunnel, error) {
	timer := time.NewTimer(b.answer)
	defer timer.Stop()
	out, other, err := b.find(ctx, node, far, timer.C)
	switch {
	case err != nil:
		return nil, err
	case other != nil:
		return b.relay(ctx, other, ask)
	}
	ask.Id = rand.Text()
	answer := make(chan *Tunnel, 1)
	b.mu.Lock()
	b.waiting[ask.Id] = waiter{node, answer}
	b.mu.Unlock()
	defer b.stopWaiting(ask.Id, answer)
	if !out.addAsk(ask) {
		return nil, status.Errorf(codes.Unavailable, "node %s is busy: %d requests wait for it", node, maxAsks)
	}
	select {
	case t := <-answer:
		t.bind(ctx)
		return t, nil
	case <-timer.C:
		return nil, status.Errorf(codes.Unavailable, "node %s did not answer within %s", node, b.answer)
	case <-ctx.Done():
		return nil, status.FromContextError(ctx.Err()).Err()
	}
}

// find is the outbox of node's session, or that session if it is another server's; it is
// waited for until late receives. far nil: this server's sessions only.
func (b *Broker) find(ctx context.Context, node spec.NodeName, far func(spec.NodeName) *records.Session, late <-chan time.Time) (*outbox, *records.Session, error) {
	sub := b.cache.Subscribe()
	defer sub.Close()
	for {
		b.mu.Lock()
		out, came := b.nodes[node], b.connected
		b.mu.Unlock()
		if out != nil {
			return out, nil, nil
		}
		if far != nil {
			if other := far(node); other != nil {
				return nil, other, nil
			}
		}
		select {
		case <-came:
		case <-sub.C():
			sub.Take()
		case <-late:
			return nil, nil, status.Errorf(codes.Unavailable, "node %s is silent: it has no session", node)
		case <-ctx.Done():
			return nil, nil, status.FromContextError(ctx.Err()).Err()
		}
	}
}

// stopWaiting ends the waiting for an ask; a tunnel that came too late is closed.
func (b *Broker) stopWaiting(id string, answer chan *Tunnel) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.waiting, id)
	select {
	case t := <-answer:
		t.Close()
	default:
	}
}

// deliver hands t to the caller that waits for its ask; false: none does.
func (b *Broker) deliver(id string, t *Tunnel) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	w, waits := b.waiting[id]
	if !waits {
		return false
	}
	delete(b.waiting, id) // an ask is answered once
	w.answer <- t
	return true
}

// Asked is the node that the ask of this id is for; false: it is not pending.
func (b *Broker) Asked(id string) (spec.NodeName, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	w, waits := b.waiting[id]
	return w.node, waits
}

// attach makes out the way to node; detach undoes it if it still is.
func (b *Broker) attach(node spec.NodeName, out *outbox) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.nodes[node] = out
	close(b.connected)
	b.connected = make(chan struct{})
}

func (b *Broker) detach(node spec.NodeName, out *outbox) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.nodes[node] == out {
		delete(b.nodes, node)
	}
}
