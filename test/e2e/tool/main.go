// Command tool is what end-to-end tests run beside Stead, in one static program:
// a member that tells of its life (life), the witness that writes it down
// (witness), a writer of acknowledged keys (load), and a member that shows what it
// sees of itself (show) or is told of its set (follow); what is run in a member (command); a member in trouble (harm); who holds an address (hold), or answers there (serve); who asks a name server (ask).
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	verbs := map[string]func(context.Context, []string) error{
		"life": life, "witness": witness, "load": load, "show": show, "follow": follow, "command": command, "harm": harm, "hold": hold, "serve": serve, "ask": ask,
	}
	if len(os.Args) < 2 || verbs[os.Args[1]] == nil {
		fmt.Fprintln(os.Stderr, "usage: tool life|witness|load|show|follow|command|harm|hold|serve|ask [flags]")
		os.Exit(2)
	}
	if err := verbs[os.Args[1]](ctx, os.Args[2:]); err != nil {
		fmt.Fprintln(os.Stderr, "tool:", err)
		os.Exit(1)
	}
}
