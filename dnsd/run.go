package dnsd

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/miekg/dns"
	"golang.org/x/sync/errgroup"
)

// Run serves until ctx ends, then waits for the questions under way (Config.Grace) and returns
// nil; it returns the first error when a socket fails. It listens first if neither Listen
// nor Adopt was called. A server runs once. What it has not read of its sockets is left to
// who else has them.
func (s *Server) Run(ctx context.Context) error {
	if s.sockets == nil {
		if _, err := s.Listen(ctx); err != nil {
			return err
		}
	}
	group, ctx := errgroup.WithContext(ctx)
	work, done := s.outlast(ctx)
	defer done()
	var servers []*dns.Server
	counts := make([]*tally, len(s.sockets))
	for i, k := range s.sockets {
		counts[i] = &tally{}
		both, err := k.servers(s.handler(work), &s.zone, counts[i], s.cfg.MaxConns)
		if err != nil {
			s.Close()
			return err
		}
		servers = append(servers, both...)
	}
	s.packed.Store(&counts)
	for _, srv := range servers {
		group.Go(func() error { return serve(ctx, work, srv, s.cfg.Grace > 0) })
	}
	if s.cfg.Asked != nil {
		group.Go(func() error { s.reportEachMinute(ctx); return nil })
	}
	for _, k := range s.sockets {
		s.cfg.Logger.Info("dns started", "addr", k.addr.String())
	}
	err := group.Wait()
	if s.follows != nil {
		s.follows.running.Wait()
	}
	return err
}

// outlast returns the context of questions under way: it ends Grace after ctx.
func (s *Server) outlast(ctx context.Context) (context.Context, func()) {
	if s.cfg.Grace <= 0 {
		return ctx, func() {}
	}
	work, end := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() { time.AfterFunc(s.cfg.Grace, end) })
	return work, func() { stop(); end() }
}

// errStopped ends the reading of a socket from which nothing more is to be read.
var errStopped = errors.New("dns: stopped")

// serve runs one listener until ctx ends, and answers what it has read until work does. patient: all that it has read.
func serve(ctx, work context.Context, srv *dns.Server, patient bool) error {
	started := make(chan struct{})
	srv.NotifyStartedFunc = func() { close(started) }
	ended := make(chan error, 1)
	go func() { ended <- srv.ActivateAndServe() }()
	select {
	case err := <-ended:
		return fmt.Errorf("serve dns: %w", err)
	case <-started:
	}
	select {
	case err := <-ended:
		return fmt.Errorf("serve dns: %w", err)
	case <-ctx.Done():
	}
	if patient && stopReading(srv) {
		select {
		case <-ended: // all that was read is answered
			return nil
		case <-work.Done():
		}
	}
	// Questions under way end with work, so this does not block for long.
	if err := srv.Shutdown(); err != nil {
		return fmt.Errorf("stop dns: %w", err)
	}
	if err := <-ended; err != nil && !errors.Is(err, errStopped) && !errors.Is(err, net.ErrClosed) {
		return err
	}
	return nil
}

// stopReading has a listener read no more questions, and accept no more connections; it ends once those that it has
// are answered. false: only its Shutdown does that.
func stopReading(srv *dns.Server) bool {
	if p, ok := srv.PacketConn.(*packedConn); ok {
		p.stop()
		return true
	}
	if srv.Listener != nil {
		return srv.Listener.Close() == nil
	}
	return false
}
