package nameserver

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"sync"
	"time"

	"github.com/stead-project/stead/dnsd"
	"github.com/stead-project/stead/spec"
)

// sendTime is how long the other side may take to read what is sent to it; one that does not is frozen, and comes again.
const sendTime = 10 * time.Second

// feed is a process's side of the connection with its agent.
type feed struct {
	c    *net.UnixConn
	gone chan struct{} // closed when the agent is

	sending sync.Mutex // held while a report is written

	mu    sync.Mutex
	asks  map[int]chan error // what the agent was asked to follow, by number
	count int                // of these
}

// takeFeed takes orders until the connection ends, or another agent comes.
func (p *process) takeFeed(c *net.UnixConn) error {
	if err := c.SetDeadline(time.Time{}); err != nil {
		return err
	}
	f := &feed{c: c, gone: make(chan struct{}), asks: map[int]chan error{}}
	defer close(f.gone)
	p.mu.Lock()
	if p.agent != nil {
		p.agent.c.Close()
	}
	p.agent = f
	serving := p.sockets != nil
	p.mu.Unlock()
	defer p.left(f)
	p.taking.Lock()
	fed := p.zone != nil
	p.taking.Unlock()
	if err := f.send(report{State: &state{Serving: serving, Fed: fed}}); err != nil {
		return err
	}
	p.mu.Lock()
	close(p.came)
	p.came = make(chan struct{})
	p.mu.Unlock()
	for in := json.NewDecoder(c); ; {
		var o order
		if in.Decode(&o) != nil {
			return nil // the agent ended
		}
		if err := p.obey(f, &o); err != nil {
			return err
		}
	}
}

func (p *process) left(f *feed) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.agent == f {
		p.agent = nil
	}
}

func (p *process) obey(f *feed, o *order) error {
	switch {
	case o.Zone != nil:
		if !p.take(f, o.Zone) {
			return errors.New("another agent came")
		}
		return f.send(report{Done: o.Zone.Number})
	case o.Followed != nil:
		f.followed(o.Followed)
	case o.Count:
		counts := p.dns.Counts()
		return f.send(report{Counts: &counts})
	}
	return nil
}

// take answers from what a change leads to; false: the agent is not the one that feeds.
func (p *process) take(f *feed, c *change) bool {
	p.taking.Lock()
	defer p.taking.Unlock()
	p.mu.Lock()
	current := p.agent == f
	p.mu.Unlock()
	if !current {
		return false
	}
	p.sets.apply(c)
	p.zone = p.zone.Next(p.sets.snapshot(c))
	p.dns.Swap(p.zone)
	return true
}

// send writes a report; an agent that does not read is not waited for.
func (f *feed) send(r report) error {
	f.sending.Lock()
	defer f.sending.Unlock()
	if err := f.c.SetWriteDeadline(time.Now().Add(sendTime)); err != nil {
		return err
	}
	err := json.NewEncoder(f.c).Encode(r)
	if err != nil {
		f.c.Close() // a part of it may be written
	}
	return err
}

// follow asks the agent for what is unfollowed. One that is away is waited for as long as ctx lasts.
func (p *process) follow(ctx context.Context, i dnsd.Interest) error {
	for {
		p.mu.Lock()
		f, came := p.agent, p.came
		p.mu.Unlock()
		if f != nil {
			err := f.ask(ctx, i)
			if !errors.Is(err, errLeft) {
				return err
			}
		}
		select {
		case <-came:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// errLeft says that the agent left before it answered.
var errLeft = errors.New("the agent is away")

func (f *feed) ask(ctx context.Context, i dnsd.Interest) error {
	answer := make(chan error, 1)
	f.mu.Lock()
	f.count++
	n := f.count
	f.asks[n] = answer
	f.mu.Unlock()
	defer func() {
		f.mu.Lock()
		delete(f.asks, n)
		f.mu.Unlock()
	}()
	if f.send(report{Follow: &follow{Number: n, Set: i.Set, Address: i.Address}}) != nil {
		return errLeft
	}
	select {
	case err := <-answer:
		return err
	case <-f.gone:
		return errLeft
	case <-ctx.Done():
		return ctx.Err()
	}
}

// followed hands the agent's answer to who waits for it, if anybody still does.
func (f *feed) followed(a *followed) {
	var err error
	if a.Error != "" {
		err = errors.New(a.Error)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if c := f.asks[a.Number]; c != nil {
		delete(f.asks, a.Number)
		c <- err
	}
}

// asked tells the agent which set was asked for; one that is away learns it when it is asked for again.
func (p *process) asked(ref spec.SetRef) {
	p.mu.Lock()
	f := p.agent
	p.mu.Unlock()
	if f != nil {
		_ = f.send(report{Asked: &ref})
	}
}
