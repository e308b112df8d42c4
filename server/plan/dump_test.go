package plan

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stead-project/stead/records"
)

// TestAWorldThatWasSeenDecidesAsItDid: each file of testdata/seen has the line of a
// /debug/world, and beside it the plan in words.
func TestAWorldThatWasSeenDecidesAsItDid(t *testing.T) {
	files, err := filepath.Glob("testdata/seen/*.json")
	if err != nil || len(files) == 0 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".json"), func(t *testing.T) {
			line, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			w, err := ReadWorld(line)
			if err != nil {
				t.Fatal(err)
			}
			got, golden := brief(Next(w))+"\n", strings.TrimSuffix(file, ".json")+".plan"
			if *update {
				if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil || got != string(want) {
				t.Errorf("decided %s, not %s, %v", got, want, err)
			}
		})
	}
}

// numbered gives w ids of volumes as ReadWorld does.
func numbered(w World) World {
	made := 0
	w.VolumeID = func() records.VolumeID {
		made++
		return records.VolumeID(fmt.Sprint("volume-", made))
	}
	return w
}

// TestADumpedWorldDecidesAlike: over worlds of the kit that were drawn, and where they lead.
func TestADumpedWorldDecidesAlike(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 1))
	sets := []string{"ordered", "parallel max=2", "Recreate", "ordered partition=2"}
	for range 400 {
		line := fmt.Sprintf("%s current=h1 3 n1 n2 update=h3", sets[r.IntN(len(sets))])
		for i := range 3 {
			line += fmt.Sprintf(" %d:%s", i, states[r.IntN(len(states))])
		}
		w := world(t, line)
		for range 4 {
			w = numbered(w)
			text, err := w.Dump()
			if err != nil {
				t.Fatalf("%s: %v", line, err)
			}
			if bytes.ContainsRune(text, '\n') {
				t.Fatalf("%s: more than one line: %s", line, text)
			}
			again, err := ReadWorld(text)
			if err != nil {
				t.Fatalf("%s: %v", line, err)
			}
			want, got := Next(w), Next(again)
			if brief(want) != brief(got) || texts(want) != texts(got) {
				t.Fatalf("world %s\nwas  %s\nread %s\nfrom %s", line, brief(want), brief(got), text)
			}
			second, err := again.Dump()
			if err != nil || len(second) != len(text) { // maps have no order
				t.Fatalf("world %s\nwas  %s\nread %s, %v", line, text, second, err)
			}
			if len(want.Actions) == 0 {
				break
			}
			w = apply(numbered(w), want)
		}
	}
}

func TestALineThatIsNoWorldIsRefused(t *testing.T) {
	for _, line := range []string{"", "{", `{"Rev":"a"}`, "[]"} {
		if _, err := ReadWorld([]byte(line)); err == nil {
			t.Errorf("%q is read", line)
		}
	}
}
