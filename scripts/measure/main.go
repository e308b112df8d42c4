// Command measure prints how the tree reads, in the measures by which it is judged:
// lines of files and functions, methods of types, names of packages, what doc comments say.
//
//	measure [-v] [DIR]
//
// -v lists what is above a cap or without a doc comment that says anything. The caps are kept
// by test/arch.
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/stead-project/stead/test/arch"
)

func main() {
	verbose := flag.Bool("v", false, "list the names behind the numbers")
	flag.Parse()
	root := "."
	if flag.NArg() > 0 {
		root = flag.Arg(0)
	}
	m, err := arch.Measure(root)
	if err != nil {
		fmt.Fprintln(os.Stderr, "measure:", err)
		os.Exit(1)
	}
	report(os.Stdout, m, *verbose)
}

// report writes m as a table of Markdown.
func report(w io.Writer, m *arch.Measures, verbose bool) {
	row := func(what, format string, args ...any) {
		fmt.Fprintf(w, "| %s | %s |\n", what, fmt.Sprintf(format, args...))
	}
	spread := func(s []arch.Size) string {
		return fmt.Sprintf("%d / %d / %d", arch.Percentile(s, 50), arch.Percentile(s, 90), arch.Percentile(s, 100))
	}
	fmt.Fprintln(w, "| measure | value |\n|---|---|")
	row("lines of a product file: median / p90 / max", "%s", spread(m.Files))
	row("lines of a product function: median / p90 / max", "%s", spread(m.Funcs))
	row(fmt.Sprintf("largest types by methods (cap %d)", arch.MaxMethods), "%s", top(m.Types))
	row(fmt.Sprintf("largest packages by exported names (cap %d)", arch.MaxExported), "%s", top(m.Packages))
	row("names of exported types with several meanings", "%d, and %d that the law lists with a reason", len(m.Doubles), m.Shared)
	row(fmt.Sprintf("exported names whose doc comment has content (floor %d %%)", arch.MinDocs), "%.1f %% of %d",
		100*float64(m.Exported-len(m.Undocumented))/float64(max(1, m.Exported)), m.Exported)
	row("lines that are no tests: product + support", "%d + %d = %d", m.Product, m.Support, m.Product+m.Support)
	row("lines of tests; generated", "%d; %d", m.Tests, m.Generated)
	if !verbose {
		return
	}
	for _, d := range m.Doubles {
		fmt.Fprintf(w, "\ntype %s is in %s", d.Name, strings.Join(d.Folders, ", "))
	}
	for _, name := range m.Undocumented {
		fmt.Fprintf(w, "\n%s has no doc comment with content", name)
	}
	fmt.Fprintln(w)
}

func top(sizes []arch.Size) string {
	var out []string
	for _, s := range sizes[:min(4, len(sizes))] {
		out = append(out, fmt.Sprintf("%s %d", s.Name, s.N))
	}
	return strings.Join(out, ", ")
}
