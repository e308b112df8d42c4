package arch

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// A rule that code cites can be read in docs/SAFETY.md or docs/SEMANTICS.md.
func TestRulesThatCodeCitesAreInTheDocs(t *testing.T) {
	root := filepath.Join("..", "..")
	safety, semantics := documents(t, root)
	laws, rules := 0, 0
	var cited []Citation
	for _, c := range allCitations(t, root) {
		switch {
		case strings.HasPrefix(c.Rule, "SAFETY"):
			laws++
		default:
			rules++
		}
		cited = append(cited, c)
	}
	if laws < 250 || rules < 20 {
		t.Errorf("only %d citations of SAFETY and %d of SEMANTICS were found: does this test still find them?", laws, rules)
	}
	for _, p := range UnknownCitations(slices.Concat(safety, semantics), cited) {
		t.Error(p)
	}
}

// A rule of docs/SAFETY.md has a test that fails without it, and says where it is kept.
func TestEveryRuleOfSafetyIsTested(t *testing.T) {
	root := filepath.Join("..", "..")
	rules, _ := documents(t, root)
	tests := folderTests(t, root)
	exists := func(s Suite) bool {
		run, err := regexp.Compile(s.Run)
		return err == nil && slices.ContainsFunc(tests[s.Folder], run.MatchString)
	}
	for _, p := range UntestedRules(rules, allCitations(t, root), exists) {
		t.Error(p)
	}
	unbuilt := 0
	for _, r := range rules {
		if !r.Built() {
			unbuilt++
		} else if !namedFile.MatchString(r.Text) || !namedTest.MatchString(r.Text) {
			t.Errorf("docs/SAFETY.md names no file or no test that keeps %s", r.Name)
		}
	}
	if len(rules) < 21 || unbuilt > 1 {
		t.Errorf("%d rules, %d of them not built: does this test still read them?", len(rules), unbuilt)
	}
}

// documents are the rules of both documents.
func documents(t *testing.T, root string) (safety, semantics []Rule) {
	t.Helper()
	read := func(name string, parse func(string) ([]Rule, []string)) []Rule {
		text, err := os.ReadFile(filepath.Join(root, "docs", name))
		if err != nil {
			t.Fatal(err)
		}
		rules, problems := parse(string(text))
		for _, p := range problems {
			t.Errorf("docs/%s: %s", name, p)
		}
		return rules
	}
	return read("SAFETY.md", ReadSafety), read("SEMANTICS.md", ReadSemantics)
}

