package arch

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path"
	"regexp"
	"strconv"
	"strings"
)

// Rule is a numbered heading of docs/SAFETY.md or docs/SEMANTICS.md.
type Rule struct {
	Name string // as code cites it: "SAFETY S5", "SEMANTICS rule 2"
	Text string // what follows, up to the next rule
}

// Built reports whether code can keep the rule today.
func (r Rule) Built() bool { return !notBuilt.MatchString(r.Text) }

var notBuilt = regexp.MustCompile(`(?m)^Not built\.`)

// series is one kind of numbered headings. They begin at 1 and follow one another.
type series struct {
	name string         // of a rule, before its number
	form *regexp.Regexp // of a heading
	like *regexp.Regexp // what only such headings begin with
}

var (
	safetySeries    = []series{{"SAFETY S", heading(`## S(\d+)\. \S`), heading(`#+ S\d`)}}
	semanticsSeries = []series{
		{"SEMANTICS Part ", heading(`## Part (\d+)\. \S`), heading(`#+ Part\b`)},
		{"SEMANTICS rule ", heading(`### Rule (\d+)\. \S`), heading(`#+ Rule\b`)},
		{"SEMANTICS K", heading(`### K(\d+)\. \S`), heading(`#+ K\d`)},
	}
)

func heading(begin string) *regexp.Regexp { return regexp.MustCompile(`(?m)^` + begin + `.*$`) }

// ReadSafety returns the rules of docs/SAFETY.md, and what is wrong with their headings.
func ReadSafety(text string) (rules []Rule, problems []string) { return readRules(text, safetySeries) }

// ReadSemantics does the same for docs/SEMANTICS.md.
func ReadSemantics(text string) (rules []Rule, problems []string) {
	return readRules(text, semanticsSeries)
}

func readRules(text string, kinds []series) (rules []Rule, problems []string) {
	for _, k := range kinds {
		found := k.form.FindAllStringSubmatchIndex(text, -1)
		if like := len(k.like.FindAllString(text, -1)); like != len(found) || like == 0 {
			problems = append(problems, fmt.Sprintf("%d headings look like %q, and %d have its form %s", like, k.name+"N", len(found), k.form))
		}
		for i, at := range found {
			number, body := text[at[2]:at[3]], text[at[1]:]
			if i+1 < len(found) {
				body = text[at[1]:found[i+1][0]]
			}
			if number != strconv.Itoa(i+1) {
				problems = append(problems, fmt.Sprintf("heading %d of its kind is %s%s, want %s%d: no gap, no double", i+1, k.name, number, k.name, i+1))
			}
			rules = append(rules, Rule{k.name + number, body})
		}
	}
	return rules, problems
}

// Citation is a place in a Go file that names a rule.
type Citation struct {
	Rule string // as Rule.Name
	File string
	Line int
	// Suite is the test that sees the planted fault of the rule; zero: no fault is planted here.
	Suite Suite
}

// Suite is a test of a folder, as planted faults name it: Run is for go test -run.
type Suite struct{ Folder, Run string }

// Test reports whether the citation is in a test.
func (c Citation) Test() bool { return strings.HasSuffix(c.File, "_test.go") }

// UnknownCitations are those of rules that the documents do not have, with their place.
func UnknownCitations(rules []Rule, cited []Citation) (problems []string) {
	known := map[string]bool{}
	for _, r := range rules {
		known[r.Name] = true
	}
	for _, c := range cited {
		if !known[c.Rule] {
			problems = append(problems, fmt.Sprintf("%s:%d: cites %s, which is no heading in docs", c.File, c.Line, c.Rule))
		}
	}
	return problems
}

// UntestedRules are those that are built and that no test cites, nor a planted fault with a
// test; exists tells whether there is such a test.
func UntestedRules(rules []Rule, cited []Citation, exists func(Suite) bool) (problems []string) {
	tested := map[string]bool{}
	for _, c := range cited {
		switch {
		case c.Test():
			tested[c.Rule] = true
		case c.Suite != Suite{} && !exists(c.Suite):
			problems = append(problems, fmt.Sprintf("%s:%d: the planted fault of %s names the test %s in %s, which is not there", c.File, c.Line, c.Rule, c.Suite.Run, c.Suite.Folder))
		case c.Suite != Suite{}:
			tested[c.Rule] = true
		}
	}
	for _, r := range rules {
		if r.Built() && !tested[r.Name] {
			problems = append(problems, fmt.Sprintf("%s is cited by no test and by no planted fault; cite it at the test that fails without it", r.Name))
		}
	}
	return problems
}

const (
	safetyList    = `(S\d+(?:(?:,|\s+and|,\s+and)\s+S\d+)*)\b`
	semanticsList = `(\d+(?:(?:,|\s+and|,\s+and)\s+\d+)*)\b`
)

