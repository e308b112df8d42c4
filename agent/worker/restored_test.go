package worker

import (
	"testing"
	"time"

	"github.com/stead-project/stead/agent/files"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
)

// What was decided after a backup is in no store any more: the identity of a life that was
// assigned here and never begun may run elsewhere by now.
func TestALifeFromBeforeARestoreIsNotBegunAfterIt(t *testing.T) {
	scenario(t, func(t *testing.T, n *node) {
		withEnv := func(l *records.Life) {
			l.Template.Spec.Containers[0].EnvFrom = []spec.EnvFromSource{{ConfigMapRef: &spec.NameRef{Name: "etc"}}}
		}
		n.epoch.Store(1)
		n.run()
		n.w.Tell(life(5, records.GoalRun))
		n.wantReady()
		n.epoch.Store(2)
		time.Sleep(time.Minute)
		n.w.Tell(life(5, records.GoalRun))
		n.wantReady() // what is open goes on
		n.w.Tell(life(5, records.GoalStop))
		time.Sleep(time.Minute)
		n.wantStopped(tok(5))

		n.w.Tell(with(life(6, records.GoalRun), withEnv))
		time.Sleep(time.Minute)
		n.wantLast("refused", func(r records.Report) bool {
			return r.Token == tok(6) && r.Phase == records.PhaseFailed && r.Cause == "Restored"
		})
		n.book.Put(true, []records.Files{{Kind: files.KindConfigMap, Namespace: "default", Name: "etc"}})
		n.w.FilesChanged()
		time.Sleep(time.Minute)
		n.wantStarts(tok(6), 0)
	})
}
