package plan

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the scenarios' pictures anew, to be read in review")

// A scenario is a text to be read aloud. Lines that begin with "> " are commands, given
// one after the other and then carried out until nothing changes; the indented lines
// after them are what happened, in order, and the picture at rest. All else is a remark.
//
// The commands are those of stage.command. The stage is a tiny world: every life is
// ready one step after it was begun, unless its revision or the member is bad, and over
// one step after it was told to stop; a silent node does and tells nothing.
func TestScenarios(t *testing.T) {
	files, err := filepath.Glob("testdata/scenarios/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no scenarios: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			got := play(t, string(want))
			if bytes.Equal(want, got) {
				return
			}
			if *update {
				if err := os.WriteFile(file, got, 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			t.Errorf("it went otherwise; got\n%s\n%s", got, firstDifference(string(want), string(got)))
		})
	}
}

func firstDifference(want, got string) string {
	a, b := strings.Split(want, "\n"), strings.Split(got, "\n")
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return fmt.Sprintf("line %d\ngot  %s\nwant %s", i+1, b[i], a[i])
		}
	}
	return "one ends before the other"
}

// play carries a scenario out, and writes it with what happened.
func play(t *testing.T, text string) []byte {
	var out bytes.Buffer
	s := &stage{t: t}
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	for i, line := range lines {
		if strings.HasPrefix(line, "  ") {
			continue // of the last time
		}
		fmt.Fprintln(&out, line)
		command, is := strings.CutPrefix(line, "> ")
		if !is {
			continue
		}
		s.command(strings.Fields(command))
		if i+1 == len(lines) || !strings.HasPrefix(lines[i+1], "> ") {
			s.rest(&out)
		}
	}
	return out.Bytes()
}
