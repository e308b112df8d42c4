package session

import (
	"encoding/json"

	"github.com/stead-project/stead/proto"
	"github.com/stead-project/stead/proto/wire"
	"github.com/stead-project/stead/records"
)

// PreparedImages are what the node says of preparations.
type PreparedImages = Said[records.Prepared]

// NewPreparedImages returns one that says nothing yet. notify is called when Session.Flush has something to say of it.
func NewPreparedImages(notify func()) *PreparedImages {
	return &PreparedImages{notify: notify, equal: func(a, b records.Prepared) bool { return a == b }, message: preparedMessage}
}

func preparedMessage(now []records.Prepared) (*proto.FromNode, error) {
	doc, err := json.Marshal(now)
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
