package worker

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/spec/causes"
)

// scripted is a guard that says what a test wants, and notes what it is asked.
type scripted struct {
	late
	n *node

	mu    sync.Mutex
	says  Guarded
	fails error // of Begin and Forget
	calls []string
	looks int
}

// guarded makes the node keep deadlines.
func (n *node) guarded(says Guarded) *scripted {
	g := &scripted{late: late{n.dir}, n: n, says: says}
	n.guard = g
	return g
}

func (g *scripted) say(says Guarded) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.says = says
}

func (g *scripted) fail(err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.fails = err
}

func (g *scripted) note(call string) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.calls = append(g.calls, call)
	return g.fails
}

func (g *scripted) looked() int {
	synctest.Wait()
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.looks
}

func (g *scripted) Begin(spec.Identity, spec.Token, time.Duration) error {
	return g.note("Begin")
}

func (g *scripted) Forget(spec.Identity, spec.Token) error { return g.note("Forget") }

func (g *scripted) Expire(id spec.Identity, token spec.Token) error {
	return g.n.ledger.CloseToken(id, token, causes.DeadlinePassed)
}

func (g *scripted) Look(spec.Identity, spec.Token, time.Duration) Guarded {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.looks++
	return g.says
}

// bounded is a guarded life.
func bounded(l *records.Life) { l.Member.Bound = time.Minute }

var wellGuarded = Guarded{Recorded: true, Watched: true}

func TestAGuardedLifeBeginsWhenItsNodeIsConfirmedAndWatched(t *testing.T) {
	cases := []struct {
		name  string
		says  Guarded
		cause causes.Cause
		polls bool // it is told of a confirmation, and has to look for a watchdog
	}{
		{"no server has confirmed the node", Guarded{Passed: true, Watched: true}, causes.Unconfirmed, false},
		{"nor is there a watchdog", Guarded{Passed: true}, causes.Unconfirmed, false},
		{"there is no watchdog", Guarded{}, causes.Unwatched, true},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			scenario(t, func(t *testing.T, n *node) {
				g := n.guarded(c.says)
				n.run()
				n.w.Tell(with(life(5, records.GoalRun), bounded))
				time.Sleep(time.Minute)
				n.wantLast(string(c.cause), func(r records.Report) bool { return r.Cause == c.cause && r.Bound == time.Minute })
				if open := n.ledger.Look(db0).Open; !open.IsZero() {
					t.Error("its token is open")
				}
				if polls := g.looked() > 100; polls != c.polls {
					t.Errorf("%d looks at the guard in a minute", g.looked())
				}
				g.say(wellGuarded)
				if !c.polls {
					n.w.Confirmed()
				}
				time.Sleep(time.Second)
				n.wantReady()
				before := g.looked()
				time.Sleep(10 * time.Minute)
				if got := g.looked() - before; got > 100 {
					t.Errorf("%d looks in ten minutes at a life that is guarded", got)
				}
				if want := []string{"Begin"}; !slices.Equal(g.calls, want) {
					t.Errorf("the guard was asked to %v, want %v", g.calls, want)
				}
			})
		})
	}
}

func TestANodeWithoutAGuardBeginsNoGuardedLife(t *testing.T) {
	scenario(t, func(t *testing.T, n *node) {
		n.run()
		n.w.Tell(with(life(5, records.GoalRun), bounded))
		time.Sleep(time.Minute)
		n.wantLast("unwatched", func(r records.Report) bool { return r.Cause == causes.Unwatched && r.Bound == 0 })
		n.wantStarts(tok(5), 0)
	})
}

// Of a life that is not guarded the record goes that another has left, whose killers
// would end it.
func TestNoTokenIsOpenedBeforeItsRecordIsAsItShouldBe(t *testing.T) {
	for call, c := range map[string]struct {
		life func(*records.Life)
		says Guarded
	}{
		"Begin":  {bounded, Guarded{Watched: true}},
		"Forget": {func(*records.Life) {}, Guarded{}},
	} {
		scenario(t, func(t *testing.T, n *node) {
			g := n.guarded(c.says)
			g.fail(errors.New("read-only"))
			n.run()
			n.w.Tell(with(life(5, records.GoalRun), c.life))
			time.Sleep(10 * time.Second)
			n.wantCause(causes.LedgerError, "read-only")
			if open := n.ledger.Look(db0).Open; !open.IsZero() || g.calls[0] != call {
				t.Errorf("open is %s; the guard was asked to %v", open, g.calls)
			}
			g.fail(nil)
			g.say(wellGuarded)
			time.Sleep(time.Minute)
			n.wantReady()
		})
	}
}

