package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
)

func TestEveryVerbHasAManualPage(t *testing.T) {
	dir := t.TempDir()
	var out lines
	if code := run(t.Context(), []string{"man", dir}, &out, &out); code != exitDone {
		t.Fatal(&out)
	}
	pages := 0
	var walk func(cmd *cobra.Command)
	walk = func(cmd *cobra.Command) {
		text, err := os.ReadFile(filepath.Join(dir, pageName(cmd)+".1"))
		if err != nil {
			t.Error(err)
			return
		}
		pages++
		for _, want := range []string{roff(cmd.Short), roff(strings.TrimSpace(cmd.Example)), roff(strings.TrimSpace(cmd.Long)), roff(cmd.UseLine())} {
			if !strings.Contains(string(text), want) {
				t.Errorf("%s: its page lacks %q", cmd.CommandPath(), want)
			}
		}
		for _, sub := range cmd.Commands() {
			walk(sub)
		}
	}
	walk(newRoot(&cli{}))
	if pages < 40 {
		t.Errorf("only %d pages were found", pages)
	}
}

func TestAManualPageIsWhatManReads(t *testing.T) {
	root := &cobra.Command{Use: "stead"}
	verb := &cobra.Command{Use: "look NAME [flags]", Short: "Look at it", Long: "First line\n.hidden\n'quoted'", Example: `  stead look db-0 --at \n`,
		Run: func(*cobra.Command, []string) {}}
	root.PersistentFlags().StringP("namespace", "n", "default", "`NAME` of the namespace")
	verb.Flags().Duration("at", time.Second, "when")
	root.AddCommand(verb)
	want := `.TH "STEAD-LOOK" 1 "" "stead dev" "Stead"
.SH NAME
stead\-look \- Look at it
.SH SYNOPSIS
.nf
stead look NAME [flags]
.fi
.SH DESCRIPTION
.nf
First line
\&.hidden
\&'quoted'
.fi
.SH EXAMPLES
.nf
  stead look db\-0 \-\-at \en
.fi
.SH OPTIONS
.TP
\-\-at duration
when
.TP
\-h, \-\-help
help for look
.SH OPTIONS OF ALL VERBS
.TP
\-n, \-\-namespace NAME
NAME of the namespace
.SH SEE ALSO
.BR stead (1)
`
	if got := page(verb); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
