package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// command is what is run in a member: wait waits until it is stopped; cat copies
// stdin, or the files named, to stdout; code exits with
// the number given, after a line to each output; note adds a line to a file, write makes one of a text, and remove removes one; dial
// connects to an address and prints what it is told; web answers HTTP at an address; await, trial and ended are
// what hooks and their containers run (hook.go); listen answers at a port of the loopback
// (listen.go); spin uses a core until it is stopped; tty
// prints the terminal's size at
// first and when it changes, echoes lines, tells of Ctrl-C and ends at the line "end".
func command(ctx context.Context, args []string) error {
	switch verb := append(args, "")[0]; verb {
	case "cat":
		if len(args) == 1 {
			_, err := io.Copy(os.Stdout, os.Stdin)
			return err
		}
		for _, path := range args[1:] {
			b, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			if _, err := os.Stdout.Write(b); err != nil {
				return err
			}
		}
		return nil
	case "code":
		code, err := strconv.Atoi(args[1])
		fmt.Println("to stdout")
		fmt.Fprintln(os.Stderr, "to stderr")
		if err == nil {
			os.Exit(code)
		}
		return err
	case "note":
		return note(args[1], "noted")
	case "write":
		return os.WriteFile(args[1], []byte(args[2]), 0o600)
	case "remove":
		return os.Remove(args[1])
	case "dial":
		return dial(ctx, args[1])
	case "web":
		return web(ctx, args[1])
	case "await":
		return await(args[1:])
	case "trial":
		return trial(args[1:])
	case "ended":
		return ended(args[1:])
	case "wait":
		<-ctx.Done()
		return nil
	case "listen":
		return listen(ctx, args[1])
	case "spin":
		fmt.Println("spins")
		for ctx.Err() == nil {
		}
		return nil
	case "tty":
		return tty()
	default:
		return fmt.Errorf("no command %q", verb)
	}
}

// note adds a line to a file.
func note(file, line string) error {
	f, err := os.OpenFile(file, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(f, line)
	return errors.Join(err, f.Close())
}

func tty() error {
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, syscall.SIGWINCH, syscall.SIGINT)
	lines := make(chan string)
	go func() {
		defer close(lines)
		for in := bufio.NewScanner(os.Stdin); in.Scan(); {
			lines <- in.Text()
		}
	}()
	size := func() error {
		s, err := unix.IoctlGetWinsize(0, unix.TIOCGWINSZ)
		if err == nil {
			fmt.Println("size", s.Col, s.Row)
		}
		return err
	}
	if err := size(); err != nil {
		return err
	}
	for {
		select {
		case sig := <-signals:
			if sig == syscall.SIGINT {
				fmt.Println("interrupted")
			} else if err := size(); err != nil {
				return err
			}
		case line, ok := <-lines:
			if !ok || line == "end" {
				os.Exit(42)
			}
			fmt.Println("line", line)
		}
	}
}
