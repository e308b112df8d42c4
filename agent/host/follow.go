package host

import (
	"context"
	"errors"
	"net/netip"

	"github.com/stead-project/stead/dnsd"
	"github.com/stead-project/stead/spec"
)

// Follower gets from servers what DNS is asked for and this node is not sent: agent.Agent.
type Follower interface {
	// FollowSet returns when Update had all of a set, or there is none.
	FollowSet(context.Context, spec.SetRef) error
	// FollowAddress is FollowSet of the set that has a member with this address, if one has.
	FollowAddress(context.Context, netip.Addr) error
	// AskedFor says that a set was asked for. It does not block.
	AskedFor(spec.SetRef)
}

// SetFollower has names of other sets answered; before, questions for them fail.
func (m *Machine) SetFollower(f Follower) { m.follower.Store(&f) }

func (m *Machine) follow(ctx context.Context, i dnsd.Interest) error {
	f := m.follower.Load()
	switch {
	case f == nil:
		return errors.New("the agent is starting")
	case i.Address.IsValid():
		return (*f).FollowAddress(ctx, i.Address)
	}
	return (*f).FollowSet(ctx, i.Set)
}

func (m *Machine) asked(ref spec.SetRef) {
	if f := m.follower.Load(); f != nil {
		(*f).AskedFor(ref)
	}
}
