package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"sync"
	"time"
)

// Who hangs is seen, too: when the tests take so many times as long as without a mutant,
// and a minute more. Who takes all memory finds it bounded.
const (
	patience    = 20
	memoryBytes = 8 << 30
)

// program is a test program with all mutants in it.
type program struct {
	path string
	took time.Duration // with all of them asleep
}

// wake runs every mutant that was not seen before; it returns by whom each was seen, ""
// by nobody.
func (w *workshop) wake(list []mutant, programs map[string]program, known *results) ([]string, error) {
	by := make([]string, len(list))
	var group sync.WaitGroup
	turn := make(chan struct{}, w.parallel)
	var unkept error // written before its turn is given back
	begin, tried := time.Now(), 0
	for i, m := range list {
		if by[i] = known.by(m); by[i] != "" {
			continue
		}
		if tried++; tried%50 == 0 {
			fmt.Printf("%d of %d mutants after %.0f s\n", i+1, len(list), time.Since(begin).Seconds())
		}
		turn <- struct{}{}
		group.Go(func() {
			defer func() { <-turn }()
			if by[i] = w.seenBy(m, programs); by[i] == "" {
				fmt.Printf("nobody sees: %s:%d: %s\n", m.file, m.line, m.key())
			} else if err := known.add(m, by[i]); err != nil {
				unkept = err
			}
		})
	}
	group.Wait()
	return by, unkept
}

// seenBy is the folder of the first tests that fail with m awake.
func (w *workshop) seenBy(m mutant, programs map[string]program) string {
	own := path.Dir(m.file)
	for _, s := range append([]suite{{own, "."}}, judges...) {
		p := programs[s.folder]
		if _, ok := w.test(p.path, s, m.id, time.Minute+patience*p.took); !ok {
			return s.folder
		}
	}
	return ""
}

// test runs a test program with one mutant awake, or none (0).
func (w *workshop) test(program string, s suite, id int, limit time.Duration) (out string, ok bool) {
	ctx, cancel := context.WithTimeout(context.Background(), limit+time.Minute)
	defer cancel()
	bounded := fmt.Sprintf(`ulimit -v %d; exec "$@"`, memoryBytes>>10)
	c := exec.CommandContext(ctx, "bash", "-c", bounded, "bash",
		program, "-test.run", s.run, "-test.failfast", "-test.timeout", limit.String())
	c.Dir = filepath.Join(w.root, s.folder)
	c.Env = append(os.Environ(), fmt.Sprintf("STEAD_MUTANT=%d", id))
	text, err := c.CombinedOutput()
	return string(text), err == nil
}
