package dispatch

import (
	"maps"
	"slices"
	"sync"

	"github.com/stead-project/stead/proto"
	"github.com/stead-project/stead/proto/wire"
	"github.com/stead-project/stead/spec"
)

// life names one life; also what a node holds.
type life = spec.Stray

// maxAsks bounds the asks that wait to be sent to one node.
const maxAsks = 64

// outbox gathers the small answers to one node until its session sends them. It
// is bounded by its nature: the newest pong, one answer a life, maxAsks asks.
type outbox struct {
	wake chan struct{} // holds one when there is something

	mu     sync.Mutex
	pong   int64 // 0: none
	stored map[life]*proto.StoredReport
	asks   []*proto.Ask
}

func newOutbox() *outbox {
	return &outbox{wake: make(chan struct{}, 1), stored: map[life]*proto.StoredReport{}}
}

func (o *outbox) ring() {
	select {
	case o.wake <- struct{}{}:
	default:
	}
}

func (o *outbox) addPong(id int64) {
	o.mu.Lock()
	o.pong = id
	o.mu.Unlock()
	o.ring()
}

func (o *outbox) addStored(l life, seq int64, stale bool) {
	o.mu.Lock()
	o.stored[l] = &proto.StoredReport{Id: wire.Identity(l.ID), Token: wire.Token(l.Token), Seq: seq, Stale: stale}
	o.mu.Unlock()
	o.ring()
}

// addAsk tells whether there was room.
func (o *outbox) addAsk(a *proto.Ask) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.asks) >= maxAsks {
		return false
	}
	o.asks = append(o.asks, a)
	o.ring()
	return true
}

// take empties the outbox. The pong goes first: a deadline may hang on it.
func (o *outbox) take() []*proto.ToNode {
	o.mu.Lock()
	defer o.mu.Unlock()
	var out []*proto.ToNode
	if o.pong != 0 {
		out = append(out, &proto.ToNode{Kind: &proto.ToNode_Pong{Pong: &proto.Pong{Id: o.pong}}})
		o.pong = 0
	}
	if len(o.stored) > 0 {
		reports := slices.Collect(maps.Values(o.stored))
		out = append(out, &proto.ToNode{Kind: &proto.ToNode_Stored{Stored: &proto.Stored{Reports: reports}}})
		clear(o.stored)
	}
	for _, a := range o.asks {
		out = append(out, &proto.ToNode{Kind: &proto.ToNode_Ask{Ask: a}})
	}
	o.asks = nil
	return out
}
