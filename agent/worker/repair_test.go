package worker

import (
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stead-project/stead/agent/files"
	"github.com/stead-project/stead/records"
)

func TestARepairPutsBackLinkAndFilesOfWhatRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNode(t)
		n.run()
		n.w.Tell(life(5, records.GoalRun))
		time.Sleep(time.Minute)
		n.wantReady()
		must(t, n.host.Detach(t.Context(), db0))
		resolv := filepath.Join(files.At(n.w.c.RunDir, db0).Etc, "resolv.conf")
		must(t, os.Remove(resolv))
		attached := func() int {
			ids, err := n.host.Attached(t.Context())
			must(t, err)
			return len(ids)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if attached() != 0 {
			t.Fatal("the worker noticed without a repair; the test shows nothing")
		}
		n.w.Repair()
		synctest.Wait()
		if attached() != 1 {
			t.Error("the link is not there again")
		}
		if _, err := os.Stat(resolv); err != nil {
			t.Error(err)
		}
		n.wantReady()
		n.wantStarts(tok(5), 1)

		// What was told to stop gets nothing back.
		n.w.Tell(life(5, records.GoalStop))
		time.Sleep(time.Minute)
		n.wantStopped(tok(5))
		n.w.Repair()
		synctest.Wait()
		if attached() != 0 {
			t.Error("a stopped member has a link")
		}
	})
}
