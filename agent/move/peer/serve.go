package peer

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"

	"golang.org/x/sync/errgroup"
	"golang.org/x/time/rate"

	"github.com/stead-project/stead/agent/move"
	"github.com/stead-project/stead/agent/move/tree"
	"github.com/stead-project/stead/agent/runtime"
)

// server is a source's end of one connection.
type server struct {
	*wire
	c      *Exchange
	p      *part
	trees  []runtime.MoveTree
	limits []*rate.Limiter

	asks    chan []byte // walks
	answers chan needs
}

// open is a batch that was sent and not answered.
type open struct {
	batch
	dir *os.File
}

// run serves until the target hangs up.
func (s *server) run(ctx context.Context) error {
	s.asks, s.answers = make(chan []byte, 1), make(chan needs, window)
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		<-ctx.Done()
		return s.conn.Close()
	})
	group.Go(func() error { return s.listen(ctx) })
	group.Go(func() error {
		for {
			select {
			case <-ctx.Done():
				return nil
			case content := <-s.asks:
				if err := s.show(ctx, content); err != nil {
					never := errors.Is(never(err), move.ErrNever)
					return errors.Join(err, s.say(errorFrame, failure{Text: err.Error(), Never: never}))
				}
			}
		}
	})
	return group.Wait()
}

// listen takes what the target says.
func (s *server) listen(ctx context.Context) error {
	for {
		k, content, err := s.receive(nil, true)
		if err != nil {
			return err
		}
		switch k {
		case walkFrame:
			select {
			case s.asks <- content:
			default:
				return errors.New("two trees are asked for at once")
			}
		case needsFrame:
			n, err := decode[needs](content)
			if err != nil {
				return err
			}
			select {
			case s.answers <- n:
			default:
				return errors.New("more is answered than was asked")
			}
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
}

// show shows one tree, and sends what the target needs of it.
func (s *server) show(ctx context.Context, content []byte) error {
	ask, err := decode[walk](content)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(s.trees, func(t runtime.MoveTree) bool { return t.Claim == ask.Claim })
	if i < 0 {
		return fmt.Errorf("volume %q is not offered", ask.Claim)
	}
	if ask.Fresh {
		s.p.sums.Clear()
	}
	if err := s.count(ctx); err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	l := &lister{s: s, ctx: ctx, sent: make(chan open, window), place: make(chan struct{}, window)}
	group.Go(func() error {
		defer close(l.sent)
		return tree.Walk(ctx, s.trees[i].Path, l)
	})
	group.Go(func() error { return s.content(ctx, l) })
	err = group.Wait()
	for o := range l.sent { // of what was broken off
		o.dir.Close()
	}
	if err != nil {
		return err
	}
	return s.say(doneFrame, total{l.bytes})
}

// count says how much there is in all, as it was counted once.
func (s *server) count(ctx context.Context) error {
	s.c.mu.Lock()
	n := s.p.total
	s.c.mu.Unlock()
	if n == 0 {
		t := &totals{}
		for _, one := range s.trees {
			if err := tree.Walk(ctx, one.Path, t); err != nil {
				return err
			}
		}
		n = max(t.bytes, 1)
		s.c.mu.Lock()
		s.p.total = n
		s.c.mu.Unlock()
	}
	return s.say(totalFrame, total{n})
}
