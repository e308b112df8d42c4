package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/stead-project/stead/internal/forward"
	"github.com/stead-project/stead/proto"
)

const (
	// mostForwards bounds the connections of one forwarder; more wait until one has ended.
	mostForwards = 100
	// mostOpening bounds those that are being made: a node is asked for few things at a time.
	mostOpening = 16
)

func forwardCommand(c *cli) *cobra.Command {
	f := forwarder{cli: c, opening: make(chan struct{}, mostOpening)}
	addresses := []string{"localhost"}
	cmd := &cobra.Command{
		Use:   "port-forward MEMBER|set/SET|svc/NAME [LOCAL:]REMOTE...",
		Short: "Forward ports of this machine to ports of a member",
		Long: `Forward ports of this machine to ports of a member, until Ctrl-C. Each connection is made
inside of the member, to its 127.0.0.1 (or ::1): the program must listen there, or at all
addresses. LOCAL is a port of this machine; ":REMOTE" chooses a free one. REMOTE is a number,
or the name of a port of a container or of the Service.

Of a set or a Service, one ready member is chosen, for as long as this runs. A connection ends
with the life of the member; the next one reaches its next life, so that a restart does not
end the forwarding (kubectl ends then).`,
		Example: `  stead port-forward etcd-0 2379
  stead port-forward sts/postgres 15432:5432
  stead port-forward svc/web :http
  stead port-forward etcd-0 2379 2380 --address 127.0.0.1,10.0.0.5`,
		ValidArgsFunction: c.completeNames(proto.KindMember),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) < 2 {
				return misuse("port-forward needs a member, a set or a service, and ports, for example 'stead port-forward db-0 5432'")
			}
			f.out, f.errOut = &together{to: cmd.OutOrStdout()}, &together{to: cmd.ErrOrStderr()}
			err := f.run(cmd.Context(), args[0], args[1:], addresses)
			if cmd.Context().Err() != nil {
				return nil // Ctrl-C is the normal end
			}
			return err
		},
	}
	cmd.Flags().StringSliceVar(&addresses, "address", addresses, "addresses of this machine to listen at: IP addresses, or localhost (comma-separated)")
	return cmd
}

// forwarder is one use of the verb port-forward.
type forwarder struct {
	*cli
	member      string
	opening     chan struct{}
	out, errOut io.Writer
}

// together lets several goroutines write whole lines.
type together struct {
	mu sync.Mutex
	to io.Writer
}

// Write implements io.Writer.
func (t *together) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.to.Write(p)
}

// portPair is a port of this machine and the member's port that it leads to. Local 0: a free one.
type portPair struct{ local, remote uint16 }

// portWords are a pair as it was typed; remote may be a name. local "": that of remote.
type portWords struct{ local, remote string }

// parsePortWords reads REMOTE, LOCAL:REMOTE and :REMOTE.
func parsePortWords(args []string) (out []portWords, err error) {
	for _, arg := range args {
		local, remote, pair := strings.Cut(arg, ":")
		w := portWords{local, remote}
		switch {
		case !pair:
			w = portWords{"", arg}
		case local == "":
			w.local = "0"
		}
		if _, err := strconv.ParseUint(w.local, 10, 16); w.remote == "" || w.local != "" && err != nil {
			return nil, misuse("%q is not [LOCAL:]REMOTE; write a port, as in 5432, 15432:5432 or :5432", arg)
		}
		out = append(out, w)
	}
	return out, nil
}

// run chooses the member and forwards until ctx ends.
func (f *forwarder) run(ctx context.Context, target string, ports, addresses []string) error {
	words, err := parsePortWords(ports)
	if err != nil {
		return err
	}
	hosts, err := listenHosts(addresses)
	if err != nil {
		return err
	}
	pairs, err := f.choose(ctx, target, words)
	if err != nil {
		return err
	}
	if err := f.ready(ctx); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var accepting sync.WaitGroup
	defer accepting.Wait()
	room := make(chan struct{}, mostForwards)
	for i := range pairs {
		listeners, err := f.listen(hosts, &pairs[i])
		for _, l := range listeners {
			context.AfterFunc(ctx, func() { l.Close() })
			accepting.Go(func() { f.accept(ctx, l, pairs[i], room) })
		}
		if err != nil {
			cancel()
			return err
		}
	}
	<-ctx.Done()
	return ctx.Err()
}

// listenHosts are the addresses to listen at; those of localhost may be missing one of two.
func listenHosts(addresses []string) (hosts [][]string, err error) {
	for _, a := range addresses {
		switch {
		case a == "localhost":
			hosts = append(hosts, []string{"127.0.0.1", "::1"})
		case net.ParseIP(a) != nil:
			hosts = append(hosts, []string{a})
		default:
			return nil, misuse("--address %q is neither an IP address nor localhost", a)
		}
	}
	return hosts, nil
}

// listen listens for a pair at all hosts, and says so. All use the port that the first has chosen.
func (f *forwarder) listen(hosts [][]string, p *portPair) (listeners []net.Listener, err error) {
	for _, group := range hosts {
		var failed error
		heard := false
		for _, host := range group {
			l, err := net.Listen("tcp", net.JoinHostPort(host, strconv.Itoa(int(p.local))))
			if err != nil {
				failed = errors.Join(failed, err)
				continue
			}
			heard, p.local = true, uint16(l.Addr().(*net.TCPAddr).Port)
			listeners = append(listeners, l)
			fmt.Fprintf(f.out, "Forwarding from %s -> %d\n", l.Addr(), p.remote)
		}
		if !heard {
			return listeners, fmt.Errorf("listen for port %d: %w; choose another one, as in 15432:5432 or :5432", p.remote, failed)
		}
	}
	return listeners, nil
}

// accept forwards the connections of a listener until ctx ends, and returns when all have ended.
func (f *forwarder) accept(ctx context.Context, l net.Listener, p portPair, room chan struct{}) {
	var open sync.WaitGroup
	defer open.Wait()
	for {
		select {
		case room <- struct{}{}:
		case <-ctx.Done():
			return
		}
		conn, err := l.Accept()
		if err != nil {
			<-room
			if ctx.Err() != nil || errors.Is(err, net.ErrClosed) {
				return
			}
			fmt.Fprintf(f.errOut, "port %d: %v\n", p.local, err)
			if errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE) {
				continue // one ends
			}
			return
		}
		fmt.Fprintf(f.out, "Handling connection for %d\n", p.local)
		open.Go(func() {
			defer func() { <-room }()
			if err := f.one(ctx, conn.(*net.TCPConn), p.remote); err != nil && ctx.Err() == nil {
				fmt.Fprintf(f.errOut, "port %d -> %d: %s\n", p.local, p.remote, explainError(err))
			}
		})
	}
}

// one forwards one connection, and closes it.
func (f *forwarder) one(ctx context.Context, conn *net.TCPConn, port uint16) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	call, err := f.open(ctx, port)
	if err != nil {
		return errors.Join(err, conn.SetLinger(0), conn.Close())
	}
	link := forward.New(conn, call.send, proto.ChannelIn, proto.ChannelOut)
	var receiving sync.WaitGroup
	receiving.Go(func() { call.receive(link, cancel) })
	err = link.Run(ctx)
	cause := context.Cause(ctx) // what the node said, rather than that the connection was closed for it
	if err != nil {
		cancel(err) // ends the call
	}
	receiving.Wait()
	if cause == nil {
		cause = cmp.Or(err, context.Cause(ctx))
	}
	return cause
}
