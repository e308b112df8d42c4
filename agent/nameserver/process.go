package nameserver

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"sync"
	"time"

	"github.com/stead-project/stead/dnsd"
	"github.com/stead-project/stead/internal/backoff"
)

const (
	// graceTime is how long questions that were read may take once another process answers: as long as an upstream.
	graceTime = 5 * time.Second
	// lookTime is how often a process looks whether it can still be found.
	lookTime = 2 * time.Second
)

// process is what `stead-dns` runs.
type process struct {
	path string
	dns  *dnsd.Server
	log  *slog.Logger
	quit context.CancelFunc

	begun chan struct{} // closed when there are sockets

	mu      sync.Mutex
	sockets []dnsd.Sockets // it answers on; nil: not yet
	agent   *feed          // nil: away
	came    chan struct{}  // closed when an agent comes, and made anew

	taking sync.Mutex // held while a change is taken
	sets   sets
	zone   *dnsd.Zone // nil: nothing is known yet
}

// Serve serves a task and is found at path, until ctx ends, it is asked to quit, or something else is at path. Then it
// answers what it has read.
func Serve(ctx context.Context, path string, t Task, log *slog.Logger) error {
	ctx, quit := context.WithCancel(ctx)
	defer quit()
	p := &process{path: path, log: log, quit: quit, begun: make(chan struct{}), came: make(chan struct{})}
	var err error
	p.dns, err = dnsd.New(dnsd.Config{
		Listen: t.Listen, Upstreams: t.Upstreams, Members: t.Members, Follow: p.follow, Asked: p.asked, Grace: graceTime, Logger: log,
	})
	if err != nil {
		return err
	}
	lis, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		return fmt.Errorf("be found: %w", err)
	}
	lis.SetUnlinkOnClose(false) // by then it may be another's
	own, err := os.Stat(path)
	if err != nil {
		return errors.Join(err, lis.Close())
	}
	leave := sync.OnceFunc(func() { p.leave(lis, own) })
	defer leave()
	defer context.AfterFunc(ctx, leave)()
	go p.accept(ctx, lis)
	go p.look(ctx, own)
	select {
	case <-ctx.Done():
		return nil
	case <-p.begun:
	}
	return p.dns.Run(ctx)
}

// leave makes the process not to be found any more.
func (p *process) leave(lis net.Listener, own os.FileInfo) {
	if now, err := os.Stat(p.path); err == nil && os.SameFile(now, own) {
		_ = os.Remove(p.path)
	}
	_ = lis.Close()
}

// look ends the process once it cannot be found at its path: nobody could end it then, or have its sockets.
func (p *process) look(ctx context.Context, own os.FileInfo) {
	tick := time.NewTicker(lookTime)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		now, err := os.Stat(p.path)
		if errors.Is(err, os.ErrNotExist) || err == nil && !os.SameFile(now, own) {
			p.log.Warn("ends, because nothing leads to it any more", "path", p.path)
			p.quit()
			return
		}
	}
}

// accept handles connections until the listener is closed.
func (p *process) accept(ctx context.Context, lis *net.UnixListener) {
	for {
		c, err := lis.AcceptUnix()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			time.Sleep(100 * time.Millisecond) // no descriptor is free
			continue
		}
		go func() {
			defer c.Close()
			if err := p.handle(ctx, c); err != nil {
				p.log.Warn("request failed", "err", err)
			}
		}()
	}
}

// handle does what one connection asks for.
func (p *process) handle(ctx context.Context, c *net.UnixConn) error {
	if err := c.SetDeadline(time.Now().Add(askTime)); err != nil {
		return err
	}
	var r request
	list, err := readFirst(c, &r, func() []netip.AddrPort { return r.Addresses })
	if errors.Is(err, errNothing) {
		return nil // somebody looked whether there is a process
	}
	if err != nil {
		return err
	}
	switch r.Ask {
	case askFeed:
		closeAll(list)
		return p.takeFeed(c)
	case askSockets:
		closeAll(list)
		p.mu.Lock()
		list := p.sockets
		p.mu.Unlock()
		return sendFirst(c, reply{Addresses: addressesOf(list)}, list)
	case askServe:
		err = p.begin(ctx, list, r.Retire)
	case askQuit:
		closeAll(list)
		p.log.Info("ends, as asked")
		defer p.quit()
	default:
		closeAll(list)
		err = fmt.Errorf("unknown request %q", r.Ask)
	}
	var answer reply
	if err != nil {
		answer.Error = err.Error()
	}
	return errors.Join(err, sendFirst(c, answer, nil))
}

// begin answers on the sockets, unless it answers already, and then has the other processes end.
func (p *process) begin(ctx context.Context, list []dnsd.Sockets, retire []string) error {
	if err := p.adopt(list); err != nil {
		return err
	}
	for _, path := range retire {
		go p.retire(ctx, path)
	}
	return nil
}

// retire has another process end, however long it takes until that does what it is asked: it would answer from what
// is old.
func (p *process) retire(ctx context.Context, path string) {
	for {
		_, err := ask(path, request{Ask: askQuit}, nil)
		if err == nil || isRefused(err) {
			return
		}
		p.log.Warn("the process before this one does not end yet", "path", path, "err", err)
		if !backoff.Sleep(ctx, time.Second) {
			return
		}
	}
}

func (p *process) adopt(list []dnsd.Sockets) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.sockets != nil || len(list) == 0 {
		closeAll(list)
		return nil
	}
	if err := p.dns.Adopt(list); err != nil {
		closeAll(list)
		return err
	}
	p.sockets = list
	close(p.begun)
	return nil
}
