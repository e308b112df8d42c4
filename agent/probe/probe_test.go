package probe

import (
	"context"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stead-project/stead/agent/runtime"
	"github.com/stead-project/stead/spec"
)

var id = runtime.ContainerID{ID: spec.Identity{Namespace: "default", Set: "db", Ordinal: 0}, Name: "main"}

// script answers exec probes by the command's first word, and notes when.
type script struct {
	mu    sync.Mutex
	begun time.Time
	calls []string
	code  func(word string, call int) (int, error)
}

func (s *script) exec(_ context.Context, _ runtime.ContainerID, e runtime.Exec) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	word := e.Command[0]
	n := 0
	for _, call := range s.calls {
		if strings.HasPrefix(call, word) {
			n++
		}
	}
	s.calls = append(s.calls, fmt.Sprintf("%s@%v", word, time.Since(s.begun)))
	return s.code(word, n)
}

func command(word string, delay, period int32) *spec.Probe {
	return &spec.Probe{Exec: &spec.ExecAction{Command: []string{word}}, InitialDelaySeconds: delay, PeriodSeconds: period}
}

// probe runs a prober for d of a bubble's time and returns what it told and when.
func probe(t *testing.T, s *script, target Target, d time.Duration) []string {
	t.Helper()
	s.begun = time.Now()
	target.ID = id
	var told []string
	ctx, cancel := context.WithTimeout(t.Context(), d)
	defer cancel()
	New(Config{Exec: s.exec}).Probe(ctx, target, func(h Health) {
		told = append(told, fmt.Sprintf("%s@%v", picture(h), time.Since(s.begun)))
	})
	return told
}

func TestProbesRunInTheirTimesAndOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &script{code: func(word string, call int) (int, error) {
			if word == "start" && call < 2 || word == "ready" && call < 1 {
				return 1, nil
			}
			return 0, nil
		}}
		told := probe(t, s, Target{Container: spec.Container{
			StartupProbe:   command("start", 1, 2),
			ReadinessProbe: command("ready", 7, 5),
			LivenessProbe:  command("live", 0, 4),
		}}, 15*time.Second-time.Millisecond)
		if want := []string{"-@0s", "-@1s", "S@5s", "S@7s", "SR@12s"}; !reflect.DeepEqual(told, want) {
			t.Errorf("told %v, want %v", told, want)
		}
		want := []string{"start@1s", "start@3s", "start@5s", "live@5s", "ready@7s", "live@9s", "ready@12s", "live@13s"}
		if !reflect.DeepEqual(s.calls, want) {
			t.Errorf("calls %v, want %v", s.calls, want)
		}
	})
}

func TestItEndsWhenTheContainerIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &script{code: func(word string, call int) (int, error) {
			if word == "live" && call > 0 {
				return 1, nil
			}
			return 0, nil
		}}
		told := probe(t, s, Target{Container: spec.Container{
			ReadinessProbe: command("ready", 0, 1), LivenessProbe: command("live", 0, 10),
		}}, time.Hour)
		if want := []string{"S@0s", "SR@0s", "SF@30s"}; !reflect.DeepEqual(told, want) {
			t.Errorf("told %v, want %v", told, want)
		}
		calls := len(s.calls)
		time.Sleep(time.Minute)
		if len(s.calls) != calls {
			t.Error("it was probed after it was given up")
		}
	})
}

func TestAnAdoptedContainerIsProbedAtOnceAndStaysReady(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &script{code: func(string, int) (int, error) { return 0, nil }}
		told := probe(t, s, Target{Adopted: true, Health: Health{Started: true, Ready: true}, Container: spec.Container{
			StartupProbe: command("start", 60, 1), ReadinessProbe: command("ready", 60, 10),
		}}, 5*time.Second)
		if want := []string{"SR@0s"}; !reflect.DeepEqual(told, want) {
			t.Errorf("told %v, want %v", told, want)
		}
		if want := []string{"ready@0s"}; !reflect.DeepEqual(s.calls, want) {
			t.Errorf("calls %v, want %v", s.calls, want)
		}
	})
}

func TestARuntimeThatDoesNotAnswerIsNoFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &script{code: func(string, int) (int, error) { return 0, runtime.ErrUnavailable }}
		told := probe(t, s, Target{Container: spec.Container{LivenessProbe: command("live", 0, 1)}}, time.Minute)
		if want := []string{"SR@0s"}; !reflect.DeepEqual(told, want) {
			t.Errorf("told %v, want %v", told, want)
		}
		if len(s.calls) < 50 {
			t.Errorf("it was tried %d times only", len(s.calls))
		}
	})
}

func TestASlowProbeFailsAtItsTimeOutAndDelaysNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		lives := 0
		p := New(Config{Exec: func(ctx context.Context, _ runtime.ContainerID, e runtime.Exec) (int, error) {
			if e.Command[0] == "ready" {
				<-ctx.Done()
				return 0, ctx.Err()
			}
			mu.Lock()
			lives++
			mu.Unlock()
			return 0, nil
		}})
		slow := command("ready", 0, 10)
		slow.TimeoutSeconds = 9
		ctx, cancel := context.WithTimeout(t.Context(), 30500*time.Millisecond)
		defer cancel()
		var last Health
		begun := time.Now()
		p.Probe(ctx, Target{ID: id, Container: spec.Container{ReadinessProbe: slow, LivenessProbe: command("live", 0, 1)}},
			func(h Health) { last = h })
		if want := "readiness probe: not done within 9s"; last.Ready || last.Message != want {
			t.Errorf("got %+v, want message %q", last, want)
		}
		if lives != 31 {
			t.Errorf("liveness was asked %d times, want 31", lives)
		}
		if took := time.Since(begun); took != 30500*time.Millisecond {
			t.Errorf("it returned after %v, want 30.5s", took)
		}
	})
}
