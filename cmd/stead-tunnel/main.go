// Command stead-tunnel is WireGuard for one link of a host whose kernel has none. The agent starts it and sets its keys and
// peers; it outlives the agent (package agent/wireguard/userspace). It is a program of its own because members' traffic depends on it: an
// upgrade that changes only others leaves it running, and what ends another program does not end it.
//
//	stead-tunnel LINK      be the WireGuard of a link
//	stead-tunnel version   print the version
package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"github.com/stead-project/stead/agent/wireguard/userspace"
)

// version is set by the linker.
var version = "dev"

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

// run returns the exit code: 0 ended as asked, 1 it cannot serve, 2 wrong use.
func run(args []string, stdout, stderr io.Writer) int {
	switch {
	case len(args) != 1 || args[0] == "" || args[0][0] == '-':
		fmt.Fprintln(stderr, "usage: stead-tunnel LINK | version")
		return 2
	case args[0] == "version":
		fmt.Fprintln(stdout, version)
		return 0
	}
	// Members' traffic goes through it, so it is ended for memory after them. Where that is not permitted it does without.
	_ = os.WriteFile("/proc/self/oom_score_adj", []byte("-999"), 0)
	signal.Ignore(syscall.SIGHUP, syscall.SIGPIPE, syscall.SIGINT)
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	log := slog.New(slog.NewTextHandler(stderr, nil)).With("pid", os.Getpid())
	if err := userspace.Serve(ctx, args[0], log); err != nil {
		log.Error("cannot serve", "err", err)
		return 1
	}
	return 0
}
