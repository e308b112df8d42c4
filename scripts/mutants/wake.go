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

// patience is how long the tests of one mutant may take: who hangs is seen, too.
const patience = 10 * time.Minute

// wake runs every mutant; it returns by whom each was seen, "" by nobody.
func (w *workshop) wake(list []mutant, programs map[string]string) []string {
	by := make([]string, len(list))
	var group sync.WaitGroup
	turn := make(chan struct{}, w.parallel)
	begin := time.Now()
	for i, m := range list {
		turn <- struct{}{}
		group.Go(func() {
			defer func() { <-turn }()
			own := path.Dir(m.file)
			for _, s := range append([]suite{{own, "."}}, judges...) {
				if _, ok := w.test(programs[s.folder], s, m.id); !ok {
					by[i] = s.folder
					return
				}
			}
			fmt.Printf("nobody sees: %s:%d: %s\n", m.file, m.line, m.key())
		})
		if i%50 == 49 {
			fmt.Printf("%d of %d mutants after %.0f s\n", i+1, len(list), time.Since(begin).Seconds())
		}
	}
	group.Wait()
	return by
}

// test runs a test program with one mutant awake.
func (w *workshop) test(program string, s suite, id int) (out string, ok bool) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*patience)
	defer cancel()
	c := exec.CommandContext(ctx, program, "-test.run", s.run, "-test.failfast", "-test.timeout", patience.String())
	c.Dir = filepath.Join(w.root, s.folder)
	c.Env = append(os.Environ(), fmt.Sprintf("STEAD_MUTANT=%d", id))
	text, err := c.CombinedOutput()
	return string(text), err == nil
}
