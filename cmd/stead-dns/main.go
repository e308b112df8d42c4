// Command stead-dns answers DNS on a host. The agent starts it and gives it all records; it outlives the agent, and
// answers from what it has while the agent is away (package agent/nameserver). It is a program of its own because it
// holds a DNS library, which the many processes of stead-node do without.
//
//	stead-dns SOCKET TASK   be found at SOCKET, and do the task, in JSON
//	stead-dns version       print the version
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"github.com/stead-project/stead/agent/nameserver"
)

// version is set by the linker.
var version = "dev"

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

// run returns the exit code: 0 ended as asked, 1 it cannot answer, 2 wrong use.
func run(args []string, stdout, stderr io.Writer) int {
	var t nameserver.Task
	switch {
	case len(args) == 1 && args[0] == "version":
		fmt.Fprintln(stdout, version)
		return 0
	case len(args) != 2 || json.Unmarshal([]byte(args[1]), &t) != nil:
		fmt.Fprintln(stderr, "usage: stead-dns SOCKET TASK | version")
		return 2
	}
	// Members ask it, so it is ended for memory after them. Where that is not permitted it does without.
	_ = os.WriteFile("/proc/self/oom_score_adj", []byte("-999"), 0)
	signal.Ignore(syscall.SIGHUP, syscall.SIGPIPE, syscall.SIGINT)
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	log := slog.New(slog.NewTextHandler(stderr, nil)).With("pid", os.Getpid())
	if err := nameserver.Serve(ctx, args[0], t, log); err != nil {
		log.Error("cannot answer", "err", err)
		return 1
	}
	return 0
}
