package host

import (
	"context"

	"github.com/stead-project/stead/agent/session"
	"github.com/stead-project/stead/dnsd"
	"github.com/stead-project/stead/spec"
)

// SetInterests has names of sets answered that the node is sent in brief; questions for them that came
// before wait. It is called once.
func (m *Machine) SetInterests(i *session.Interests) {
	m.interests.Store(i)
	close(m.following)
}

func (m *Machine) follow(ctx context.Context, i dnsd.Interest) error {
	select {
	case <-m.following:
	case <-ctx.Done():
		return ctx.Err()
	}
	f := m.interests.Load()
	if i.Address.IsValid() {
		return f.FollowAddress(ctx, i.Address)
	}
	return f.Follow(ctx, i.Set)
}

func (m *Machine) asked(ref spec.SetRef) {
	if f := m.interests.Load(); f != nil {
		f.Asked(ref)
	}
}
