// Command stead runs clustered stateful software on bare-metal hosts: server,
// agent and the command line, in one binary.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"regexp"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/stead-project/stead/proto"
	"github.com/stead-project/stead/server"
)

// version is set by the linker (-X main.version).
var version = "dev"

// The exit codes of every verb.
const (
	exitDone     = 0
	exitRefused  = 1
	exitUsage    = 2
	exitTimedOut = 3
)

// usageError is a wrong use of the command line.
type usageError struct{ error }

// misuse is a usageError with a text as of fmt.Errorf.
func misuse(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

// What verbs that waited return: they ran out of time, or Ctrl-C ended them.
var (
	errNotInTime = errors.New("not finished in time")
	errLeft      = errors.New("not finished: interrupted")
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second Ctrl-C ends the process at once
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// positioned is how a problem of a manifest starts. Such lines are printed as they are, so that
// editors find the place in each of them.
var positioned = regexp.MustCompile(`^\S+:\d+:\d+: `)

// run executes one command line and returns its exit code.
func run(ctx context.Context, args []string, out, errOut io.Writer) int {
	c := &cli{words: args}
	defer c.close()
	root := newRoot(c)
	ctx = metadata.AppendToOutgoingContext(ctx, proto.UserKey, userName())
	root.SetArgs(args)
	root.SetOut(out)
	root.SetErr(errOut)
	addCompletion(root)
	err := c.explain(root.ExecuteContext(ctx))
	if err == nil {
		return exitDone
	}
	if ctx.Err() != nil && (status.Code(err) == codes.Canceled || errors.Is(err, context.Canceled)) {
		fmt.Fprintln(errOut, "stead: interrupted; the server continues what it has accepted")
		return exitTimedOut
	}
	if code, ok := errors.AsType[exitCode](err); ok {
		return int(code)
	}
	text := explainError(err)
	if !positioned.MatchString(text) {
		text = "stead: " + text
	}
	fmt.Fprintln(errOut, text)
	if _, ok := errors.AsType[usageError](err); ok {
		return exitUsage
	}
	if errors.Is(err, errNotInTime) || errors.Is(err, errLeft) {
		return exitTimedOut
	}
	return exitRefused
}

func newRoot(c *cli) *cobra.Command {
	c.control, c.trust, c.servers, c.keyring = proto.NewControlClient(c), proto.NewTrustClient(c), proto.NewServersClient(c), proto.NewKeyringClient(c)
	c.authority = proto.NewAuthorityClient(c)
	root := &cobra.Command{
		Use:   "stead",
		Short: "Run databases and other clustered stateful software, without Kubernetes",
		Long: `Stead runs sets of members. Each member keeps its name, its address and its disk
through crashes, updates and moves.

Try it on one machine:
  sudo stead dev                          (server, agent, DNS and store in one)
  sudo stead image load etcd.tar
  sudo stead apply -f examples/etcd/etcd.yaml --wait
  sudo stead get members`,
		SilenceUsage:  true,
		SilenceErrors: true,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return absentVerb(args[0])
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
		PersistentPreRun: func(cmd *cobra.Command, _ []string) {
			if lasts(cmd) {
				c.tellLost(cmd.Context(), cmd.ErrOrStderr())
			}
		},
	}
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return wrongFlag(cmd, c.words, err)
	})
	flags := root.PersistentFlags()
	flags.StringVar(&c.server, "server", os.Getenv("STEAD_SERVER"),
		"server address: unix:///path, or HOST:PORT with --config (env STEAD_SERVER; default: unix://"+server.DefaultSocket+")")
	flags.StringVar(&c.config, "config", os.Getenv("STEAD_CONFIG"), "client file for servers on other hosts, created by 'stead client create' (env STEAD_CONFIG)")
	flags.StringVarP(&c.namespace, "namespace", "n", "default", "namespace of the objects")
	root.AddCommand(
		devCommand(), serverCommand(c), agentCommand(),
		applyCommand(c), diffCommand(c), getCommand(c), describeCommand(c), explainCommand(c),
		scaleCommand(c), rolloutCommand(c), jobCommand(c), restartCommand(c), moveCommand(c), rebalanceCommand(c), waitCommand(c), deleteCommand(c),
		logsCommand(c), execCommand(c), forwardCommand(c), copyCommand(c), editCommand(c), imageCommand(c), volumeCommand(c), nodeCommand(c), backupCommand(c), restoreCommand(c), auditCommand(c),
		statusCommand(c), topCommand(c), versionCommand(c), manCommand(), tokenCommand(c), clientCommand(c), keyringCommand(c), authorityCommand(c),
	)
	root.AddCommand(aliasCommands(c)...)
	root.SetHelpCommand(helpCommand())
	return root
}

// addCompletion adds the command that prints completion scripts for shells. The scripts
// are written to root's output of this moment.
func addCompletion(root *cobra.Command) {
	root.InitDefaultCompletionCmd()
	for _, cmd := range root.Commands() {
		if cmd.Name() == "completion" {
			cmd.Args, cmd.RunE = nil, wantsVerb
		}
	}
}

// exactly makes a wrong number of arguments a usage error that says what is expected.
func exactly(n int, want string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) != n {
			return misuse("%s takes %s; see '%s --help'", cmd.CommandPath(), want, cmd.CommandPath())
		}
		return nil
	}
}

// group is a command that only holds verbs; without a verb, or with an unknown one, it is a
// wrong use.
func group(use, short string, verbs ...*cobra.Command) *cobra.Command {
	cmd := &cobra.Command{Use: use, Short: short, RunE: wantsVerb}
	cmd.AddCommand(verbs...)
	return cmd
}

// wantsVerb refuses a command without a verb, or with an unknown one.
func wantsVerb(cmd *cobra.Command, args []string) error {
	var names []string
	for _, verb := range cmd.Commands() {
		names = append(names, verb.Name())
	}
	text := cmd.CommandPath() + " needs one of " + strings.Join(names, ", ")
	if len(args) > 0 {
		text += fmt.Sprintf(", not %q", args[0])
	}
	return misuse("%s", text)
}

// helpCommand is "stead help [COMMAND]".
func helpCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "help [COMMAND]",
		Short:   "Show the help of a command, with its flags and examples",
		Example: `  stead help rollout status`,
		RunE: func(cmd *cobra.Command, args []string) error {
			about, rest, err := cmd.Root().Find(args)
			if err != nil || len(rest) > 0 {
				return misuse("unknown command %q; see 'stead --help'", strings.Join(args, " "))
			}
			return about.Help()
		},
	}
}
