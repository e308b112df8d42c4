package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

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
	return usageError{errors.New(text)}
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
				return usageError{fmt.Errorf("unknown command %q; see 'stead --help'", strings.Join(args, " "))}
			}
			return about.Help()
		},
	}
}
