package manifest

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// observation is where it is seen that fields are honoured.
type observation struct {
	folder, test string            // of the test
	why          string            // there is none: why
	words        map[string]string // of the fields below it: how the test calls them
}

// String is for a user: what was looked at.
func (o observation) String() string {
	switch {
	case o.test == "":
		return o.why
	case slices.Contains([]string{"test/e2e", "agent/runtime/containerdrt"}, o.folder):
		return "`" + o.test + "`, in a container"
	case o.folder == "agent/network":
		return "`" + o.test + "`, on a host"
	}
	return "`" + o.test + "` of `" + o.folder + "`, without a container"
}

// observations reads testdata/observed.txt: in their order, and by TYPE.FIELD or path the number of one.
func observations(t *testing.T) (list []observation, of map[string]int) {
	t.Helper()
	text, err := os.ReadFile("testdata/observed.txt")
	if err != nil {
		t.Fatal(err)
	}
	of = map[string]int{}
	for line := range strings.Lines(string(text)) {
		line = strings.TrimRight(line, "\n")
		switch {
		case line == "" || line[0] == '#':
		case line[0] == '\t':
			for _, name := range strings.Fields(line) {
				name, word, other := strings.Cut(name, "=")
				if _, word2 := split(name); !other {
					word = word2
				}
				list[len(list)-1].words[name] = word
				if _, twice := of[name]; twice {
					t.Errorf("observed.txt has %s twice", name)
				}
				of[name] = len(list) - 1
			}
		case strings.HasPrefix(line, "- "):
			list = append(list, observation{why: line[2:], words: map[string]string{}})
		default:
			folder, test, _ := strings.Cut(line, " ")
			list = append(list, observation{folder: folder, test: test, words: map[string]string{}})
		}
	}
	return list, of
}

// TestEveryHonouredFieldIsObserved: testdata/observed.txt names a test for each field that is honoured,
// or says that there is none. The test is there, and its file, or one that it reads, has the field's name.
func TestEveryHonouredFieldIsObserved(t *testing.T) {
	list, of := observations(t)
	used := map[string]bool{}
	all, _ := verdicts()
	for _, f := range kubeFields() {
		if !slices.ContainsFunc(all[f.kind+" "+f.path], func(o outcome) bool { return o.verdict == honoured }) {
			continue
		}
		if _, ok := of[f.path]; ok {
			used[f.path] = true
		} else if _, ok := of[f.of]; ok {
			used[f.of] = true
		} else {
			used[f.of] = true
			t.Errorf("%s %s is honoured, and observed.txt does not say where %s is observed", f.kind, f.path, f.of)
			of[f.of] = -1 // said once
		}
	}
	texts := map[int]string{}
	for i, o := range list {
		if o.test != "" {
			texts[i] = textOfTest(t, o)
		}
	}
	for name, i := range of {
		switch {
		case !used[name]:
			t.Errorf("observed.txt has %s, which is not honoured: remove it there", name)
		case i >= 0 && list[i].test != "" && !strings.Contains(strings.ToLower(texts[i]), strings.ToLower(list[i].words[name])):
			t.Errorf("observed.txt says that %s observes %s, and its folder does not have that word", list[i].test, name)
		}
	}
}

// textOfTest is the file of a test, and the files of its folder that end in .txt or .yaml or that
// no test is in. It fails when the test is not there.
func textOfTest(t *testing.T, o observation) string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("..", o.folder, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	declared := regexp.MustCompile(fmt.Sprintf(`(?m)^func %s\(t \*testing\.T\)`, o.test))
	all, found := "", false
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if declared.Match(text) {
			found = true
			all += string(text)
		} else if !strings.Contains(string(text), "\nfunc Test") {
			all += string(text)
		}
	}
	if !found {
		t.Errorf("observed.txt names %s of %s, which is not there", o.test, o.folder)
	}
	return all
}
