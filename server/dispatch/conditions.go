package dispatch

import (
	"encoding/json"
	"slices"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/stead-project/stead/proto"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec/scalar"
)

const (
	// maxConditions bounds what a node may be short of at once, and conditionBytes what it says of each.
	maxConditions  = 64
	conditionBytes = 512
	// conditionTime is the least time between two changes of it that are stored: each has all sets looked at.
	conditionTime = 5 * time.Second
)

// saneConditions is what a node said that it is short of: what this version knows, in order, each once, and safe to show.
func saneConditions(said []records.NodeCondition) []records.NodeCondition {
	out := slices.Clone(said)
	out = slices.DeleteFunc(out, func(c records.NodeCondition) bool {
		return !c.Known() || c.Class != "" && !scalar.ValidSubdomain(c.Class)
	})
	for i := range out {
		out[i].Status = "True"
		sanitize(&out[i].Message, conditionBytes)
	}
	slices.SortStableFunc(out, records.NodeCondition.Compare)
	out = slices.CompactFunc(out, func(a, b records.NodeCondition) bool { return a.Compare(b) == 0 })
	return out[:min(len(out), maxConditions)]
}

// receiveConditions takes what the node is short of now. It does not block.
func (se *session) receiveConditions(m *proto.Conditions) {
	var said []records.NodeCondition
	if len(m.GetConditionsJson()) > factsBytes {
		se.abortOverLimit(LimitHello, "what it says of its conditions is too long")
		return
	}
	if err := json.Unmarshal(m.GetConditionsJson(), &said); err != nil {
		se.abort(codes.InvalidArgument, "decode conditions: "+err.Error())
		return
	}
	se.mu.Lock()
	se.conditions, se.changed = saneConditions(said), true
	se.mu.Unlock()
	se.out.filled.Notify()
}

// nextConditions is what is to be stored of what the node is short of; again: later it may be something else.
func (se *session) nextConditions() (now []records.NodeCondition, again bool) {
	se.mu.Lock()
	defer se.mu.Unlock()
	stored := se.facts.Conditions
	if records.SameConditions(se.conditions, stored) {
		return stored, false
	}
	if !se.conditionsAt.IsZero() && time.Since(se.conditionsAt) < conditionTime {
		return stored, true
	}
	return se.conditions, false
}
