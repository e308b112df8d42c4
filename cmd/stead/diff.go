package main

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/stead-project/stead/manifest"
	"github.com/stead-project/stead/proto"
)

// exitDifferent is the exit code of a difference, as that of diff(1).
const exitDifferent = 1

func diffCommand(c *cli) *cobra.Command {
	a := applier{cli: c, request: proto.ApplyRequest{DryRun: true}}
	cmd := &cobra.Command{
		Use:   "diff -f FILE | -k DIRECTORY",
		Short: "Show how manifests differ from the stored objects, and what applying them would do",
		Long: `Show how manifests differ from the stored objects, both with their defaults filled in,
and what applying them would do: which members are created, stopped and restarted, and in
which order. The server decides as for 'apply', and changes nothing. Values of Secrets are
not shown. Exit code 0: no difference. 1: there are differences. 2: the comparison failed,
for example because the manifests would be refused.`,
		Example: `  stead diff -f examples/etcd/etcd.yaml
  helm template my-release chart/ | stead diff -f -
  stead diff -k overlays/production`,
		Args: exactly(0, "no arguments, only -f"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			different := false
			err := a.check()
			var done *proto.ApplyResponse
			if err == nil {
				done, err = a.send(cmd)
			}
			if err == nil {
				different, err = printDifference(cmd.OutOrStdout(), done)
			}
			switch {
			case err != nil && cmd.Context().Err() == nil:
				return misuse("%s", explainError(c.explain(err))) // for its exit code
			case different:
				return exitCode(exitDifferent)
			}
			return err
		},
	}
	a.addFlags(cmd.Flags())
	cmd.Flags().BoolVar(&a.prune, "prune", false, "also show what 'apply --prune' would delete, of what -l chooses")
	cmd.Flags().BoolVar(&a.all, "all", false, "with --prune, without -l: of everything in the namespaces of the manifests")
	return cmd
}

// printDifference shows what differs and what comes of it; false: nothing differs.
func printDifference(out io.Writer, done *proto.ApplyResponse) (different bool, err error) {
	for _, a := range done.GetApplied() {
		before, err := yamlText(a.GetBefore())
		if err != nil {
			return false, err
		}
		after, err := yamlText(a.GetAfter())
		if err != nil {
			return false, err
		}
		difference := unified(before, after)
		if difference == "" && len(a.GetEffects()) == 0 {
			continue
		}
		different = true
		name := fmt.Sprintf("%s %s/%s", strings.ToLower(a.GetKind()), a.GetNamespace(), a.GetName())
		stored := "stored " + name
		if before == "" {
			stored = "not stored yet"
		}
		fmt.Fprintf(out, "--- %s\n+++ applied %s\n%s", stored, name, difference)
		for _, e := range a.GetEffects() {
			fmt.Fprintln(out, "# "+e)
		}
	}
	for _, p := range done.GetPruned() {
		different = true
		fmt.Fprintf(out, "--- stored %s %s/%s\n+++ deleted (--prune)\n", p.GetKind(), p.GetNamespace(), p.GetName())
		for _, e := range p.GetEffects() {
			fmt.Fprintln(out, "# "+e)
		}
	}
	return different, nil
}

// yamlText is a document as YAML; empty for none.
func yamlText(doc []byte) (string, error) {
	if len(doc) == 0 {
		return "", nil
	}
	text, err := manifest.JSONToYAML(doc)
	return string(text), err
}

const (
	// contextLines surround each change.
	contextLines = 3
	// mostPairs bounds the search for what two texts have in common; beyond it, all
	// between their common beginning and end counts as changed.
	mostPairs = 4 << 20
)

// unified is the difference of two texts as diff -u writes it, without the names of
// files; empty when they are the same.
func unified(before, after string) string {
	edits := lineEdits(split(before), split(after))
	var out strings.Builder
	for i := 0; i < len(edits); {
		if edits[i][0] == ' ' {
			i++
			continue
		}
		from, to := max(0, i-contextLines), hunkEnd(edits, i)
		writeHunk(&out, edits, from, to)
		i = to
	}
	return out.String()
}

func split(text string) []string {
	if text == "" {
		return nil
	}
	return strings.Split(strings.TrimSuffix(text, "\n"), "\n")
}

// hunkEnd is where the hunk ends whose first change is at i: its changes are at most twice
// the context apart.
func hunkEnd(edits []string, i int) int {
	last := i
	for n := i; n < len(edits) && n-last <= 2*contextLines; n++ {
		if edits[n][0] != ' ' {
			last = n
		}
	}
	return min(len(edits), last+1+contextLines)
}

func writeHunk(out *strings.Builder, edits []string, from, to int) {
	count := func(list []string, other byte) (n int) {
		for _, e := range list {
			if e[0] != other {
				n++
			}
		}
		return n
	}
	side := func(other byte) string {
		first, n := count(edits[:from], other), count(edits[from:to], other)
		return fmt.Sprintf("%d,%d", first+min(n, 1), n)
	}
	fmt.Fprintf(out, "@@ -%s +%s @@\n%s\n", side('+'), side('-'), strings.Join(edits[from:to], "\n"))
}

// lineEdits makes b of a with the fewest lines gone and new. Each line starts with its mark:
// ' ' is kept, '-' gone, '+' new.
func lineEdits(a, b []string) []string {
	head := 0
	for head < min(len(a), len(b)) && a[head] == b[head] {
		head++
	}
	tail := 0
	for tail < min(len(a), len(b))-head && a[len(a)-1-tail] == b[len(b)-1-tail] {
		tail++
	}
	return slices.Concat(marked(" ", a[:head]), middleEdits(a[head:len(a)-tail], b[head:len(b)-tail]), marked(" ", a[len(a)-tail:]))
}

func marked(mark string, lines []string) (out []string) {
	for _, text := range lines {
		out = append(out, mark+text)
	}
	return out
}

func middleEdits(a, b []string) (out []string) {
	if len(a)*len(b) > mostPairs {
		return append(marked("-", a), marked("+", b)...)
	}
	// common[i][j] is how many lines a[i:] and b[j:] have in common, in order.
	common := make([][]int32, len(a)+1)
	for i := range common {
		common[i] = make([]int32, len(b)+1)
	}
	for i := len(a) - 1; i >= 0; i-- {
		for j := len(b) - 1; j >= 0; j-- {
			common[i][j] = max(common[i+1][j], common[i][j+1])
			if a[i] == b[j] {
				common[i][j] = common[i+1][j+1] + 1
			}
		}
	}
	i, j := 0, 0
	for i < len(a) && j < len(b) {
		switch {
		case a[i] == b[j]:
			out = append(out, " "+a[i])
			i, j = i+1, j+1
		case common[i+1][j] >= common[i][j+1]:
			out = append(out, "-"+a[i])
			i++
		default:
			out = append(out, "+"+b[j])
			j++
		}
	}
	return slices.Concat(out, marked("-", a[i:]), marked("+", b[j:]))
}
