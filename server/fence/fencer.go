package fence

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"sync"
	"time"

	"github.com/stead-project/stead/server/cache"
	"github.com/stead-project/stead/server/plan"
	"github.com/stead-project/stead/server/proof"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/store"
)

// The defaults of Config, and the least After.
const (
	DefaultAfter   = time.Minute
	LeastAfter     = 10 * time.Second
	DefaultTimeout = time.Minute

	firstRetry, lastRetry = 15 * time.Second, 5 * time.Minute
)

// Config is what a Fencer needs.
type Config struct {
	// Command is the program's absolute path: see Command.
	Command string
	// After is how long a node must have been silent; Timeout bounds the program, which has
	// a moment more to be ended. Zero: the defaults.
	After, Timeout time.Duration
	Store          store.Store
	Cache          cache.Reader
	// Nodes are those of a view with how long they were silent.
	Nodes func(cache.View) []plan.Node
	// Outcomes gets what came of a try.
	Outcomes *Outcomes
	// Call asks the program; nil: Command. A simulation has its own.
	Call   func(context.Context, *Case) error
	Logger *slog.Logger
}

// Fencer tries to have silent nodes fenced. Run may be called for one term after another.
type Fencer struct{ cfg Config }

// New fills in what cfg leaves out, and starts nothing.
func New(cfg Config) *Fencer {
	if cfg.After == 0 {
		cfg.After = DefaultAfter
	}
	if cfg.Timeout == 0 {
		cfg.Timeout = DefaultTimeout
	}
	if cfg.Call == nil {
		cfg.Call = Command(cfg.Command)
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	return &Fencer{cfg}
}

// tries is what a term remembers of a silent node.
type tries struct {
	under bool // one is under way
	next  time.Time
	pause time.Duration
}

// outcome is what came of a try.
type outcome struct {
	node spec.NodeName
	err  error
}

// Run looks after silent nodes for one term, until ctx ends; then the tries under way are
// broken off, and waited for.
func (f *Fencer) Run(ctx context.Context, term store.Leadership) {
	var group sync.WaitGroup
	defer group.Wait()
	sub := f.cfg.Cache.Subscribe()
	defer sub.Close()
	nodes, done := map[spec.NodeName]*tries{}, make(chan outcome)
	for {
		sub.Take()
		ask, again := f.due(nodes, time.Now())
		for _, node := range ask {
			nodes[node].under = true
			group.Go(func() {
				err := f.try(ctx, term, node)
				select {
				case done <- outcome{node, err}:
				case <-ctx.Done():
				}
			})
		}
		var timer <-chan time.Time
		if again > 0 {
			timer = time.After(again)
		}
		select {
		case <-ctx.Done():
			for node := range nodes {
				f.cfg.Outcomes.Set(node, "")
			}
			return
		case <-sub.C():
		case <-timer:
		case o := <-done:
			nodes[o.node].came(o.err, time.Now())
			f.tell(o)
		}
	}
}

// due are the nodes to ask about now, and when to look again, 0: at the next change. It
// forgets those that are silent no more.
func (f *Fencer) due(nodes map[spec.NodeName]*tries, now time.Time) (ask []spec.NodeName, again time.Duration) {
	needed, wait := f.needed()
	maps.DeleteFunc(nodes, func(node spec.NodeName, t *tries) bool {
		_, is := needed[node]
		if is || t.under {
			return false
		}
		f.cfg.Outcomes.Set(node, "")
		return true
	})
	later := func(d time.Duration) {
		if again == 0 || d < again {
			again = d
		}
	}
	if wait > 0 {
		later(wait)
	}
	for node := range needed {
		t := nodes[node]
		if t == nil {
			t = &tries{}
			nodes[node] = t
		}
		switch left := t.next.Sub(now); {
		case t.under:
		case left > 0:
			later(left)
		default:
			ask = append(ask, node)
		}
	}
	return ask, again
}

// needed are the nodes that have been silent for long enough and have a life that only a
// fence ends; wait is the time until another one may be, 0: no time is known.
func (f *Fencer) needed() (needed map[spec.NodeName]bool, wait time.Duration) {
	needed = map[spec.NodeName]bool{}
	f.cfg.Cache.Look(func(v cache.View) {
		nodes := f.cfg.Nodes(v)
		if !proof.MostHeard(nodes) {
			return
		}
		sets := map[spec.SetRef]bool{}
		silent := map[spec.NodeName]time.Duration{}
		for _, n := range nodes {
			if n.Facts == nil || n.Session != nil {
				continue
			}
			silent[n.Node.Name] = n.Gone
			for _, id := range v.MembersOn(n.Node.Name) {
				sets[id.Ref()] = true
			}
		}
		for ref := range sets {
			w := v.World(ref)
			w.Nodes = nodes
			for _, node := range plan.FenceNeeded(w) {
				switch gone, is := silent[node]; {
				case !is:
				case gone >= f.cfg.After:
					needed[node] = true
				case wait == 0 || f.cfg.After-gone < wait:
					wait = f.cfg.After - gone
				}
			}
		}
	})
	return needed, wait
}

// came takes what came of a try: the next one waits longer each time.
func (t *tries) came(err error, now time.Time) {
	t.under = false
	if err == nil {
		t.pause = 0 // what else is found there is asked about again
		return
	}
	t.pause = min(max(2*t.pause, firstRetry), lastRetry)
	t.next = now.Add(t.pause)
}

// try asks the program about one node, and writes down what it proved. The node must have
// been silent all the while, and most others must not be.
func (f *Fencer) try(ctx context.Context, term store.Leadership, node spec.NodeName) error {
	c, err := Open(ctx, f.cfg.Store, f.cfg.Cache, node)
	if err != nil {
		return err
	}
	if still, _ := f.needed(); !still[node] {
		return fmt.Errorf("node %s needs no fence any more", node)
	}
	f.cfg.Logger.Warn("fence command called", "node", string(node))
	asked, cancel := context.WithTimeout(ctx, f.cfg.Timeout)
	defer cancel()
	if err := f.cfg.Call(asked, c); err != nil {
		return &refusal{err}
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	fence, err := c.Close(ctx, f.cfg.Store, f.cfg.Cache, "the fence command", term.Compare())
	if err == nil {
		f.cfg.Logger.Warn("node fenced by the fence command", "node", string(node), "lives", len(fence.Lives))
	}
	return err
}

// refusal is what the program said that is no proof.
type refusal struct{ err error }

func (r *refusal) Error() string { return r.err.Error() }
func (r *refusal) Unwrap() error { return r.err }

// tell says what came of a try. What only means that the world moved is no news.
func (f *Fencer) tell(o outcome) {
	var refused *refusal
	switch {
	case o.err == nil:
		f.cfg.Outcomes.Set(o.node, "")
	case errors.As(o.err, &refused):
		f.cfg.Logger.Warn("fence command proved nothing", "node", string(o.node), "err", o.err)
		f.cfg.Outcomes.Set(o.node, "the fence command proved nothing: "+o.err.Error()+"; it is called again from time to time")
	default:
		f.cfg.Logger.Info("node not fenced", "node", string(o.node), "err", o.err)
	}
}
