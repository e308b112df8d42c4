package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// manCommand writes what Debian's package has in /usr/share/man. cobra's own pages go by Markdown, which fills the
// lines of examples.
func manCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "man DIRECTORY",
		Short:   "Write the manual pages, one of each verb",
		Example: "  stead man .",
		Args:    exactly(1, "the directory in which to write the pages"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return writePages(cmd.Root(), args[0])
		},
	}
}

// writePages writes the page of cmd and of each verb below it into dir, which must exist.
func writePages(cmd *cobra.Command, dir string) error {
	if cmd.Hidden || cmd.Deprecated != "" {
		return nil
	}
	if err := os.WriteFile(filepath.Join(dir, pageName(cmd)+".1"), []byte(page(cmd)), 0o644); err != nil {
		return err
	}
	for _, sub := range cmd.Commands() {
		if err := writePages(sub, dir); err != nil {
			return err
		}
	}
	return nil
}

func pageName(cmd *cobra.Command) string { return strings.ReplaceAll(cmd.CommandPath(), " ", "-") }

// page is the manual page of cmd in the language of man(7).
func page(cmd *cobra.Command) string {
	cmd.InitDefaultHelpFlag()
	b := &strings.Builder{}
	fmt.Fprintf(b, ".TH %q 1 \"\" %q \"Stead\"\n", strings.ToUpper(pageName(cmd)), "stead "+version)
	fmt.Fprintf(b, ".SH NAME\n%s \\- %s\n", roff(pageName(cmd)), roff(cmd.Short))
	verbatim(b, "SYNOPSIS", cmd.UseLine())
	verbatim(b, "DESCRIPTION", cmd.Long)
	verbatim(b, "EXAMPLES", cmd.Example)
	flags(b, "OPTIONS", cmd.LocalFlags())
	flags(b, "OPTIONS OF ALL VERBS", cmd.InheritedFlags())
	if !cmd.HasParent() {
		b.WriteString(".SH EXIT STATUS\n0: done. 1: refused; the message says why. 2: usage error. 3: not finished in time, or interrupted.\n")
	}
	var others []string
	if cmd.HasParent() {
		others = append(others, pageName(cmd.Parent()))
	}
	for _, sub := range cmd.Commands() {
		if !sub.Hidden && sub.Deprecated == "" {
			others = append(others, pageName(sub))
		}
	}
	b.WriteString(".SH SEE ALSO\n")
	for i, name := range others {
		end := ","
		if i == len(others)-1 {
			end = ""
		}
		fmt.Fprintf(b, ".BR %s (1)%s\n", roff(name), end)
	}
	return b.String()
}

// verbatim is a section whose lines stay as they are: help texts are set by hand.
func verbatim(b *strings.Builder, title, text string) {
	if text != "" {
		fmt.Fprintf(b, ".SH %s\n.nf\n%s\n.fi\n", title, roff(strings.TrimRight(text, "\n")))
	}
}

func flags(b *strings.Builder, title string, set *pflag.FlagSet) {
	if !set.HasAvailableFlags() {
		return
	}
	fmt.Fprintf(b, ".SH %s\n", title)
	set.VisitAll(func(f *pflag.Flag) {
		if f.Hidden || f.Deprecated != "" {
			return
		}
		name, usage := pflag.UnquoteUsage(f)
		long := "--" + f.Name
		if f.Shorthand != "" {
			long = "-" + f.Shorthand + ", " + long
		}
		fmt.Fprintf(b, ".TP\n%s\n%s\n", roff(strings.TrimSpace(long+" "+name)), roff(usage))
	})
}

// roff is text in which nothing is a request or an escape.
func roff(text string) string {
	text = strings.NewReplacer(`\`, `\e`, "-", `\-`).Replace(text)
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		if strings.HasPrefix(line, ".") || strings.HasPrefix(line, "'") {
			lines[i] = `\&` + line
		}
	}
	return strings.Join(lines, "\n")
}
