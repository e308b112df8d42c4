package step

import (
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
)

// Memory is what the ledger knows of the identity.
type Memory struct {
	Newest, Open spec.Token
	// Ends are closed tokens whose end the server has not stored, oldest first.
	Ends []spec.Token
}

// Orders is what the server last said of the identity. Stop is final: who keeps
// the orders never turns a Stop of a token back into Run.
type Orders struct {
	// Token is the life last told of; zero: none. Goal is what is wanted of it.
	Token spec.Token
	Goal  records.Goal
	// Over is the highest token that was said to be superseded; zero: none.
	Over spec.Token
}

// Choose picks the token that is to be dealt with now, with its standing and its
// order: the open one until it is closed, then ends that were not told yet, then
// what is wanted. The zero token: the identity needs nothing.
func Choose(m Memory, o Orders, told func(spec.Token) bool) (spec.Token, Standing, Order) {
	if !m.Open.IsZero() {
		return m.Open, Open, o.of(m.Open)
	}
	for _, t := range m.Ends {
		if !told(t) {
			return t, Closed, OrderNone
		}
	}
	switch c := o.Token.Compare(m.Newest); {
	case o.Token.IsZero() || c == 0:
		return m.Newest, Closed, OrderNone
	case c < 0:
		return o.Token, Spent, OrderNone
	}
	return o.Token, Fresh, o.of(o.Token)
}

// of is the order for the life t: absence is none, a newer life means Stop.
func (o Orders) of(t spec.Token) Order {
	switch {
	case o.Over.Compare(t) >= 0, o.Token.Compare(t) > 0:
		return OrderStop
	case o.Token != t:
		return OrderNone
	case o.Goal == records.GoalStop:
		return OrderStop
	case o.Goal == records.GoalRun:
		return OrderRun
	}
	return OrderNone
}
