package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

// A mutant that hangs is seen, too: when the tests take so many times as long as without a mutant,
// and some time more. One that takes all memory finds it bounded.
const (
	patience    = 8
	grace       = 20 * time.Second
	memoryBytes = 8 << 30
)

// program is a test program with all mutants in it.
type program struct {
	path string
	took time.Duration // with all of them asleep
	has  []string      // the targets that are linked into it
}

// wake runs every mutant that was not seen before; it returns which tests saw each,
// "" for none.
func (w *workshop) wake(list []mutant, programs map[string]program, known *results) ([]string, error) {
	by := make([]string, len(list))
	var group sync.WaitGroup
	turn := make(chan struct{}, w.parallel)
	var unkept error // written before its turn is given back
	begin, tried := time.Now(), 0
	for i, m := range list {
		by[i] = known.by(m)
		if by[i] != "" {
			continue
		}
		tried++
		if tried%50 == 0 {
			fmt.Printf("%d of %d mutants after %.0f s\n", i+1, len(list), time.Since(begin).Seconds())
		}
		turn <- struct{}{}
		group.Go(func() {
			defer func() { <-turn }()
			by[i] = w.seenBy(m, programs)
			if by[i] == "" {
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
		if !slices.Contains(p.has, own) {
			continue
		}
		if _, ok := w.test(p.path, s, m.id, grace+patience*p.took); !ok {
			return s.folder
		}
	}
	return ""
}

// test runs a test program with one mutant awake, or none (0).
func (w *workshop) test(program string, s suite, id int, limit time.Duration) (out string, ok bool) {
	ctx, cancel := context.WithTimeout(context.Background(), limit+time.Minute)
	defer cancel()
	// What is written to, not the address space: an embedded etcd maps more than there is.
	bounded := fmt.Sprintf(`ulimit -d %d; exec "$@"`, memoryBytes>>10)
	args := []string{"bash", "-c", bounded, "bash", program, "-test.run", s.run, "-test.failfast", "-test.timeout", limit.String()}
	env := append(os.Environ(), fmt.Sprintf("STEAD_MUTANT=%d", id))
	if os.Geteuid() == 0 { // tests that mount do so where nobody sees it, and it ends with them
		args = append([]string{"unshare", "--mount", "--propagation", "private"}, args...)
		env = append(env, "STEAD_ROOT_TESTS=1")
	}
	c := exec.CommandContext(ctx, args[0], args[1:]...)
	c.Dir, c.Env = filepath.Join(w.root, s.folder), env
	text, err := c.CombinedOutput()
	return string(text), err == nil
}

// results are the mutants that were seen, on disk: "folder of the test, tab, key" a line.
// A run that was broken off, or that tries survivors once more, goes on with them; who
// changed a target or took a test away begins anew.
type results struct {
	mu   sync.Mutex
	file *os.File
	seen map[string]string // by key
}

// openResults reads those at path, or begins anew.
func openResults(path string, goOn bool) (*results, error) {
	r := &results{seen: map[string]string{}}
	mode := os.O_CREATE | os.O_RDWR
	if !goOn {
		mode |= os.O_TRUNC
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(path, mode, 0o600)
	if err != nil {
		return nil, err
	}
	r.file = f
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		if by, key, ok := strings.Cut(lines.Text(), "\t"); ok {
			r.seen[key] = by
		}
	}
	return r, lines.Err()
}

func (r *results) by(m mutant) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.seen[m.key()]
}

func (r *results) add(m mutant, by string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.seen[m.key()] = by
	_, err := fmt.Fprintf(r.file, "%s\t%s\n", by, m.key())
	return err
}
