package main

import (
	"context"
	"strings"
	"testing"
)

func TestEveryKindHasItsTables(t *testing.T) { newCluster(t, nil).play("get.txt") }

// TestAWatchContinuesUntilCtrlC: the present objects, then changes, then a clean end.
func TestAWatchContinuesUntilCtrlC(t *testing.T) {
	c := newCluster(t, nil)
	ctx, interrupt := context.WithCancel(t.Context())
	var out lines
	code := make(chan int, 1)
	go func() {
		code <- run(ctx, []string{"--server", "unix://" + c.socket, "get", "sets", "-w", "-A"}, &out, &out)
	}()
	c.until("the watch began", func() bool { return strings.Contains(out.String(), "NAMESPACE") })
	if code, said := c.stead("apply", "-f", "testdata/db.yaml", "--wait"); code != exitDone {
		t.Fatal(said)
	}
	c.until("the set is shown as available", func() bool { return strings.Contains(out.String(), "3/3") })
	interrupt()
	if got := <-code; got != exitDone || strings.Count(out.String(), "NAMESPACE") != 1 {
		t.Errorf("exit code %d\n%s", got, &out)
	}
}

func TestDiffAndDryRunSayWhatApplyWouldDo(t *testing.T) { newCluster(t, nil).play("diff.txt") }

func TestDescribeAndHistoryAnswerTheOperator(t *testing.T) { newCluster(t, nil).play("describe.txt") }
