package session

import (
	"encoding/json"
	"slices"
	"sync"

	"github.com/stead-project/stead/proto"
	"github.com/stead-project/stead/records"
)

// Conditions are what the node is short of, as servers are to know it: in the hello of a session, and later whenever it
// is something else. Safe for concurrent use; of a nil one there is none.
type Conditions struct {
	notify func() // there is a message

	mu     sync.Mutex
	now    []records.NodeCondition
	unsent bool
}

// NewConditions returns an empty list. notify is called when Session.Flush has something to say of it.
func NewConditions(notify func()) *Conditions { return &Conditions{notify: notify} }

// Set says what the node is short of now, in order. Figures alone are not sent again.
func (c *Conditions) Set(now []records.NodeCondition) {
	c.mu.Lock()
	defer c.mu.Unlock()
	same := records.SameConditions(c.now, now)
	c.now = slices.Clone(now)
	if !same {
		c.unsent = true
		c.notify()
	}
}

// Now is what was set last.
func (c *Conditions) Now() []records.NodeCondition {
	if c == nil {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.now)
}

// all is what the node is short of, taken as sent.
func (c *Conditions) all() []records.NodeCondition {
	if c == nil {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.unsent = false
	return slices.Clone(c.now)
}

// changed is the message that says what the node is short of, if that is not what was sent last (nil).
func (c *Conditions) changed() (*proto.FromNode, error) {
	if c == nil {
		return nil, nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.unsent {
		return nil, nil
	}
	doc, err := json.Marshal(c.now)
	c.unsent = err != nil
	return &proto.FromNode{Kind: &proto.FromNode_Conditions{Conditions: &proto.Conditions{ConditionsJson: doc}}}, err
}
