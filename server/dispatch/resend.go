package dispatch

import (
	"fmt"

	"github.com/stead-project/stead/proto"
	"github.com/stead-project/stead/proto/wire"
	"github.com/stead-project/stead/spec"
)

// receiveResend notes which sets the node is to be sent as a whole. It does not block.
func (se *session) receiveResend(m *proto.Resend) {
	se.mu.Lock()
	for _, name := range m.GetSets() {
		ref := wire.ToSetRef(name)
		if canBeSent(ref) && len(se.resend) <= maxResends {
			se.resend[ref] = true
		}
	}
	asked := len(se.resend)
	se.changed = se.changed || asked > 0
	se.mu.Unlock()
	if asked > maxResends {
		se.abortOverLimit(LimitResend, fmt.Sprintf("it asks for more than %d sets", maxResends))
		return
	}
	se.out.filled.Notify()
}

// takeResend is what the node asked for since the last call.
func (se *session) takeResend() map[spec.SetRef]bool {
	se.mu.Lock()
	defer se.mu.Unlock()
	if len(se.resend) == 0 {
		return nil
	}
	asked := se.resend
	se.resend = map[spec.SetRef]bool{}
	return asked
}
