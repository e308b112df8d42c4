package containerdrt

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stead-project/stead/agent/cgroup"
	"github.com/stead-project/stead/agent/enter"
)

// TestACgroupIsCalledEmptyOnlyAfterASweepThatWentWell: who finds none sweeps before.
func TestACgroupIsCalledEmptyOnlyAfterASweepThatWentWell(t *testing.T) {
	left := errors.New("processes are left")
	for _, c := range []struct {
		name      string
		err, left error
		kept      bool
	}{
		{"it ran", nil, nil, true},
		{"its time was over", context.DeadlineExceeded, nil, true},
		{"there is no such program", enter.ErrCommand, nil, true},
		{"the sweep failed", left, left, false},
		{"its time was over, the sweep failed", errors.Join(context.DeadlineExceeded, left), left, false},
		{"it was refused", enter.ErrRefused, nil, false},
		{"it was late", fmt.Errorf("%w: %w", enter.ErrLate, context.DeadlineExceeded), nil, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			own := &cgroup.Own{}
			for _, o := range []*openContainer{{}, {own: own}} { // after a sweep before, and without
				o.take()
				if o.own != nil {
					t.Error("it is called empty while the command runs")
				}
				o.giveBack(own, c.err, c.left)
				if (o.own == own) != c.kept {
					t.Errorf("kept %v, want %v", o.own == own, c.kept)
				}
			}
		})
	}
}
