package dispatch

import (
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/stead-project/stead/internal/notify"
	"github.com/stead-project/stead/proto"
	"github.com/stead-project/stead/proto/wire"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/store"
)

// maxAsks bounds the asks that wait to be sent to one node.
const maxAsks = 64

// pong answers a ping. read is the revision of the linearizable read that the answer
// rests on: a node that was sent all up to it is up to date as of the ping. known is at
// least as new; held: that read has shown a hold.
type pong struct {
	id    int64
	read  store.Rev
	since time.Time
	known records.Known
	held  bool
}

// message is the pong on the wire. While the store is held the node learns nothing of it.
func (p pong) message(current bool) *proto.Pong {
	m := &proto.Pong{Id: p.id, Current: current, Held: p.held}
	if !p.held {
		m.Known = wire.Known(p.known)
	}
	return m
}

// pongTime is how long a pong waits for what is to be sent before it.
const pongTime = 100 * time.Millisecond

// outbox gathers the small answers to one node until its session sends them. It
// is bounded by its nature: the newest pong, one answer a life, maxAsks asks.
type outbox struct {
	filled *notify.Signal

	mu     sync.Mutex
	pong   pong // id 0: none
	listed bool // the first list was sent
	stored map[spec.LifeID]*proto.StoredReport
	asks   []*proto.Ask
}

func newOutbox() *outbox {
	return &outbox{filled: notify.New(), stored: map[spec.LifeID]*proto.StoredReport{}}
}

func (o *outbox) addPong(p pong) {
	p.since = time.Now()
	o.mu.Lock()
	o.pong = p
	o.mu.Unlock()
	o.filled.Notify()
}

// allowPongs lets pongs go: the first list was sent.
func (o *outbox) allowPongs() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.listed = true
}

// releasePong has the pong wait for nothing more.
func (o *outbox) releasePong() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.pong.since = time.Time{}
}

func (o *outbox) addStored(l spec.LifeID, seq int64, stale bool) {
	o.mu.Lock()
	o.stored[l] = &proto.StoredReport{Id: wire.Identity(l.ID), Token: wire.Token(l.Token), Seq: seq, Stale: stale}
	o.mu.Unlock()
	o.filled.Notify()
}

// addAsk reports whether there was room.
func (o *outbox) addAsk(a *proto.Ask) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.asks) >= maxAsks {
		return false
	}
	o.asks = append(o.asks, a)
	o.filled.Notify()
	return true
}

// take empties the outbox. The pong goes first: a deadline may hang on it; but none before
// the session's first list, for a guarded life that was ordered
// before, and is over since, could start on the strength of it (SAFETY S1, S5). A node that
// was not sent all up to the pong's read waits for that a moment, unless the store is held,
// when nothing is sent; again is when to take again then (0: no need).
func (o *outbox) take(sent store.Rev) (out []*proto.ToNode, again time.Duration) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.pong.id != 0 && o.listed {
		current := sent >= o.pong.read
		again = pongTime - time.Since(o.pong.since)
		if current || o.pong.held || again <= 0 {
			out = append(out, &proto.ToNode{Kind: &proto.ToNode_Pong{Pong: o.pong.message(current)}})
			o.pong, again = pong{}, 0
		}
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
	return out, again
}
