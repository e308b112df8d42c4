package agent

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stead-project/stead/agent/reclaim"
	"github.com/stead-project/stead/agent/runtime"
	"github.com/stead-project/stead/agent/runtime/fakert"
	"github.com/stead-project/stead/proto/wire"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
)

// last is the newest state that was told of each volume in any session.
func (n *node) lastOf(volume records.VolumeID) (state records.VolumeState) {
	n.t.Helper()
	n.script.mu.Lock()
	defer n.script.mu.Unlock()
	for _, m := range n.script.trash {
		reports, err := wire.ToDocuments[records.VolumeReport](m.GetReportsJson())
		must(n.t, err)
		for _, r := range reports {
			if r.Volume == volume {
				state = r.State
			}
		}
	}
	return state
}

func TestWhatLiesOnADiskThatIsAwayIsNotErased(t *testing.T) {
	box(t, func(t *testing.T, n *node) {
		n.host.PutVolume(db0, "data", vol)
		n.script.say(ordered(t, 10, giveUp))
		n.wantSaid(records.VolumeTrashed, "")
		n.host.OnCall(func(_ context.Context, c fakert.Call) error {
			if c.Op == "Trash" || c.Op == "Erase" {
				return fmt.Errorf("storage class local: %w", runtime.ErrNotFound)
			}
			return nil
		})
		gone := giveUp
		gone.Fate = records.FateGone
		n.script.say(ordered(t, 11, gone))
		time.Sleep(2 * time.Hour)
		n.wantSaid(records.VolumeTrashed, "")
		n.host.OnCall(nil) // it is mounted again
		n.wantSaid(records.VolumeErased, "")
	})
}

func TestATrashThatIsNotKnownWholeIsNotToldAsWhole(t *testing.T) {
	box(t, func(t *testing.T, n *node) {
		n.host.PutVolume(db0, "data", vol)
		n.script.say(ordered(t, 10, giveUp))
		n.wantSaid(records.VolumeTrashed, "")
		for _, whole := range []bool{false, true} {
			n.host.OnCall(func(_ context.Context, c fakert.Call) error {
				if c.Op == "Trash" && !whole {
					return fmt.Errorf("storage class local: %w", runtime.ErrNotFound)
				}
				return nil
			})
			n.kill()
			n.run()
			n.wantSaid(records.VolumeTrashed, "")
			n.script.mu.Lock()
			told := n.script.trash[len(n.script.trash)-1]
			n.script.mu.Unlock()
			if told.GetFull() != whole {
				t.Errorf("told as whole: %v, want %v", told.GetFull(), whole)
			}
		}
	})
}

// More volumes than are erased at once take for ever: what else is asked of volumes is
// done meanwhile, and each of them has its turn.
func TestAVolumeThatTakesLongHoldsUpNoOther(t *testing.T) {
	box(t, func(t *testing.T, n *node) {
		const slow = reclaim.ErasuresAtOnce + 1
		id := func(i int) spec.Identity { return spec.Identity{Namespace: "default", Set: "db", Ordinal: i} }
		uid := func(i int) records.VolumeID { return records.VolumeID(fmt.Sprintf("%032d", i)) }
		order := func(i int, fate records.VolumeFate) records.VolumeOrder {
			return records.VolumeOrder{ID: id(i), Claim: "data", Volume: uid(i), Number: 1, Class: "local", Fate: fate}
		}
		var mu sync.Mutex
		tried := map[string]int{}
		healed, now, most := false, 0, 0
		n.host.OnCall(func(ctx context.Context, c fakert.Call) error {
			if c.Op != "Erase" || c.Name == string(uid(slow)) {
				return nil
			}
			mu.Lock()
			tried[c.Name]++
			if healed {
				mu.Unlock()
				return nil
			}
			now++
			most = max(most, now)
			mu.Unlock()
			<-ctx.Done()
			mu.Lock()
			now--
			mu.Unlock()
			return ctx.Err()
		})
		var giveUps, gones []records.VolumeOrder
		for i := range slow + 1 {
			n.host.PutVolume(id(i), "data", uid(i))
			giveUps, gones = append(giveUps, order(i, records.FateReclaiming)), append(gones, order(i, records.FateGone))
		}
		n.script.say(ordered(t, 10, giveUps...))
		time.Sleep(time.Second)
		n.script.say(ordered(t, 11, gones[:slow]...))
		time.Sleep(time.Second) // they hang
		n.host.PutVolume(db0, "wal", vol)
		wal := giveUp
		wal.Claim = "wal"
		n.script.say(ordered(t, 12, wal))
		time.Sleep(time.Second)
		if got := n.lastOf(vol); got != records.VolumeTrashed {
			t.Errorf("another volume is given up: it is %q", got)
		}
		wal.Fate, wal.Turn = records.FateRestoring, 1
		n.script.say(ordered(t, 13, wal))
		time.Sleep(time.Second)
		if got := n.lastOf(vol); got != records.VolumeFound || !slices.Contains(n.host.Volumes(), vol) {
			t.Errorf("another volume is brought back: it is %q", got)
		}
		n.script.say(ordered(t, 14, gones[slow]))
		time.Sleep(10 * reclaim.EraseTime)
		if got := n.lastOf(uid(slow)); got != records.VolumeErased {
			t.Errorf("another volume is erased: it is %q", got)
		}
		mu.Lock()
		for i := range slow {
			if tried[string(uid(i))] == 0 {
				t.Errorf("volume %d had no turn: %v", i, tried)
			}
		}
		if most != reclaim.ErasuresAtOnce {
			t.Errorf("%d were erased at once, want %d", most, reclaim.ErasuresAtOnce)
		}
		healed = true
		mu.Unlock()
		time.Sleep(10 * reclaim.EraseTime)
		for i := range slow {
			if got := n.lastOf(uid(i)); got != records.VolumeErased {
				t.Errorf("volume %d is not erased in the end: it is %q", i, got)
			}
		}
	})
}
