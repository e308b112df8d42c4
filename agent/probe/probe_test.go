package probe

import (
	"context"
	"fmt"
	"net"
	"reflect"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stead-project/stead/agent/runtime"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/spec/scalar"
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

// TestAContainerHasOneCommandAtATime: a slow command fails at its time-out, and delays
// the other kinds' commands until then, each in its turn; connections are not delayed.
func TestAContainerHasOneCommandAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var calls []string
		running, dials := 0, 0
		begun := time.Now()
		p := New(Config{
			Exec: func(ctx context.Context, _ runtime.ContainerID, e runtime.Exec) (int, error) {
				mu.Lock()
				running++
				if running > 1 || !e.Bounded {
					t.Errorf("%v: %d commands at a time, bounded %v", e.Command, running, e.Bounded)
				}
				calls = append(calls, fmt.Sprintf("%s@%v", e.Command[0], time.Since(begun)))
				mu.Unlock()
				defer func() {
					mu.Lock()
					running--
					mu.Unlock()
				}()
				if e.Command[0] == "ready" {
					<-ctx.Done()
					return 0, ctx.Err()
				}
				return 0, nil
			},
			Dial: func(context.Context, string, string) (net.Conn, error) {
				mu.Lock()
				defer mu.Unlock()
				dials++
				near, far := net.Pipe()
				_ = far.Close()
				return near, nil
			},
		})
		slow := command("ready", 0, 10)
		slow.TimeoutSeconds = 4
		ctx, cancel := context.WithTimeout(t.Context(), 20500*time.Millisecond)
		defer cancel()
		var last Health
		tcp := &spec.Probe{TCPSocket: &spec.TCPSocket{Port: scalar.PortRef{Number: 80}}, PeriodSeconds: 1}
		both := spec.Container{ReadinessProbe: slow, LivenessProbe: command("live", 1, 2)}
		go p.Probe(ctx, Target{ID: runtime.ContainerID{Name: "other"}, Container: spec.Container{LivenessProbe: tcp}}, func(Health) {})
		p.Probe(ctx, Target{ID: id, Container: both}, func(h Health) { last = h })
		if want := "readiness probe: not done within 4s"; last.Ready || last.Message != want {
			t.Errorf("got %+v, want message %q", last, want)
		}
		want := []string{"ready@0s", "live@4s", "live@4s", "live@5s", "live@7s", "live@9s", "ready@10s", "live@14s", "live@14s", "live@15s", "live@17s", "live@19s", "ready@20s"}
		if !reflect.DeepEqual(calls, want) {
			t.Errorf("calls %v, want %v", calls, want)
		}
		if dials != 21 {
			t.Errorf("connections were made %d times, want 21", dials)
		}
		if took := time.Since(begun); took != 20500*time.Millisecond {
			t.Errorf("it returned after %v, want 20.5s", took)
		}
	})
}