var (
	// Everywhere: "SAFETY S5", "SAFETY S5, S6", "SAFETY (S5)".
	namedSafety = regexp.MustCompile(`SAFETY\s+\(?` + safetyList)
	// In comments, too: "(S5)", "(S5, S6: why)", and "S5: …" or "S5, S6: …" at their beginning.
	inBrackets  = regexp.MustCompile(`\(` + safetyList + `[):;,]`)
	atBeginning = regexp.MustCompile(`^[\s/*]*` + safetyList + `:`)

	namedSemantics = regexp.MustCompile(`SEMANTICS\s+(?:(rule\s+|Part\s+|K)(\d+))\b`)
	// In comments of the planner: "rule 2", "rules 1 and 5".
	ofThePlanner = regexp.MustCompile(`\brules?\s+` + semanticsList)

	number     = regexp.MustCompile(`\d+`)
	ruleOnly   = regexp.MustCompile(`^S\d+$`)
	commentEnd = regexp.MustCompile(`\n[ \t]*//`)
)

// plannerFolder is where a rule without the name of its document is one of SEMANTICS.
const plannerFolder = "server/plan"

// faultsFolder is where faults are planted.
const faultsFolder = "scripts/mutants"

// Citations finds what the comments and texts of a Go file cite. A name such as S3 counts
// only in the forms above: it may be a word of an example.
func Citations(rel, text string) (found []Citation, err error) {
	fset := token.NewFileSet()
	f, err := parser.ParseFile(fset, rel, text, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	folder := path.Dir(rel)
	c := citations{rel: rel}
	for _, g := range f.Comments {
		begin, end := fset.Position(g.Pos()), fset.Position(g.End())
		// A list may go on in the next line. The bytes stay where they are.
		comment := commentEnd.ReplaceAllStringFunc(text[begin.Offset:end.Offset], func(s string) string {
			return "\n" + strings.Repeat(" ", len(s)-1)
		})
		c.safety(comment, begin.Line, namedSafety, inBrackets, atBeginning)
		c.semantics(comment, begin.Line, below(folder, plannerFolder))
	}
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.BasicLit:
			if n.Kind == token.STRING {
				line := fset.Position(n.Pos()).Line
				c.safety(n.Value, line, namedSafety)
				c.semantics(n.Value, line, false)
			}
		case *ast.CompositeLit:
			if folder == faultsFolder {
				c.fault(n, fset.Position(n.Pos()).Line)
			}
		}
		return true
	})
	return c.found, nil
}

type citations struct {
	rel   string
	found []Citation
}

// add notes a citation, once a line.
func (c *citations) add(rule string, line int) {
	for _, old := range c.found {
		if old.Rule == rule && old.Line == line {
			return
		}
	}
	c.found = append(c.found, Citation{Rule: rule, File: c.rel, Line: line})
}

func (c *citations) safety(text string, line int, forms ...*regexp.Regexp) {
	for _, form := range forms {
		c.each(text, line, form, "SAFETY S")
	}
}

func (c *citations) semantics(text string, line int, planner bool) {
	for _, at := range namedSemantics.FindAllStringSubmatchIndex(text, -1) {
		kind := "SEMANTICS K"
		if word := strings.TrimSpace(text[at[2]:at[3]]); word != "K" {
			kind = "SEMANTICS " + word + " "
		}
		c.add(kind+text[at[4]:at[5]], line+strings.Count(text[:at[4]], "\n"))
	}
	if planner {
		c.each(text, line, ofThePlanner, "SEMANTICS rule ")
	}
}

// each adds all numbers in the lists that a form finds in its first group.
func (c *citations) each(text string, line int, form *regexp.Regexp, name string) {
	for _, at := range form.FindAllStringSubmatchIndex(text, -1) {
		list, begin := text[at[2]:at[3]], at[2]
		for _, n := range number.FindAllStringIndex(list, -1) {
			c.add(name+list[n[0]:n[1]], line+strings.Count(text[:begin+n[0]], "\n"))
		}
	}
}

// fault notes a planted fault: {rule, file, old, next, suite{folder, run}}.
func (c *citations) fault(n *ast.CompositeLit, line int) {
	if len(n.Elts) != 5 || !ruleOnly.MatchString(literal(n.Elts[0])) {
		return
	}
	at := Citation{Rule: "SAFETY " + literal(n.Elts[0]), File: c.rel, Line: line}
	if s, ok := n.Elts[4].(*ast.CompositeLit); ok && len(s.Elts) == 2 {
		at.Suite = Suite{literal(s.Elts[0]), literal(s.Elts[1])}
	}
	c.found = append(c.found, at)
}

// literal is the value of a text; "": it is none.
func literal(e ast.Expr) string {
	lit, ok := e.(*ast.BasicLit)
	if !ok || lit.Kind != token.STRING {
		return ""
	}
	value, err := strconv.Unquote(lit.Value)
	if err != nil {
		return ""
	}
	return value
}
