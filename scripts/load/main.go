// Command load burns processors while another command runs, to show that tests need no idle
// machine:
//
//	go run ./scripts/load -n 30 go test ./test/box
//
// It starts n processes that do nothing but count, runs the command beside them, prints the
// load average every ten seconds and at the end, and exits as the command does. Without a
// command it burns for the time of -for.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"time"
)

// burnEnv marks a process that burns.
const burnEnv = "STEAD_LOAD_BURN"

func main() {
	if os.Getenv(burnEnv) != "" {
		for n := uint64(0); ; n++ {
			_ = n
		}
	}
	n := flag.Int("n", 30, "processes that burn")
	most := flag.Duration("for", time.Minute, "how long to burn without a command")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := run(ctx, *n, *most, flag.Args())
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		os.Exit(max(1, exit.ExitCode()))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "load:", err)
		os.Exit(1)
	}
}

// run burns n processes beside the command, or for a time if there is none.
func run(ctx context.Context, n int, most time.Duration, command []string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	if len(command) == 0 {
		command = []string{"sleep", fmt.Sprint(most.Seconds())}
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	for range n {
		burner := exec.CommandContext(ctx, self)
		burner.Env = append(os.Environ(), burnEnv+"=1", "GOMAXPROCS=1")
		burner.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
		if err := burner.Start(); err != nil {
			return err
		}
		defer func() { cancel(); _ = burner.Wait() }()
	}
	go func() {
		for tick := time.Tick(10 * time.Second); ctx.Err() == nil; <-tick {
			report(n)
		}
	}()
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	began := time.Now()
	err = cmd.Run()
	report(n)
	fmt.Fprintf(os.Stderr, "load: %s took %s\n", command[0], time.Since(began).Round(time.Second))
	return err
}

// report prints the load average, and how many of how many threads run now.
func report(n int) {
	text, err := os.ReadFile("/proc/loadavg")
	if fields := strings.Fields(string(text)); err == nil && len(fields) > 3 {
		fmt.Fprintf(os.Stderr, "load: average %s %s %s, running %s, %d burn\n", fields[0], fields[1], fields[2], fields[3], n)
	}
}
