package session

import (
	"reflect"
	"slices"
	"sync"

	"github.com/stead-project/stead/proto"
	"github.com/stead-project/stead/proto/wire"
	"github.com/stead-project/stead/records/moves"
)

// MoveReports are what the node says of its parts in moves, as servers are to know it: in the hello of a session, and later
// whenever it is something else. Safe for concurrent use; a nil one says nothing.
type MoveReports struct {
	notify func() // there is a message

	mu        sync.Mutex
	now, sent []moves.MoveReport
}

// NewMoveReports returns one that says nothing yet. notify is called when Session.Flush has something to say of it.
func NewMoveReports(notify func()) *MoveReports { return &MoveReports{notify: notify} }

// Set takes what there is to say of all moves now, in order.
func (r *MoveReports) Set(now []moves.MoveReport) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.now = slices.Clone(now)
	if !same(r.now, r.sent) {
		r.notify()
	}
}

func same(a, b []moves.MoveReport) bool {
	return slices.EqualFunc(a, b, func(x, y moves.MoveReport) bool { return reflect.DeepEqual(x, y) })
}

// all is what there is to say, taken as sent.
func (r *MoveReports) all() []moves.MoveReport {
	if r == nil {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.sent = r.now
	return r.now
}

// changed is the message that says it, if that is not what was sent last (nil).
func (r *MoveReports) changed() (*proto.FromNode, error) {
	if r == nil {
		return nil, nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if same(r.now, r.sent) {
		return nil, nil
	}
	docs, err := wire.Documents(r.now)
	r.sent = r.now
	return &proto.FromNode{Kind: &proto.FromNode_Moves{Moves: &proto.MoveReports{ReportsJson: docs}}}, err
}

// takeMoves hands on all moves in which the node has a part, of a list of this epoch; nil: as before.
func (c *Client) takeMoves(m *proto.MoveOrders, epoch int64) {
	if m == nil || c.cfg.TakeMoves == nil {
		return
	}
	orders, err := wire.ToDocuments[moves.MoveOrder](m.GetOrdersJson())
	if err != nil {
		c.log.Error("orders of moves not decoded; ignored", "err", err) // absence is no order, and a seal stays
		return
	}
	c.cfg.TakeMoves(orders, epoch)
}
