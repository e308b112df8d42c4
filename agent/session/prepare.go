package session

import (
	"encoding/json"
	"slices"
	"sync"

	"github.com/stead-project/stead/proto"
	"github.com/stead-project/stead/proto/wire"
	"github.com/stead-project/stead/records"
)

// PreparedImages are what the node says of preparations, as servers are to know it: in the hello of a session, and later whenever
// it is something else. Safe for concurrent use; a nil one says nothing.
type PreparedImages struct {
	notify func() // there is a message

	mu        sync.Mutex
	now, sent []records.Prepared
}

// NewPreparedImages returns one that says nothing yet. notify is called when Session.Flush has something to say of it.
func NewPreparedImages(notify func()) *PreparedImages { return &PreparedImages{notify: notify} }

// Set takes what there is to say of all preparations now, in order.
func (p *PreparedImages) Set(now []records.Prepared) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.now = slices.Clone(now)
	if !slices.Equal(p.now, p.sent) {
		p.notify()
	}
}

// all is what there is to say, taken as sent.
func (p *PreparedImages) all() []records.Prepared {
	if p == nil {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.sent = p.now
	return p.now
}

// changed is the message that says it, if that is not what was sent last (nil).
func (p *PreparedImages) changed() (*proto.FromNode, error) {
	if p == nil {
		return nil, nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if slices.Equal(p.now, p.sent) {
		return nil, nil
	}
	doc, err := json.Marshal(p.now)
	p.sent = p.now
	return &proto.FromNode{Kind: &proto.FromNode_Prepared{Prepared: &proto.Prepared{PreparedJson: doc}}}, err
}

// takePreparations hands on what the node is to have; nil: as before.
func (c *Client) takePreparations(m *proto.Preparations) {
	if m == nil || c.cfg.Prepare == nil {
		return
	}
	list, err := wire.ToDocuments[records.Preparation](m.GetPreparationsJson())
	if err != nil {
		c.log.Error("preparations not decoded; ignored", "err", err) // no life depends on them
		return
	}
	c.cfg.Prepare(list)
}
