package main

import (
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func TestADifferenceIsWrittenAsDiffDoes(t *testing.T) {
	for name, c := range map[string]struct{ before, after, want string }{
		"the same":     {"a\nb\n", "a\nb\n", ""},
		"one line":     {"a\nb\nc\n", "a\nx\nc\n", "@@ -1,3 +1,3 @@\n a\n-b\n+x\n c\n"},
		"from nothing": {"", "a\nb\n", "@@ -0,0 +1,2 @@\n+a\n+b\n"},
		"to nothing":   {"a\n", "", "@@ -1,1 +0,0 @@\n-a\n"},
		"two hunks": {"1\n2\n3\n4\n5\n6\n7\n8\n9\n", "0\n2\n3\n4\n5\n6\n7\n8\n0\n",
			"@@ -1,4 +1,4 @@\n-1\n+0\n 2\n 3\n 4\n@@ -6,4 +6,4 @@\n 6\n 7\n 8\n-9\n+0\n"},
		"near changes are one hunk": {"1\n2\n3\n4\n5\n6\n7\n", "0\n2\n3\n4\n5\n6\n0\n",
			"@@ -1,7 +1,7 @@\n-1\n+0\n 2\n 3\n 4\n 5\n 6\n-7\n+0\n"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := unified(c.before, c.after); got != c.want {
				t.Errorf("got\n%swant\n%s", got, c.want)
			}
		})
	}
}

// TestPatchMakesOneTextOfTheOther: what any two texts differ by is understood by patch.
func TestPatchMakesOneTextOfTheOther(t *testing.T) {
	patch, err := exec.LookPath("patch")
	if err != nil {
		t.Skip("needs patch")
	}
	seed := uint64(1)
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, seed))
	text := func() string {
		var b strings.Builder
		for range 1 + random.IntN(30) {
			b.WriteString(string(rune('a'+random.IntN(5))) + "\n")
		}
		return b.String()
	}
	for range 20 {
		before, after := text(), text()
		path := filepath.Join(t.TempDir(), "text")
		if err := os.WriteFile(path, []byte(before), 0o600); err != nil {
			t.Fatal(err)
		}
		difference := unified(before, after)
		if difference == "" {
			continue
		}
		cmd := exec.CommandContext(t.Context(), patch, "--quiet", "--fuzz=0", path)
		cmd.Stdin = strings.NewReader("--- a\n+++ b\n" + difference)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s\n%s", err, out, difference)
		}
		if got, err := os.ReadFile(path); err != nil || string(got) != after {
			t.Fatalf("got %q, %v; want %q by\n%s", got, err, after, difference)
		}
	}
}
