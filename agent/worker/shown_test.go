package worker

import (
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stead-project/stead/agent/files"
	"github.com/stead-project/stead/agent/ledger"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec/causes"
)

func TestFilesOfARunningMemberAreWrittenAgainAfterAWhile(t *testing.T) {
	const wait = 10 * time.Second
	scenario(t, func(t *testing.T, n *node) {
		n.tuning.Renew = wait
		n.apply("one")
		n.run()
		n.w.Tell(with(life(5, records.GoalRun), configured))
		n.wantReady()
		time.Sleep(time.Second)
		want := func(text string) {
			t.Helper()
			synctest.Wait()
			got, err := os.ReadFile(filepath.Join(files.At(n.w.c.RunDir, db0).Media, "etc", "run.sh"))
			if err != nil || string(got) != text {
				t.Fatalf("got %q, %v, want %q", got, err, text)
			}
		}
		for _, now := range [][]string{{"one", "two", "three"}, {"three", "four", "five"}} {
			n.apply(now[1])
			time.Sleep(time.Second)
			n.apply(now[2])
			time.Sleep(wait - 3*time.Second)
			want(now[0])
			time.Sleep(2 * time.Second)
			want(now[2])
		}
	})
}

// What stands there is confirmed only once this agent has written it.
func TestAConfirmationReachesTheFilesThatThisAgentWrote(t *testing.T) {
	scenario(t, func(t *testing.T, n *node) {
		var until atomic.Int64
		n.pictures = func(c *files.SetFilesConfig) {
			c.Confirmed = func() time.Duration { return time.Duration(until.Load()) }
		}
		confirm := func(seconds int64, want string) {
			t.Helper()
			until.Store(seconds * int64(time.Second))
			n.sets.ConfirmedMoved()
			synctest.Wait()
			if got := n.steadFile(files.ConfirmedFile); got != want+"\n" {
				t.Errorf("got %q, want %q", got, want)
			}
		}
		until.Store(int64(time.Minute))
		n.run()
		n.w.Tell(life(5, records.GoalRun))
		n.wantReady()
		confirm(60, "60.00")
		confirm(120, "120.00")
		n.kill()
		inTheWay := filepath.Join(files.At(n.w.c.RunDir, db0).Stead, files.MemberFile)
		must(t, os.Remove(inTheWay))
		must(t, os.MkdirAll(filepath.Join(inTheWay, "x"), 0o755))
		n.run()
		confirm(180, "120.00")
		n.wantCause(causes.FilesError, files.MemberFile)
		must(t, os.RemoveAll(inTheWay))
		time.Sleep(time.Minute)
		confirm(180, "180.00")
	})
}

func TestNothingBeginsOfWhichNothingCanBeKept(t *testing.T) {
	t.Run("its description", func(t *testing.T) {
		scenario(t, func(t *testing.T, n *node) {
			inTheWay := filepath.Join(n.dir, "run-b1", "lives")
			must(t, os.MkdirAll(filepath.Dir(inTheWay), 0o755))
			must(t, os.WriteFile(inTheWay, nil, 0o600))
			n.run()
			n.w.Tell(life(5, records.GoalRun))
			time.Sleep(10 * time.Second)
			n.wantCause(causes.LedgerError, "keep db-0.json")
			if open := n.ledger.Look(db0).Open; !open.IsZero() {
				t.Error("its token is open")
			}
			must(t, os.Remove(inTheWay))
			time.Sleep(time.Minute)
			n.wantReady()
		})
	})
	t.Run("its token", func(t *testing.T) {
		scenario(t, func(t *testing.T, n *node) {
			n.run()
			must(t, n.ledger.Close())
			n.w.Tell(life(5, records.GoalRun))
			time.Sleep(time.Minute)
			n.wantLast("the ledger", func(r records.Report) bool {
				return r.Cause == causes.LedgerError && strings.Contains(r.Message, ledger.ErrBroken.Error())
			})
			n.wantStarts(tok(5), 0)
		})
	})
}
