package main

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stead-project/stead/agent/runtime"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
)

func TestRolloutStatusSaysHowAnUpdateEndsOrWhyItDoesNot(t *testing.T) {
	newCluster(t, nil).play("rollout.txt")
}

// stuck is a cluster whose set db is never ready.
func stuck(t *testing.T) *cluster {
	c := newCluster(t, nil)
	c.host.OnPull(func(ref, _ string) error { return runtime.ErrImageMissing })
	if code, out := c.stead("apply", "-f", "testdata/db.yaml"); code != exitDone {
		t.Fatal(out)
	}
	return c
}

func TestAWaitThatTimesOutSaysWhatContinues(t *testing.T) {
	c := stuck(t)
	for _, line := range []string{
		"wait db", "wait set/db --for ready", "wait db --for deleted", "rollout status db",
		"apply -f testdata/db.yaml --wait", "scale db --replicas 2 --wait",
	} {
		t.Run(line, func(t *testing.T) {
			if !strings.HasSuffix(line, "--wait") {
				t.Parallel() // they change nothing
			}
			// Long enough for a busy machine to connect and look.
			code, out := c.stead(append(strings.Fields(line), "--timeout", "3s")...)
			if code != exitTimedOut || !strings.Contains(out, "not finished in time; the operation continues, see 'stead describe set db -n default'") {
				t.Errorf("exit code %d\n%s", code, out)
			}
		})
	}
}

func TestCtrlCEndsAWaitWithALineOfWhatContinues(t *testing.T) {
	c := stuck(t)
	for _, line := range []string{"wait db", "rollout status db", "apply -f testdata/db.yaml --wait", "scale db --replicas 2 --wait"} {
		ctx, interrupt := context.WithCancel(t.Context())
		var out lines
		code := make(chan int, 1)
		go func() {
			code <- run(ctx, append([]string{"--server", "unix://" + c.socket}, strings.Fields(line)...), &out, &out)
		}()
		c.until(line+" waits", func() bool { return strings.Contains(out.String(), "  db-0  ") })
		interrupt()
		if got := <-code; got != exitTimedOut || !strings.Contains(out.String(), "interrupted; the operation continues") {
			t.Errorf("%s: exit code %d\n%s", line, got, &out)
		}
	}
}

func TestALongWaitSaysThatItContinues(t *testing.T) {
	var out lines
	log := newProgress(&out)
	log.every = time.Millisecond
	three := int32(3)
	log.members(&spec.SetSpec{Replicas: &three}, &records.ShownSet{SetStatus: records.SetStatus{
		AvailableReplicas: 2, Members: []records.MemberStatus{{Name: "db-2", Blocked: "it is starting"}},
	}})
	stop := log.beat()
	for deadline := time.Now().Add(patience); !strings.Contains(out.String(), "still waiting:"); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("it is silent")
		}
	}
	stop()
	said := out.String()
	if !strings.Contains(said, "still waiting:  2 of 3 available; db-2 waits: it is starting") {
		t.Errorf("got %q", said)
	}
}

func TestAWaitEndsWhenWhatItWaitsForWillNotComeByItself(t *testing.T) {
	newCluster(t, nil).play("wait.txt")
}

func TestAWaitTakesKubectlsWords(t *testing.T) { newCluster(t, nil).play("waitfor.txt") }

// TestAWaitForDeleteEndsWithTheLife: a member that was restarted is another one.
func TestAWaitForDeleteEndsWithTheLife(t *testing.T) {
	c := newCluster(t, nil)
	if code, out := c.stead("apply", "-f", "testdata/db.yaml", "--wait", "--timeout", "2m"); code != exitDone {
		t.Fatal(out)
	}
	var out lines
	code := make(chan int, 1)
	go func() {
		code <- run(t.Context(), []string{"--server", "unix://" + c.socket, "wait", "--for=delete", "pod/db-1", "--timeout", "2m"}, &out, &out)
	}()
	// The wait may begin after the restart: then the next one ends it.
	c.until("the wait is over", func() bool {
		if code, said := c.stead("delete", "pod", "db-1"); code != exitDone && code != exitRefused {
			t.Fatal(said)
		}
		select {
		case got := <-code:
			if got != exitDone || !strings.Contains(out.String(), "pod/db-1 condition met") {
				t.Errorf("exit code %d\n%s", got, &out)
			}
			return true
		default:
			return false
		}
	})
}

