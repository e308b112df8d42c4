// Command mutants asks whether the tests see what they guard. It puts into the packages
// that keep the promises every condition negated, and every side of an && or || dropped, all asleep
// in one build; then it wakes one after the other and runs the package's tests, and the
// short simulation and model check when those pass. A mutant that no test sees must
// stand in survivors/ with the reason. Then it plants faults of SAFETY (planted.go),
// each of which the test named with it must see.
package main

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// targets are the packages whose conditions are changed.
var targets = []string{
	"server/plan", "server/proof", "server/place", "agent/step", "agent/ledger",
	"server/engine", "server/dispatch", "agent/worker", "agent/volume",
}

// judges are the tests that look at what a package's own do not see.
var judges = []suite{
	{"test/sim", "^(TestRuns|TestKeptRuns)$"},
	{"test/sim/model", "^TestNoInterleavingBreaksAPromise$"},
}

// suite are tests of one package.
type suite struct{ folder, run string }

func main() {
	only := flag.String("only", "", "a package (plan, engine, worker), a file of one (plan/fate.go), planted, planted/FILE or planted/FOLDER, or a rule of SAFETY (S11); empty: all")
	goOn := flag.Bool("continue", false, "go on with the results of earlier runs: wake only those that nobody has seen yet")
	sample := flag.Int("every", 1, "wake every so-manieth mutant")
	own := flag.Bool("own", false, "ask the package's own tests only, not the simulation: quicker while tests are written")
	parallel := flag.Int("parallel", 4, "how many at once; some only wait")
	flag.Parse()
	if *own {
		judges = nil
	}
	root, err := os.Getwd()
	if err == nil {
		err = run(root, *only, *sample, *parallel, *goOn)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(root, only string, every, parallel int, goOn bool) error {
	dir, err := os.MkdirTemp("", "stead-mutants-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	w := &workshop{root: root, dir: dir, overlay: map[string]string{}, parallel: parallel}
	bad := 0
	planted := chosen(only)
	if only == "" || len(planted) == 0 {
		known, err := openResults(filepath.Join(root, ".cache/mutants.seen"), goOn)
		if err != nil {
			return err
		}
		defer known.file.Close()
		unexplained, err := w.conditions(only, every, known)
		if err != nil {
			return err
		}
		bad += unexplained
	}
	if len(planted) > 0 {
		bad += w.planted(planted)
	}
	if bad > 0 {
		return fmt.Errorf("%d mutants or faults are not seen by any test", bad)
	}
	return nil
}

// workshop is where changed files and test programs lie.
type workshop struct {
	root, dir string
	overlay   map[string]string // path in the tree -> changed file
	parallel  int
}

// put lays a changed or new file over the tree.
func (w *workshop) put(file string, content []byte) error {
	path := filepath.Join(w.dir, fmt.Sprintf("%03d-%s", len(w.overlay), filepath.Base(file)))
	w.overlay[filepath.Join(w.root, file)] = path
	return os.WriteFile(path, content, 0o600)
}

// overlayFile is what the go command takes by -overlay.
func (w *workshop) overlayFile(name string, replace map[string]string) (string, error) {
	doc, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	path := filepath.Join(w.dir, name)
	return path, os.WriteFile(path, doc, 0o600)
}

// build makes the test program of a folder.
func (w *workshop) build(folder, overlay string) (string, error) {
	out := filepath.Join(w.dir, strings.ReplaceAll(folder, "/", "-")+".test")
	c := exec.Command("go", "test", "-c", "-vet=off", "-overlay", overlay, "-o", out, "./"+folder)
	c.Dir = w.root
	if text, err := c.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build %s with mutants: %w\n%s", folder, err, text)
	}
	return out, nil
}

// links are the targets that the test program of a folder has in it.
func (w *workshop) links(folder string) ([]string, error) {
	c := exec.Command("go", "list", "-test", "-deps", "-f", "{{.ImportPath}}", "./"+folder)
	c.Dir = w.root
	text, err := c.Output()
	if err != nil {
		return nil, fmt.Errorf("list what %s is made of: %w", folder, err)
	}
	deps := strings.Fields(string(text))
	return slices.DeleteFunc(slices.Clone(targets), func(t string) bool {
		return !slices.ContainsFunc(deps, func(d string) bool { return strings.HasSuffix(d, "/"+t) })
	}), nil
}

// conditions wakes the mutants one by one; it returns how many survive unexplained.
func (w *workshop) conditions(only string, every int, known *results) (int, error) {
	r := &rewriter{seen: map[string]int{}}
	var folders []string
	for _, t := range targets {
		files, err := filepath.Glob(filepath.Join(w.root, t, "*.go"))
		if err != nil {
			return 0, err
		}
		for _, f := range files {
			if strings.HasSuffix(f, "_test.go") || filepath.Base(f) == "doc.go" {
				continue
			}
			rel, _ := filepath.Rel(w.root, f)
			text, err := r.rewrite(w.root, filepath.ToSlash(rel))
			if err == nil {
				err = w.put(rel, text)
			}
			if err != nil {
				return 0, err
			}
		}
		if err := w.put(filepath.Join(t, "mutant_hook.go"), fmt.Appendf(nil, hook, filepath.Base(t))); err != nil {
			return 0, err
		}
		if only == "" || filepath.Base(t) == strings.Split(only, "/")[0] {
			folders = append(folders, t)
		}
	}
	var list []mutant
	for i, m := range r.mutants {
		if i%every == 0 && (only == "" || strings.Contains(m.file+"/", "/"+only+"/")) {
			list = append(list, m)
		}
	}
	if len(list) == 0 {
		return 0, fmt.Errorf("no mutant is in %q", only)
	}
	fmt.Printf("%d of %d mutants\n", len(list), len(r.mutants))
	programs, err := w.programs(folders)
	if err != nil {
		return 0, err
	}
	by, err := w.wake(list, programs, known)
	if err != nil {
		return 0, err
	}
	return w.tell(list, by), nil
}

// programs builds every test program once, with all mutants in it, asleep; awake none
// may fail.
func (w *workshop) programs(folders []string) (map[string]program, error) {
	overlay, err := w.overlayFile("all.json", w.overlay)
	if err != nil {
		return nil, err
	}
	programs, all := map[string]program{}, judges
	for _, f := range folders {
		all = append([]suite{{f, "."}}, all...)
	}
	for _, s := range all {
		file, err := w.build(s.folder, overlay)
		if err != nil {
			return nil, err
		}
		links, err := w.links(s.folder)
		if err != nil {
			return nil, err
		}
		begin := time.Now()
		if out, ok := w.test(file, s, 0, time.Hour); !ok {
			return nil, fmt.Errorf("%s fails without any mutant:\n%s", s.folder, out)
		}
		programs[s.folder] = program{file, time.Since(begin), links}
	}
	return programs, nil
}

// tell prints what became of the mutants, and counts survivors without a reason.
func (w *workshop) tell(list []mutant, by []string) (unexplained int) {
	reasons := map[string]string{}
	for _, t := range targets {
		if err := readSurvivors(filepath.Join(w.root, "scripts/mutants/survivors", path.Base(t)+".txt"), reasons); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
	}
	scores, all := map[string]*score{}, score{}
	for _, t := range targets {
		scores[t] = &score{}
	}
	for i, m := range list {
		for _, sc := range []*score{scores[path.Dir(m.file)], &all} {
			sc.mutants++
			if by[i] != "" {
				sc.seen++
			}
			if by[i] != "" && by[i] != path.Dir(m.file) {
				sc.judges++
			}
		}
		why := reasons[m.key()]
		switch {
		case by[i] != "" && why != "":
			fmt.Printf("is seen after all (take it off the list): %s\n", m.key())
		case by[i] == "" && why == "":
			unexplained++
			fmt.Printf("survives: %s:%d: %s\n    NO REASON\n", m.file, m.line, m.key())
		case by[i] == "":
			fmt.Printf("survives: %s:%d: %s\n    %s\n", m.file, m.line, m.key(), why)
		}
	}
	whole := true // the bar is for all of them: few have no weight
	for _, t := range targets {
		whole = whole && scores[t].mutants > 0
		if scores[t].mutants > 0 {
			fmt.Printf("%-14s %s\n", t, scores[t])
		}
	}
	fmt.Printf("%-14s %s; %d survive without a reason\n", "all", all, unexplained)
	if whole && 100*all.seen < 95*all.mutants {
		unexplained = max(unexplained, 1)
	}
	return unexplained
}

// score counts mutants: judges is how many of the seen only the simulation and the
// model check have seen.
type score struct{ mutants, seen, judges int }

func (s score) String() string {
	return fmt.Sprintf("%d of %d mutants are seen (%.1f %%), %d of them by the simulation alone",
		s.seen, s.mutants, 100*float64(s.seen)/max(1, float64(s.mutants)), s.judges)
}

// readSurvivors adds the "key" lines of a file, each followed by an indented reason.
func readSurvivors(path string, reasons map[string]string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	key := ""
	for lines := bufio.NewScanner(f); lines.Scan(); {
		line := lines.Text()
		switch {
		case strings.HasPrefix(line, "#") || strings.TrimSpace(line) == "":
		case line[0] == ' ' || line[0] == '\t':
			reasons[key] = strings.TrimSpace(reasons[key] + " " + strings.TrimSpace(line))
		default:
			key = line
		}
	}
	return nil
}
