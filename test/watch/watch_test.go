package watch

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"gopkg.in/yaml.v3"

	"github.com/stead-project/stead/spec/causes"
)

const (
	root = "../.."
	site = "https://github.com/stead-project/stead/blob/main/"
)

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, path))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// found are the first groups of a pattern in text.
func found(text, pattern string) map[string]bool {
	all := map[string]bool{}
	for _, m := range regexp.MustCompile(pattern).FindAllStringSubmatch(text, -1) {
		all[m[1]] = true
	}
	return all
}

// documented are the metrics of docs/METRICS.md.
func documented(t *testing.T) map[string]bool {
	all := map[string]bool{}
	for line := range strings.Lines(read(t, "docs/METRICS.md")) {
		if first, _, ok := strings.Cut(strings.TrimPrefix(line, "| `stead_"), " | "); ok && strings.HasPrefix(line, "| `stead_") {
			maps.Copy(all, found("`stead_"+first, "`(stead_[a-z_]+)"))
		}
	}
	return all
}

func TestEveryMetricIsDocumented(t *testing.T) {
	docs, code := documented(t), map[string]bool{}
	for _, folder := range []string{"server", "agent"} {
		err := filepath.WalkDir(filepath.Join(root, folder), func(path string, _ fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			text, err := os.ReadFile(path)
			maps.Copy(code, found(string(text), `NewDesc\("(stead_[a-z_]+)"`))
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if len(docs) < 30 || !maps.Equal(docs, code) {
		t.Errorf("METRICS.md has %v\nthe code has %v", slices.Sorted(maps.Keys(docs)), slices.Sorted(maps.Keys(code)))
	}
}

type alert struct {
	Name        string `yaml:"alert"`
	Expr        string
	For         string
	Labels      map[string]string
	Annotations map[string]string
}

func alerts(t *testing.T) (all []alert) {
	t.Helper()
	var file struct{ Groups []struct{ Rules []alert } }
	if err := yaml.Unmarshal([]byte(read(t, "deploy/alerts.yaml")), &file); err != nil {
		t.Fatal(err)
	}
	for _, g := range file.Groups {
		all = append(all, g.Rules...)
	}
	if len(all) < 15 {
		t.Fatalf("only %d alerts were found", len(all))
	}
	return all
}

// unknown are the metrics of an expression that no part of Stead has.
func unknown(expr string, docs map[string]bool) (names []string) {
	for name := range found(expr, `\b(stead_[a-z_]+)`) {
		if base := regexp.MustCompile("_(bucket|sum|count)$").ReplaceAllString(name, ""); !docs[name] && !docs[base] {
			names = append(names, name)
		}
	}
	return names
}

func TestEveryAlertSaysWhatToDo(t *testing.T) {
	docs := documented(t)
	for _, a := range alerts(t) {
		if names := unknown(a.Expr, docs); len(names) > 0 {
			t.Errorf("%s asks for %v, which METRICS.md does not have", a.Name, names)
		}
		if a.For == "" || a.Labels["severity"] != "critical" && a.Labels["severity"] != "warning" {
			t.Errorf("%s: for %q, severity %q", a.Name, a.For, a.Labels["severity"])
		}
		if a.Annotations["summary"] == "" || len(a.Annotations["description"]) < 40 {
			t.Errorf("%s has no summary, or no description of what to do", a.Name)
		}
		page, anchor, ok := strings.Cut(strings.TrimPrefix(a.Annotations["runbook_url"], site), "#")
		if !ok || !anchors(read(t, page))[anchor] {
			t.Errorf("%s: its runbook %q is no heading there", a.Name, a.Annotations["runbook_url"])
		}
	}
}

// anchors are the links that a page's headings have on GitHub.
func anchors(page string) map[string]bool {
	all := map[string]bool{}
	for heading := range found(page, `(?m)^#+ (.+)$`) {
		heading = regexp.MustCompile("[^a-z0-9 _-]").ReplaceAllString(strings.ToLower(heading), "")
		all[strings.ReplaceAll(heading, " ", "-")] = true
	}
	return all
}

// What passes by itself is no reason to wake anybody, and all else is.
func TestTheAlertOfBlockedMembersLeavesOutWhatPasses(t *testing.T) {
	var left map[string]bool
	for _, a := range alerts(t) {
		if a.Name == "SteadMemberBlocked" {
			list := regexp.MustCompile(`reason!~"([^"]*)"`).FindStringSubmatch(a.Expr)[1]
			left = found(list, "([A-Za-z]+)")
		}
	}
	want := map[string]bool{string(causes.BlockedPaused): true} // somebody asked for that
	files, err := filepath.Glob(filepath.Join(root, "spec/causes/*.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for word := range found(string(text), `"([A-Z][A-Za-z]+)"`) {
			if causes.BlockedReason(word).ComesByItself() {
				want[word] = true
			}
		}
	}
	if !maps.Equal(left, want) {
		t.Errorf("the alert leaves out %v, and it should %v", slices.Sorted(maps.Keys(left)), slices.Sorted(maps.Keys(want)))
	}
}

// expressions are what the dashboard asks Prometheus, with its variables filled in.
func expressions(t *testing.T) (all []string) {
	t.Helper()
	var dashboard struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
	}
	if err := json.Unmarshal([]byte(read(t, "deploy/dashboard.json")), &dashboard); err != nil {
		t.Fatal(err)
	}
	for _, p := range dashboard.Panels {
		for _, target := range p.Targets {
			all = append(all, strings.NewReplacer("$cluster", ".*", "$__rate_interval", "5m").Replace(target.Expr))
		}
	}
	if len(all) < 20 {
		t.Fatalf("only %d expressions were found", len(all))
	}
	return all
}

func TestTheDashboardAsksForWhatIsThere(t *testing.T) {
	docs, asked := documented(t), ""
	for _, expr := range expressions(t) {
		asked += expr + "\n"
		if names := unknown(expr, docs); len(names) > 0 {
			t.Errorf("%s: METRICS.md does not have %v", expr, names)
		}
	}
	for name := range docs {
		if !strings.Contains(asked, name) {
			t.Errorf("the dashboard does not show %s", name)
		}
	}
}

// promtool runs Prometheus' own tool in a folder, and returns what it says, and whether it found a fault.
func promtool(t *testing.T, dir string, args ...string) (said string, fault error) {
	t.Helper()
	tool, err := exec.LookPath("promtool")
	if err != nil {
		if tool, err = filepath.Abs(filepath.Join(root, ".cache/tools/usr/bin/promtool")); err == nil {
			_, err = os.Stat(tool)
		}
	}
	if err != nil {
		t.Skip("no Prometheus of Debian: make conformance unpacks it")
	}
	c := exec.CommandContext(t.Context(), tool, args...)
	c.Dir = dir
	out, fault := c.CombinedOutput()
	return string(out), fault
}

func mustPass(t *testing.T, dir string, args ...string) {
	t.Helper()
	if said, fault := promtool(t, dir, args...); fault != nil {
		t.Errorf("promtool %v: %v\n%s", args, fault, said)
	}
}

func TestAlertsFireAndStaySilent(t *testing.T) {
	mustPass(t, filepath.Join(root, "deploy"), "check", "rules", "--lint=all", "--lint-fatal", "alerts.yaml")
	mustPass(t, filepath.Join(root, "deploy"), "test", "rules", "alerts_test.yaml")
}

func TestTheDashboardsExpressionsAreParsed(t *testing.T) {
	rules := &strings.Builder{}
	rules.WriteString("groups:\n- name: dashboard\n  rules:\n")
	for i, expr := range expressions(t) {
		fmt.Fprintf(rules, "  - {record: 'panel:%d', expr: %q}\n", i, expr)
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "rules.yaml"), []byte(rules.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	mustPass(t, dir, "check", "rules", "--lint=none", "rules.yaml")
}

// Each alert has tests that see when it always fires, never, or at once.
func TestTheTestsOfAlertsSeeFaults(t *testing.T) {
	tests := []byte(read(t, "deploy/alerts_test.yaml"))
	for name, fault := range map[string][2]string{
		"always":  {`(?m)^        expr: .*`, "        expr: vector(1)"},
		"never":   {`(?m)^        expr: .*`, "        expr: vector(1) > 1"},
		"at once": {`(?m)^        for: .*`, "        for: 0s"},
	} {
		dir := t.TempDir()
		rules := regexp.MustCompile(fault[0]).ReplaceAllString(read(t, "deploy/alerts.yaml"), fault[1])
		if err := errors.Join(os.WriteFile(filepath.Join(dir, "alerts.yaml"), []byte(rules), 0o600), os.WriteFile(filepath.Join(dir, "alerts_test.yaml"), tests, 0o600)); err != nil {
			t.Fatal(err)
		}
		said, _ := promtool(t, dir, "test", "rules", "alerts_test.yaml") // what it says tells more than that it failed
		for _, a := range alerts(t) {
			if !strings.Contains(said, fmt.Sprintf(`alertname=\"%s\"`, a.Name)) {
				t.Errorf("no test sees that %s fires %s", a.Name, name)
			}
		}
	}
}
