package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/stead-project/stead/proto"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/spec/scalar"
)

var errSetGone = errors.New("set does not exist")

// watchSet calls see with every state of the set until see returns true. It returns
// errSetGone when the set does not exist (any more), and waits for a server that is away.
func (c *cli) watchSet(ctx context.Context, ref spec.SetRef, see func(*shownSet) (bool, error)) error {
	for {
		err := c.watchSetOnce(ctx, ref, see)
		over := status.Code(err) == codes.DeadlineExceeded // the server's clock may be ahead of ours
		if ctx.Err() != nil || over {
			why := unfinished(ctx)
			if over {
				why = errNotInTime
			}
			return fmt.Errorf("wait for %s: %w; the operation continues, see 'stead describe set %s -n %s'", ref, why, ref.Name, ref.Namespace)
		}
		if status.Code(err) != codes.Unavailable && !errors.Is(err, io.EOF) { // EOF: the server ended the watch
			return err
		}
		select {
		case <-ctx.Done():
		case <-time.After(500 * time.Millisecond):
		}
	}
}

// unfinished is why a wait ended with ctx: its time was over, or the user ended it.
func unfinished(ctx context.Context) error {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return errNotInTime
	}
	return errLeft
}

func (c *cli) watchSetOnce(ctx context.Context, ref spec.SetRef, see func(*shownSet) (bool, error)) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := c.control.Watch(ctx, &proto.ListRequest{Kind: proto.KindSet, Namespace: string(ref.Namespace), Set: string(ref.Name)})
	if err != nil {
		return err
	}
	found := false
	for {
		ev, err := stream.Recv()
		if err != nil {
			return err
		}
		if ev.GetSynced() {
			if !found {
				return errSetGone
			}
			continue
		}
		if ev.GetObject().GetName() != string(ref.Name) {
			continue
		}
		if ev.GetGone() {
			return errSetGone
		}
		found = true
		o, err := decode[spec.SetSpec, records.ShownSet](ev.GetObject())
		if err != nil {
			return err
		}
		if done, err := see(o); done || err != nil {
			return err
		}
	}
}

// stillEvery is the time without news after which a wait says that it still waits.
const stillEvery = 20 * time.Second

// progress prints what changed during a wait, with the time since its start.
type progress struct {
	start time.Time
	every time.Duration // without news, until it repeats what it waits for

	mu      sync.Mutex
	out     io.Writer
	printed map[string]string // the last line of each member
	last    time.Time         // of the last line
	summary string            // what is repeated when there is no news
}

func newProgress(out io.Writer) *progress {
	now := time.Now()
	return &progress{out: out, start: now, last: now, every: stillEvery, printed: map[string]string{}}
}

func (p *progress) line(subject any, text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.print(subject, text)
}

// print prints a line; mu is held.
func (p *progress) print(subject any, text string) {
	p.last = time.Now()
	fmt.Fprintf(p.out, "%5.1fs  %s  %s\n", time.Since(p.start).Seconds(), subject, scalar.Plain(text))
}

// members prints every member whose line has changed.
func (p *progress) members(s *spec.SetSpec, st *records.ShownSet) {
	p.mu.Lock()
	defer p.mu.Unlock()
	waits := ""
	for _, m := range st.Members {
		line := memberState(m)
		if p.printed[m.Name] != line {
			p.printed[m.Name] = line
			p.print(m.Name, line)
		}
		if waits == "" && (!m.Ready || m.Blocked != "") {
			waits = "; " + m.Name + " " + line
		}
	}
	p.summary = fmt.Sprintf("%d of %d available%s", st.AvailableReplicas, replicasOf(s), waits)
}

// beat repeats, whenever there was no news for a while, what is waited for, until the
// returned function is called.
func (p *progress) beat() (stop func()) {
	quit := make(chan struct{})
	var group sync.WaitGroup
	group.Go(func() {
		ticker := time.NewTicker(p.every)
		defer ticker.Stop()
		for {
			select {
			case <-quit:
				return
			case <-ticker.C:
			}
			p.mu.Lock()
			if time.Since(p.last) >= p.every {
				p.print("still waiting:", cmp.Or(p.summary, "no answer yet"))
			}
			p.mu.Unlock()
		}
	})
	return func() { close(quit); group.Wait() }
}
