package main

import (
	"context"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
)

// acts are the commands whose examples would start something on this machine: they
// are only parsed.
var acts = []string{"dev", "server", "agent", "purge", "check", "accept-disk"}

// examples are the command lines of a command's help, without "stead".
func examples(cmd *cobra.Command) (lines [][]string) {
	for line := range strings.Lines(cmd.Example + "\n" + cmd.Root().Long) {
		_, line, ok := strings.Cut(line, "stead ")
		if !ok || strings.HasPrefix(line, "keeps") {
			continue
		}
		line, _, _ = strings.Cut(line, "  (") // a remark
		line, _, _ = strings.Cut(line, " < ")
		if words := strings.Fields(line); len(words) > 0 {
			lines = append(lines, words)
		}
	}
	return lines
}

// TestEveryExampleInAHelpTextIsRight: each is run against a server that is not there,
// and none is refused as a wrong use.
func TestEveryExampleInAHelpTextIsRight(t *testing.T) {
	t.Chdir(t.TempDir()) // some write files there
	nowhere := "unix://" + filepath.Join(t.TempDir(), "none.sock")
	seen := map[string]bool{}
	var walk func(cmd *cobra.Command)
	walk = func(cmd *cobra.Command) {
		for _, sub := range cmd.Commands() {
			walk(sub)
		}
		if cmd.Runnable() && cmd.HasParent() && !cmd.HasSubCommands() && cmd.Example == "" && !slices.Contains([]string{"help", "version"}, cmd.Name()) &&
			cmd.Parent().Name() != "completion" {
			t.Errorf("%s: its help has no example", cmd.CommandPath())
		}
		for _, words := range examples(cmd) {
			if line := strings.Join(words, " "); !seen[line] {
				seen[line] = true
				t.Run(line, func(t *testing.T) { example(t, nowhere, words) })
			}
		}
	}
	walk(newRoot(&cli{}))
	if len(seen) < 20 {
		t.Errorf("only %d examples were found", len(seen))
	}
}

func example(t *testing.T, server string, words []string) {
	cmd, rest, err := newRoot(&cli{}).Find(words)
	if err == nil {
		err = cmd.ParseFlags(rest)
	}
	if err == nil {
		err = cmd.ValidateArgs(cmd.Flags().Args())
	}
	if err != nil || !cmd.Runnable() {
		t.Fatalf("it cannot be parsed: %v", err)
	}
	tty, _ := cmd.Flags().GetBool("tty") // a test has no terminal
	if tty || slices.ContainsFunc(acts, func(name string) bool { return strings.Contains(cmd.CommandPath()+" ", " "+name+" ") }) {
		return
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	var out lines
	if code := run(ctx, append([]string{"--server", server}, words...), &out, &out); code == exitUsage &&
		!strings.Contains(out.String(), "no server answers") && !strings.Contains(out.String(), "no such file") {
		t.Errorf("it is a wrong use: %s", &out)
	}
}
