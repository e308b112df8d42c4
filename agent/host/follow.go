package host

import (
	"context"
	"errors"

	"github.com/stead-project/stead/agent/session"
	"github.com/stead-project/stead/dnsd"
	"github.com/stead-project/stead/spec"
)

// SetInterests has names of sets answered that the node is sent in brief; before, questions for
// them fail.
func (m *Machine) SetInterests(i *session.Interests) { m.interests.Store(i) }

func (m *Machine) follow(ctx context.Context, i dnsd.Interest) error {
	f := m.interests.Load()
	switch {
	case f == nil:
		return errors.New("the agent is starting")
	case i.Address.IsValid():
		return f.FollowAddress(ctx, i.Address)
	}
	return f.Follow(ctx, i.Set)
}

func (m *Machine) asked(ref spec.SetRef) {
	if f := m.interests.Load(); f != nil {
		f.Asked(ref)
	}
}
