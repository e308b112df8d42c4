package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stead-project/stead/cmd/stead/script"
)

// stories try the sections of the runbook of docs/OPERATIONS.md: each runs the stead lines of its section, in order,
// on a cluster to which that happens. The lines of hosts are run in test/lab, by the test that its table names.
var stories = map[string]func(*testing.T, *book){
	"Take a host down for work":      runDrain,
	"Reboot a host":                  runReboot,
	"A host lost its power":          runPowerLoss,
	"A host is lost for good":        runLostHost,
	"A host was reinstalled":         runReinstalled,
	"A clock is wrong":               runClock,
	"A disk is full":                 runShortHost,
	"The network cannot be set up":   runNoNetwork,
	"Upgrade Stead":                  runUpgrade,
	"Change the tunnel to WireGuard": runWireGuard,
}

// TestTheRunbook: each section fits on a screen, each of its lines is tried, and nothing else is.
func TestTheRunbook(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../docs/OPERATIONS.md")
	if err != nil {
		t.Fatal(err)
	}
	_, part, found := strings.Cut(string(text), "\n## Runbook\n")
	part, _, more := strings.Cut(part, "\n## ")
	if !found || !more {
		t.Fatal("docs/OPERATIONS.md has no runbook")
	}
	index, rest, _ := strings.Cut(part, "\n### ")
	host := labLines(t)
	seen := map[string]bool{}
	for section := range strings.SplitSeq(rest, "\n### ") {
		title, body, _ := strings.Cut(section, "\n")
		seen[title] = true
		t.Run(title, func(t *testing.T) {
			t.Parallel()
			checkScreen(t, section)
			if !strings.Contains(index, "["+title+"](#") {
				t.Error("the index of the runbook does not have it")
			}
			story := stories[title]
			if story == nil {
				t.Fatal("no story tries it: add one to stories")
			}
			b := &book{t: t, left: commands(body), host: host, places: strings.NewReplacer("/var/backups/stead", t.TempDir())}
			story(t, b)
			b.skipHost()
			if len(b.left) > 0 {
				t.Errorf("nothing tries %q: its story has to run it", b.left)
			}
		})
	}
	for title := range stories {
		if !seen[title] {
			t.Errorf("there is a story of %q, and no such section", title)
		}
	}
}

// checkScreen fails for a section of more than 40 lines or 110 columns.
func checkScreen(t *testing.T, section string) {
	t.Helper()
	lines := strings.Split(strings.TrimSpace(section), "\n")
	if len(lines) > 40 {
		t.Errorf("it has %d lines; at most 40 fit on a screen", len(lines))
	}
	for _, line := range lines {
		if utf8.RuneCountInString(line) > 110 {
			t.Errorf("more than 110 columns: %s", line)
		}
	}
}

// commands are the command lines in the blocks of a section, without their remarks.
func commands(section string) (all []string) {
	for i, block := range strings.Split(section, "```") {
		block, isShell := strings.CutPrefix(block, "sh\n")
		if i%2 == 0 || !isShell {
			continue
		}
		for line := range strings.Lines(block) {
			command, _, _ := strings.Cut(line, " #")
			if strings.TrimSpace(command) != "" {
				all = append(all, strings.TrimSpace(command))
			}
		}
	}
	return all
}

// labLines is the table of test/lab: a line that is run on a host there, and the test that does it.
func labLines(t *testing.T) map[string]string {
	t.Helper()
	lines, tests := map[string]string{}, map[string]bool{}
	files, err := filepath.Glob("../../test/lab/*_test.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range files {
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.FuncDecl:
				tests[n.Name.Name] = true
			case *ast.ValueSpec:
				if n.Names[0].Name == "runbookLines" {
					readTable(t, n, lines)
				}
			}
			return true
		})
	}
	for line, test := range lines {
		if !tests[test] {
			t.Errorf("test/lab says that %s runs %q, and has no such test", test, line)
		}
	}
	if len(lines) == 0 {
		t.Error("test/lab has no table runbookLines any more")
	}
	return lines
}

func readTable(t *testing.T, n *ast.ValueSpec, lines map[string]string) {
	t.Helper()
	for _, entry := range n.Values[0].(*ast.CompositeLit).Elts {
		pair := entry.(*ast.KeyValueExpr)
		line, err := strconv.Unquote(pair.Key.(*ast.BasicLit).Value)
		test, err2 := strconv.Unquote(pair.Value.(*ast.BasicLit).Value)
		if err != nil || err2 != nil {
			t.Fatalf("the table of test/lab is not of plain texts: %v %v", err, err2)
		}
		lines[line] = test
	}
}

// book is a section that is tried: the lines that are left.
type book struct {
	t    *testing.T
	left []string
	host map[string]string // those of hosts
	// places are directories of the page, with those of the test in their place.
	places *strings.Replacer
}

// skipHost takes lines that test/lab runs.
func (b *book) skipHost() {
	b.t.Helper()
	for len(b.left) > 0 && b.host[b.left[0]] != "" {
		b.left = b.left[1:]
	}
}

// looks are verbs that may be repeated until what they show is there.
var looks = []string{"status", "explain", "get", "describe", "wait", "version", "top", "ls"}

// run runs the next line of the section, which must be this one, and be done, with these words in lines of its output.
func (b *book) run(c interface{ stead(...string) (int, string) }, line string, words ...string) (said string) {
	b.t.Helper()
	b.skipHost()
	if len(b.left) == 0 || b.left[0] != line {
		b.t.Fatalf("the next line of the section is %q; the story runs %q", b.left, line)
	}
	b.left = b.left[1:]
	args := strings.Fields(b.places.Replace(line))[1:]
	step := script.Step{Where: b.t.Name(), Args: args, Words: words}
	step.Again = slices.Contains(looks, args[0]) || slices.Contains(looks, args[1])
	wrong := step.Run(func(args ...string) (code int, out string) {
		code, said = c.stead(args...)
		return code, said
	}, patience)
	if wrong != "" {
		b.t.Fatal(wrong)
	}
	return strings.TrimSpace(said)
}
