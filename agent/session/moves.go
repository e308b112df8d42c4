package session

import (
	"github.com/stead-project/stead/proto"
	"github.com/stead-project/stead/proto/wire"
	"github.com/stead-project/stead/records/moves"
)

// MoveReports are what the node says of its parts in moves.
type MoveReports = Said[moves.MoveReport]

// NewMoveReports returns one that says nothing yet. notify is called when Session.Flush has something to say of it.
func NewMoveReports(notify func()) *MoveReports {
	return &MoveReports{notify: notify, equal: moves.MoveReport.Equal, message: movesMessage}
}

func movesMessage(now []moves.MoveReport) (*proto.FromNode, error) {
	docs, err := wire.Documents(now)
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
