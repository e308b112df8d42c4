package main

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
)

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
