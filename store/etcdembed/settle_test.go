package etcdembed

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"

	"github.com/stead-project/stead/records/stores"
)

// A member that starts while the others elect a leader waits for that. It ended, and systemd called the restart of an upgrade a failure.
func TestAMemberThatStartsDuringAnElectionWaitsForIt(t *testing.T) {
	damaged := errors.New("damaged")
	for _, c := range []struct {
		name  string
		end   string
		says  []error
		want  error
		tries int
	}{
		{"a leader is elected", "", []error{rpctypes.ErrLeaderChanged, rpctypes.ErrNoLeader, context.DeadlineExceeded, nil}, nil, 4},
		{"what does not pass ends it", "", []error{rpctypes.ErrLeaderChanged, damaged}, damaged, 2},
		{"a member that others removed", "", []error{stores.ErrRemoved}, stores.ErrRemoved, 1},
		{"it is to end", "asked", []error{rpctypes.ErrNoLeader}, rpctypes.ErrNoLeader, 1},
		{"it has ended", "by itself", []error{rpctypes.ErrNoLeader}, rpctypes.ErrNoLeader, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				ended, tries := make(chan struct{}), 0
				switch c.end {
				case "asked":
					cancel()
				case "by itself":
					close(ended)
				}
				err := whilePassing(ctx, ended, func(context.Context) error {
					tries++
					if says := c.says[tries-1]; says != nil {
						return fmt.Errorf("list members: %w", says)
					}
					return nil
				})
				if !errors.Is(err, c.want) || tries != c.tries {
					t.Errorf("%v after %d tries; want %v after %d", err, tries, c.want, c.tries)
				}
			})
		})
	}
}