// allCitations are those of the tree, but for this package, which speaks of their form.
func allCitations(t *testing.T, root string) (found []Citation) {
	t.Helper()
	err := walkGo(root, func(rel string) error {
		if below(rel, "test/arch") {
			return nil
		}
		text, err := os.ReadFile(filepath.Join(root, rel))
		if err != nil {
			return err
		}
		cited, err := Citations(rel, string(text))
		found = append(found, cited...)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// folderTests are the names of the tests of each folder.
func folderTests(t *testing.T, root string) map[string][]string {
	t.Helper()
	names, declared := map[string][]string{}, regexp.MustCompile(`(?m)^func (Test\w+)\(t \*testing\.T\)`)
	err := walkGo(root, func(rel string) error {
		if !strings.HasSuffix(rel, "_test.go") {
			return nil
		}
		text, err := os.ReadFile(filepath.Join(root, rel))
		folder := filepath.ToSlash(filepath.Dir(rel))
		for _, m := range declared.FindAllStringSubmatch(string(text), -1) {
			names[folder] = append(names[folder], m[1])
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}

// law is a small docs/SAFETY.md, and order a small docs/SEMANTICS.md.
const (
	law   = "# Safety\n\n## S1. One\n\nText.\n\n## S2. Two\n\nNot built. Text.\n\n## S3. Three\n\nOf this: Not built.\n"
	order = "# Semantics\n\n## Part 1. A\n\n### Rule 1. B\n\n### Rule 2. C\n\n## Part 2. D\n\n### K1. E\n"
)

func TestCitationsAreFoundInTheirForms(t *testing.T) {
	const s, m = "SAF" + "ETY ", "SEMAN" + "TICS "
	cases := []struct {
		name, file, text string
		want             []string // rule:line
	}{
		{"in a comment", "server/a.go", "// f keeps it (" + s + "S1).\nfunc f() {}", []string{"SAFETY S1:2"}},
		{"a list", "server/a.go", "// f: " + s + "S1, S2 and S3.\nfunc f() {}", []string{"SAFETY S1:2", "SAFETY S2:2", "SAFETY S3:2"}},
		{"a list over a line", "server/a.go", "// f keeps it (" + s + "S1,\n// S2).\nfunc f() {}", []string{"SAFETY S1:2", "SAFETY S2:3"}},
		{"the number in the next line", "server/a.go", "func f() {\n\t// it is kept (" + s + "\n\t// S9), and more\n}", []string{"SAFETY S9:4"}},
		{"in brackets, with a reason", "server/a.go", "var a = 1 // not so (S2: why)", []string{"SAFETY S2:2"}},
		{"at the beginning", "server/a.go", "var (\n\t// S1, S3: what follows.\n\ta = 1\n)", []string{"SAFETY S1:3", "SAFETY S3:3"}},
		{"in a text", "server/a.go", `const a = "a rule (` + s + `S99)"`, []string{"SAFETY S99:2"}},
		{"a bucket in a comment", "server/a.go", "// f writes to S3 and to an S3-like store.\nfunc f() {}", nil},
		{"a bucket in a text", "server/a.go", `const a = "copy it (S3), or not"`, nil},
		{"a name of code", "server/a.go", "func S5() {}", nil},
		{"a planted fault", "scripts/mutants/a.go", `var a = []fault{{"S7", "a.go", "x", "y", suite{"store", "^TestA$"}}}`, []string{"SAFETY S7:2"}},
		{"such a text elsewhere", "server/a.go", `var a = []fault{{"S7", "a.go", "x", "y", suite{"store", "^TestA$"}}}`, nil},
		{"semantics", "server/a.go", "// f: " + m + "rule 2, " + m + "Part 1, " + m + "K1.\nfunc f() {}",
			[]string{"SEMANTICS rule 2:2", "SEMANTICS Part 1:2", "SEMANTICS K1:2"}},
		{"a rule of the planner", "server/plan/a.go", "// f is rule 2.\nfunc f() {}", []string{"SEMANTICS rule 2:2"}},
		{"rules of the planner", "server/plan/a.go", "// f stops members (rules 1 and 5).\nfunc f() {}", []string{"SEMANTICS rule 1:2", "SEMANTICS rule 5:2"}},
		{"a rule of another part", "agent/network/a.go", "// f adds rule 2 of the table.\nfunc f() {}", nil},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			cited, err := Citations(c.file, "package x\n"+c.text+"\n")
			if err != nil {
				t.Fatal(err)
			}
			if got := places(cited); !slices.Equal(got, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func places(cited []Citation) (out []string) {
	for _, c := range cited {
		out = append(out, c.Rule+":"+string(rune('0'+c.Line)))
	}
	return out
}

// Each wrong citation is planted alone beside right ones, and must be the only one found.
func TestWrongCitationsAreTold(t *testing.T) {
	const s, m = "SAF" + "ETY ", "SEMAN" + "TICS "
	const fault = `var a = []fault{{"S3", "a.go", "x", "y", suite{"store", "^TestA$"}}}`
	right := map[string]string{
		"server/a.go":          "// a keeps it (" + s + "S1, S2; " + m + "rule 2, " + m + "Part 2 and " + m + "K1).\nvar a = 1",
		"store/a_test.go":      "// " + s + "S1: it is seen.\nvar a = 1",
		"scripts/mutants/a.go": fault,
	}
	exists := func(s Suite) bool { return s == Suite{"store", "^TestA$"} }
	cases := []struct{ name, file, text, want string }{
		{"nothing is wrong", "server/b.go", "var b = 1", ""},
		{"no such rule", "server/b.go", "// b is so (" + s + "S4).\nvar b = 1", "server/b.go:2: cites SAFETY S4"},
		{"no such rule, in a list", "server/b.go", "// b is so (" + s + "S1,\n// S40).\nvar b = 1", "server/b.go:3: cites SAFETY S40"},
		{"no such rule, in brackets alone", "server/b.go", "var b = 1 // not so (S0: why)", "cites SAFETY S0"},
		{"no such rule, in a text", "server/b.go", `var b = "see ` + s + `S22"`, "cites SAFETY S22"},
		{"no such rule, at a test", "server/b_test.go", "// " + s + "S5: it is seen.\nvar b = 1", "cites SAFETY S5"},
		{"no such rule of semantics", "server/b.go", "// b is " + m + "rule 3.\nvar b = 1", "cites SEMANTICS rule 3"},
		{"no such part", "server/b.go", "// b is " + m + "Part 3.\nvar b = 1", "cites SEMANTICS Part 3"},
		{"no such kind", "server/b.go", "// b is " + m + "K2.\nvar b = 1", "cites SEMANTICS K2"},
		{"no such rule of the planner", "server/plan/b.go", "// b is rule 10.\nvar b = 1", "cites SEMANTICS rule 10"},
		{"a fault of no rule", "scripts/mutants/b.go", strings.ReplaceAll(fault, "S3", "S30"), "cites SAFETY S30"},
		{"a fault whose test is gone", "scripts/mutants/b.go", strings.ReplaceAll(fault, "TestA", "TestB"), "^TestB$ in store, which is not there"},
		{"a rule without a test", "store/a_test.go", "var a = 1", "SAFETY S1 is cited by no test"},
		{"a rule without a fault", "scripts/mutants/a.go", "var a = 1", "SAFETY S3 is cited by no test"},
	}
	safety, wrong := ReadSafety(law)
	semantics, wrong2 := ReadSemantics(order)
	wrong = append(wrong, wrong2...)
	if len(wrong) > 0 {
		t.Fatal(wrong)
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			tree := map[string]string{c.file: c.text}
			var cited []Citation
			for file, text := range right {
				if file != c.file {
					tree[file] = text
				}
			}
			for file, text := range tree {
				found, err := Citations(file, "package x\n"+text+"\n")
				if err != nil {
					t.Fatal(err)
				}
				cited = append(cited, found...)
			}
			got := append(UnknownCitations(slices.Concat(safety, semantics), cited), UntestedRules(safety, cited, exists)...)
			switch {
			case c.want == "" && len(got) == 0:
			case c.want == "" || len(got) != 1 || !strings.Contains(got[0], c.want):
				t.Errorf("got %q, want one with %q", got, c.want)
			}
		})
	}
}

func TestHeadingsFollowOneAnother(t *testing.T) {
	cases := []struct{ name, old, next, want string }{
		{"as they are", "", "", ""},
		{"a gap", "## S2. ", "## S4. ", "want SAFETY S2"},
		{"a double", "## S2. ", "## S1. ", "want SAFETY S2"},
		{"another form", "## S3. ", "## S3: ", "3 headings look like"},
		{"another depth", "## S3. ", "### S3. ", "3 headings look like"},
		{"a gap in rules", "### Rule 2. ", "### Rule 3. ", "want SEMANTICS rule 2"},
		{"another form of a part", "## Part 2. ", "## Part two ", "2 headings look like"},
		{"none", "### K1. ", "### ", "0 headings look like"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			_, got := ReadSafety(strings.Replace(law, c.old, c.next, 1))
			_, more := ReadSemantics(strings.Replace(order, c.old, c.next, 1))
			got = append(got, more...)
			switch {
			case c.want == "" && len(got) == 0:
			case c.want == "" || len(got) != 1 || !strings.Contains(got[0], c.want):
				t.Errorf("got %q, want one with %q", got, c.want)
			}
		})
	}
}
