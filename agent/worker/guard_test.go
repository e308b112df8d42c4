package worker

import (
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
)

// late is a guard whose lives miss their deadline between the look at them and the start:
// of a life that is asked about without its bound.
type late struct{ dir string }

func (late) Begin(spec.Identity, spec.Token, time.Duration) error { return nil }
func (late) Expire(spec.Identity, spec.Token) error               { return nil }
func (late) Forget(spec.Identity, spec.Token) error               { return nil }
func (l late) Record(spec.Identity) string                        { return filepath.Join(l.dir, "record") }
func (late) Look(_ spec.Identity, _ spec.Token, bound time.Duration) Guarded {
	return Guarded{Recorded: true, Passed: bound == 0, Watched: true}
}

func TestALifeThatMissesItsDeadlineAfterTheLookIsNotStarted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNode(t)
		n.guard = late{n.dir}
		n.run()
		n.w.Tell(with(life(5, records.GoalRun), func(l *records.Life) { l.Member.Bound = time.Minute }))
		time.Sleep(10 * time.Second)
		if r := n.last(); r.Cause != "StartError" || r.Bound != time.Minute {
			t.Errorf("reported %+v", r)
		}
		if made, ok := n.host.Container(cid); !ok || made.Log.Guard != n.guard.Record(db0) {
			t.Errorf("its logger is told of the record %q", made.Log.Guard)
		}
		if got := n.host.StartsOf(cid, tok(5)); got != 0 {
			t.Errorf("started %d times", got)
		}
	})
}
