package etcdembed

import (
	"context"
	"errors"
	"slices"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"

	"github.com/stead-project/stead/records/stores"
)

// settle makes the member what it is to be once it serves. It waits while the store cannot answer, as the start did until here.
func (e *Embedded) settle(ctx context.Context) error {
	return whilePassing(ctx, e.ended, e.settleOnce)
}

// settleOnce gives a lone member the address at which others reach it.
func (e *Embedded) settleOnce(ctx context.Context) error {
	p := e.config.Peers
	if p == nil {
		return nil
	}
	members, err := e.Members(ctx)
	if err != nil {
		return err
	}
	at := slices.IndexFunc(members, func(m stores.StoreMember) bool { return m.ID == e.Self() })
	if at < 0 {
		return stores.ErrRemoved
	}
	if members[at].Peer == p.Address {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, e.etcd.Server.Cfg.ReqTimeout())
	defer cancel()
	_, err = e.client.MemberUpdate(ctx, uint64(e.etcd.Server.MemberID()), []string{peerScheme + "://" + p.Address})
	return plain("change the member's address", err)
}

// whilePassing does something again while it fails for reasons that pass by themselves, until ctx ends or the member has ended.
func whilePassing(ctx context.Context, ended <-chan struct{}, do func(context.Context) error) error {
	for {
		err := do(ctx)
		if !slices.ContainsFunc(passing, func(p error) bool { return errors.Is(err, p) }) {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-ended:
			return err
		case <-time.After(promoteEvery):
		}
	}
}

// passing is what etcd says while members elect a leader, or most are away: a member that just started, as each does that is
// restarted in an upgrade, meets it.
var passing = []error{
	rpctypes.ErrLeaderChanged, rpctypes.ErrNoLeader, rpctypes.ErrNotLeader, rpctypes.ErrTimeout, rpctypes.ErrTimeoutDueToLeaderFail,
	rpctypes.ErrTimeoutDueToConnectionLost, rpctypes.ErrTimeoutWaitAppliedIndex, context.DeadlineExceeded,
}