func TestAWaitKnowsPausedAndStalled(t *testing.T) {
	two := int32(2)
	half := records.SetStatus{ObservedGeneration: 2, Replicas: 2, ReadyReplicas: 2, AvailableReplicas: 2, UpdatedReplicas: 1, UpdatedAvailableReplicas: 1}
	with := func(kind, reason string, change func(*records.SetStatus)) *records.ShownSet {
		st := half
		st.Conditions = []records.Condition{{Type: kind, Status: "True", Reason: reason}}
		if change != nil {
			change(&st)
		}
		return &records.ShownSet{SetStatus: st}
	}
	older := func(st *records.SetStatus) { st.ObservedGeneration = 1 }
	down := func(st *records.SetStatus) { st.AvailableReplicas = 1 }
	for name, c := range map[string]struct {
		st       *records.ShownSet
		goal     string
		end, err string
	}{
		"it goes on":                              {with("Progressing", "Rolling", nil), forAvailable, "", ""},
		"stalled":                                 {with("Stalled", "ProgressDeadline", nil), forAvailable, "", "is stalled"},
		"stalled, of an older generation":         {with("Stalled", "ProgressDeadline", older), forAvailable, "", ""},
		"paused, and all else is done":            {with("Progressing", "Paused", nil), forReady, "", "is paused"},
		"paused, and a member is not back":        {with("Progressing", "Paused", down), forAvailable, "", ""},
		"scaled is scaled, whatever is paused":    {with("Progressing", "Paused", nil), forScaled, "is available", ""},
		"a scale-up waits for all of its members": {with("Progressing", "Paused", down), forScaled, "", ""},
	} {
		o := &shownSet{Metadata: records.ShownMeta{Name: "db", Generation: 2}, Spec: spec.SetSpec{Replicas: &two}, Status: *c.st}
		end, err := waitEnd(o, c.goal)
		if end != c.end || (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%s: got %q, %v", name, end, err)
		}
	}
}

func TestARolloutThatWillNotEndIsAnError(t *testing.T) {
	three := int32(3)
	done := records.SetStatus{
		ObservedGeneration: 2, Replicas: 3, ReadyReplicas: 3, AvailableReplicas: 3, UpdatedReplicas: 3, UpdatedAvailableReplicas: 3, UpdateRevision: "r2",
	}
	with := func(change func(*records.ShownSet)) *records.ShownSet {
		st := records.ShownSet{SetStatus: done}
		change(&st)
		return &st
	}
	for name, c := range map[string]struct {
		st       *records.ShownSet
		end, err string
	}{
		"all is done":         {with(func(*records.ShownSet) {}), "is updated and available on revision r2", ""},
		"an older generation": {with(func(st *records.ShownSet) { st.ObservedGeneration = 1 }), "", ""},
		"one is missing":      {with(func(st *records.ShownSet) { st.AvailableReplicas = 2 }), "", ""},
		"being deleted":       {with(func(st *records.ShownSet) { st.Deleting = true }), "", "set db is being deleted"},
		"stalled": {with(func(st *records.ShownSet) {
			st.Conditions = []records.Condition{{Type: "Stalled", Status: "True", Reason: "ProgressDeadline", Message: "db-2: ImageMissing"}}
		}), "", "stalled (ProgressDeadline): db-2: ImageMissing; apply a corrected manifest, or go back"},
		"stalled, and it says what helps": {with(func(st *records.ShownSet) {
			st.Conditions = []records.Condition{{Type: "Stalled", Status: "True", Reason: "ProgressDeadline", Message: "db-1: to replace it now: stead restart db-1"}}
		}), "", "stalled (ProgressDeadline): db-1: to replace it now: stead restart db-1$"},
		"given up": {with(func(st *records.ShownSet) { st.RolledBackFrom, st.CurrentRevision = "r2", "r1" }), "",
			"rolled back: revision r2 did not become available in time, and the members return to r1"},
		"an older one was given up": {with(func(st *records.ShownSet) { st.RolledBackFrom = "r1" }), "is updated and available on revision r2", ""},
		"not stalled any more": {with(func(st *records.ShownSet) {
			st.Conditions = []records.Condition{{Type: "Stalled", Status: "False"}}
		}), "is updated and available on revision r2", ""},
	} {
		t.Run(name, func(t *testing.T) {
			o := &shownSet{Metadata: records.ShownMeta{Name: "db", Generation: 2}, Spec: spec.SetSpec{Replicas: &three}, Status: *c.st}
			end, err := rolloutEnd(o)
			if end != c.end || (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error()+"$", c.err) {
				t.Errorf("got %q, %v", end, err)
			}
		})
	}
}
