package script

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestAStepIsJudgedByCodeAndWordsOfOneLine(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.txt")
	if err := os.WriteFile(path, []byte("# a remark\n$ stead get sets\ndb 3\n! gone\n? 2\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	steps, err := Read(path)
	if err != nil || len(steps) != 1 {
		t.Fatalf("got %+v, %v", steps, err)
	}
	for _, c := range []struct {
		code int
		text string
		want string // in what is wrong; empty: nothing is
	}{
		{2, "x\ndb of 3\n", ""},
		{2, "db\n3\n", `no line with "db 3"`},
		{2, "3 db\n", `no line with "db 3"`},
		{2, "db 3\ngone", `a line with "gone"`},
		{1, "db 3\n", "exit code 1, want 2"},
	} {
		got := steps[0].Judge(c.code, c.text)
		if c.want == "" && got != "" || !strings.Contains(got, c.want) {
			t.Errorf("%d %q: got %q, want %q", c.code, c.text, got, c.want)
		}
	}
	for _, bad := range []string{"", "words first\n", "$ rm x\n", "$\n", "$ stead x\n? y\n"} {
		if err := os.WriteFile(path, []byte(bad), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Read(path); err == nil {
			t.Errorf("%q was taken", bad)
		}
	}
}

func TestAStepIsRepeatedUntilItIsRight(t *testing.T) {
	runs := 0
	third := func(...string) (int, string) { runs++; return 3 - min(runs, 3), "" }
	if wrong := (Step{Again: true}).Run(third, time.Minute); wrong != "" || runs != 3 {
		t.Errorf("%d runs: %s", runs, wrong)
	}
	runs = 0
	if (Step{}).Run(third, time.Minute) == "" || runs != 1 {
		t.Errorf("a step that is not to be repeated ran %d times", runs)
	}
	runs = 0
	if (Step{Again: true, Code: 9}).Run(third, 0) == "" {
		t.Error("it was never right, and that was not said")
	}
}