func TestAnOpenLifeIsOverWhenItsDeadlineHasPassedOrNobodyKeepsIt(t *testing.T) {
	cases := []struct {
		name string
		life func(*records.Life)
		says Guarded
		lost bool // the life's description
		over bool
	}{
		{"it is guarded", bounded, wellGuarded, false, false},
		{"its deadline has passed", bounded, Guarded{Recorded: true, Passed: true, Watched: true}, false, true},
		{"its record is gone", bounded, Guarded{Watched: true}, false, true},
		{"it has no bound", func(*records.Life) {}, Guarded{}, false, false},
		{"nor a record; what it says then is of another", func(*records.Life) {}, Guarded{Passed: true}, false, false},
		{"its description is lost, and its deadline has not passed", bounded, wellGuarded, true, false},
		{"its description is lost, and its deadline has passed", bounded, Guarded{Recorded: true, Passed: true}, true, true},
		{"its description is lost, and it has no record", bounded, Guarded{}, true, false},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			scenario(t, func(t *testing.T, n *node) {
				g := n.guarded(wellGuarded)
				n.run()
				n.w.Tell(with(life(5, records.GoalRun), c.life))
				n.wantReady()
				n.kill()
				if c.lost {
					n.loseDescription()
				}
				g.say(c.says)
				n.run()
				time.Sleep(time.Minute)
				if c.over {
					n.wantLast("its end", func(r records.Report) bool {
						return r.Phase == records.PhaseStopped && r.Token == tok(5) && r.Cause == causes.DeadlinePassed
					})
					return
				}
				if got := n.host.RunningTokens(db0); len(got) != 1 {
					t.Errorf("it was ended: %+v", n.last())
				}
			})
		})
	}
}

// loseDescription takes away what the agent has kept of the life.
func (n *node) loseDescription() {
	must(n.t, os.Remove(filepath.Join(n.dir, "run-b1", "lives", "default", "db-0.json")))
}

func TestAGuardedContainerIsNotStartedUnlessItIsGuardedStill(t *testing.T) {
	for name, says := range map[string]Guarded{
		"its record is gone":      {Watched: true},
		"its deadline has passed": {Recorded: true, Passed: true, Watched: true},
		"its watchdog is gone":    {Recorded: true},
	} {
		t.Run(name, func(t *testing.T) {
			scenario(t, func(t *testing.T, n *node) {
				g := n.guarded(wellGuarded)
				looks := 0
				n.guard = &turning{g, func(bound time.Duration) Guarded {
					if bound == 0 { // the last question before the start
						looks++
						return says
					}
					return wellGuarded
				}}
				n.run()
				n.w.Tell(with(life(5, records.GoalRun), bounded))
				time.Sleep(10 * time.Second)
				n.wantCause(causes.StartError, "the life is not guarded, or its deadline has passed")
				n.wantStarts(tok(5), 0)
				if looks == 0 {
					t.Error("nobody asked")
				}
			})
		})
	}
}

// turning is a guard that answers by the bound that it is asked for.
type turning struct {
	*scripted
	says func(bound time.Duration) Guarded
}

func (g *turning) Look(_ spec.Identity, _ spec.Token, bound time.Duration) Guarded {
	return g.says(bound)
}

func TestAnEndIsNotToldBeforeItsRecordIsGone(t *testing.T) {
	scenario(t, func(t *testing.T, n *node) {
		g := n.guarded(wellGuarded)
		n.run()
		n.w.Tell(with(life(5, records.GoalRun), bounded))
		n.wantReady()
		g.fail(errors.New("read-only"))
		n.w.Tell(life(5, records.GoalStop))
		time.Sleep(time.Minute)
		for _, r := range n.all() {
			if r.Phase.Over() {
				t.Fatalf("told over: %+v", r)
			}
		}
		if tries := strings.Count(strings.Join(g.calls, " "), "Forget"); tries < 3 || tries > 20 {
			t.Errorf("tried %d times in a minute", tries)
		}
		g.fail(nil)
		time.Sleep(time.Minute)
		n.wantStopped(tok(5))
	})
}
