package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"sync"
	"syscall"

	"github.com/spf13/cobra"
	"golang.org/x/term"
	"google.golang.org/grpc"

	"github.com/stead-project/stead/proto"
)

// inputBytes bounds the input that is sent in one message.
const inputBytes = 64 << 10

// exitCode is the exit code of a command that ran in a member; stead exits with it.
type exitCode int

func (e exitCode) Error() string { return fmt.Sprintf("exit code %d", int(e)) }

func execCommand(c *cli) *cobra.Command {
	var start proto.ExecStart
	var tty bool
	cmd := &cobra.Command{
		Use:   "exec [-i] [-t] MEMBER -- COMMAND...",
		Short: "Run a command in a member's container",
		Long: `Run a command in a member's container, with the container's user, directory and
environment. The exit code is that of the command; when stead itself fails, it prints a
message. If stead ends first, the command is killed.`,
		Example: `  stead exec etcd-0 -- etcdctl endpoint health
  stead exec -it etcd-0 -- sh
  stead exec -i etcd-0 -- etcdctl put greeting < greeting.txt`,
		ValidArgsFunction: c.completeNames(proto.KindMember),
		RunE: func(cmd *cobra.Command, args []string) error {
			if cmd.ArgsLenAtDash() != 1 || len(args) < 2 {
				return misuse("exec needs a member, -- and a command, for example 'stead exec db-0 -- ls /'")
			}
			name, err := parseName(args[:1], proto.KindMember, "exec needs a member, not a %s")
			if err != nil {
				return err
			}
			start.Namespace, start.Member, start.Command = c.namespace, name, args[1:]
			run := execution{in: cmd.InOrStdin(), out: cmd.OutOrStdout(), errOut: cmd.ErrOrStderr(), taken: make(chan struct{}, 1)}
			if !tty {
				return run.run(cmd.Context(), c.control, &start)
			}
			if _, err := c.connect(cmd.Context()); err != nil { // while Ctrl-C still ends stead
				return err
			}
			return run.onTerminal(cmd.Context(), c.control, &start)
		},
	}
	flags := cmd.Flags()
	flags.StringVarP(&start.Container, "container", "c", "", "the container (default: the first)")
	flags.BoolVarP(&start.Stdin, "stdin", "i", false, "pass standard input to the command")
	flags.BoolVarP(&tty, "tty", "t", false, "run the command on this terminal; its output and errors are one stream")
	return cmd
}

// execution is one command that runs in a member.
type execution struct {
	in          io.Reader
	out, errOut io.Writer
	resize      <-chan os.Signal // receives when the size of the terminal changes; nil: never
	screen      int              // the terminal's descriptor

	sending sync.Mutex // held while sending
	stream  grpc.BidiStreamingClient[proto.ExecRequest, proto.Frame]
	taken   chan struct{} // receives when the command has read the input sent last
}

// onTerminal runs a command on this terminal. While it runs, every key goes to the
// command, Ctrl-C included.
func (x *execution) onTerminal(ctx context.Context, control proto.ControlClient, start *proto.ExecStart) error {
	screen, ok := terminal(x.out)
	if !ok {
		return misuse("-t needs a terminal, but standard output is not one; omit -t")
	}
	x.screen = screen
	start.Terminal = x.size()
	resized := make(chan os.Signal, 1)
	signal.Notify(resized, syscall.SIGWINCH)
	defer signal.Stop(resized)
	x.resize = resized
	if start.GetStdin() {
		keys, ok := terminal(x.in)
		if !ok {
			return misuse("-t needs a terminal, but standard input is not one; omit -t, as in 'stead exec -i'")
		}
		before, err := term.MakeRaw(keys)
		if err != nil {
			return fmt.Errorf("prepare the terminal: %w", err)
		}
		defer func() { _ = term.Restore(keys, before) }() // the terminal may be gone
	}
	return x.run(ctx, control, start)
}

// size is that of the terminal; 0 if it is not known.
func (x *execution) size() *proto.Size {
	columns, rows, err := term.GetSize(x.screen)
	if err != nil {
		return &proto.Size{}
	}
	return &proto.Size{Columns: uint32(columns), Rows: uint32(rows)}
}

// run runs the command until it ends, and returns its exit code as an error unless it
// is 0. The goroutines that read standard input and the terminal's signals may outlive
// it, because a read of a terminal cannot be interrupted. They end with the process.
func (x *execution) run(ctx context.Context, control proto.ControlClient, start *proto.ExecStart) (err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if x.stream, err = control.Exec(ctx); err != nil {
		return err
	}
	if err := x.send(&proto.ExecRequest{Start: start}); err != nil {
		return err
	}
	if start.GetStdin() {
		go x.passInput(ctx)
	}
	go x.passSizes(ctx)
	for {
		f, err := x.stream.Recv()
		switch {
		case errors.Is(err, io.EOF):
			return errors.New("the connection ended before the exit code of the command arrived")
		case err != nil:
			return err
		case f.GetDone() && f.GetExitCode() != 0:
			return exitCode(f.GetExitCode())
		case f.GetDone():
			return nil
		}
		if err := x.show(f); err != nil {
			return err
		}
	}
}

func (x *execution) show(f *proto.Frame) error {
	to := x.out
	switch f.GetChannel() {
	case proto.ChannelIn:
		select {
		case x.taken <- struct{}{}:
		default: // at most one piece of input is in flight
		}
		return nil
	case proto.ChannelErr:
		to = x.errOut
	}
	_, err := to.Write(f.GetData())
	return err
}

// send returns an error only to end the sending; Recv returns the reason of a failure.
func (x *execution) send(m *proto.ExecRequest) error {
	x.sending.Lock()
	defer x.sending.Unlock()
	if err := x.stream.Send(m); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	return nil
}

// passInput sends standard input, each piece after the command has read the one before.
func (x *execution) passInput(ctx context.Context) {
	buf := make([]byte, inputBytes)
	for {
		n, err := x.in.Read(buf)
		if n > 0 {
			if x.send(&proto.ExecRequest{Frame: &proto.Frame{Channel: proto.ChannelIn, Data: buf[:n]}}) != nil {
				return
			}
			select {
			case <-x.taken:
			case <-ctx.Done():
				return
			}
		}
		if err != nil {
			_ = x.send(&proto.ExecRequest{Frame: &proto.Frame{Channel: proto.ChannelIn, Done: true}})
			return
		}
	}
}

func (x *execution) passSizes(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-x.resize:
			if x.send(&proto.ExecRequest{Frame: &proto.Frame{Channel: proto.ChannelControl, Size: x.size()}}) != nil {
				return
			}
		}
	}
}
