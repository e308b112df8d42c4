// Command table runs the benchmarks of the tree, one package after the other, and
// prints all figures in one table, each beside its floor of the same run:
//
//	go run ./test/bench/table
//	go run ./test/bench/table -guard           # or -guard -update
//
// With -guard it runs TestGuard alone, compares what is counted there, never times, with
// test/bench/guard.json, and exits 1 when something rose; with -update it writes that file.
//
// Rows that need root and containerd are left out with a word without root. It
// exits 1 when a benchmark fails or tells no more what a row wants of it. A missed
// goal fails nothing: on a shared machine one run proves little.
package main

import (
	"bytes"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"
)

// run is one `go test -bench`.
type run struct {
	pkg, bench, time string
	root             bool
}

// runs take about five minutes together.
var runs = []run{
	{"./test/bench", "Ready|EtcdStart|Resolvable", "5x", false},
	{"./test/bench", "Scale|Hollow", "1x", false},
	{"./server/engine", "Ready/(ordered|parallel)100$", "3x", false},
	{"./server/engine", "Step", "2000x", false},
	{"./server/plan", "Next", "100ms", false},
	{"./dnsd", ".", "500ms", false},
	{"./agent/network", "Attach|Service", "20x", true},
	{"./agent/probe", "Storm", "1x", false},
	{"./agent/runtime/containerdrt", "Start", "20x", true},
	{"./agent/runtime/containerdrt", "Probe", "200x", true},
	{"./test/e2e", ".", "1x", true},
}

func main() {
	counts := flag.Bool("guard", false, "compare what is counted with "+guardFile)
	update := flag.Bool("update", false, "with -guard: write "+guardFile)
	flag.Parse()
	if !*counts {
		everything()
		return
	}
	ok, err := guard(os.Stdout, *update)
	if err != nil {
		fmt.Fprintln(os.Stderr, "table:", err)
	}
	if err != nil || !ok {
		os.Exit(1)
	}
}

func everything() {
	began := time.Now()
	root := os.Getuid() == 0
	found, failed := figures{}, false
	for _, r := range runs {
		if r.root && !root {
			fmt.Printf("%-30s needs root, left out\n", r.pkg)
			continue
		}
		at := time.Now()
		text, err := r.do()
		found.read(text)
		fmt.Printf("%-30s %s\n", r.pkg, time.Since(at).Round(time.Second))
		if err != nil {
			failed = true
			fmt.Printf("FAIL: %v\n%s\n", err, text)
		}
	}
	fmt.Println()
	if err := print(os.Stdout, rows(), found); err != nil {
		fmt.Fprintln(os.Stderr, "table:", err)
		os.Exit(1)
	}
	fmt.Printf("\n%s, in %s\n", began.UTC().Format("2006-01-02 15:04 UTC"), time.Since(began).Round(time.Second))
	if gone := missing(rows(), found); root && len(gone) > 0 {
		failed = true
		fmt.Printf("FAIL: no benchmark told %s\n", strings.Join(gone, ", "))
	}
	if failed {
		os.Exit(1)
	}
}

// do runs it and returns what it printed.
func (r run) do() ([]byte, error) {
	cmd := exec.Command("go", "test", "-run", "^$", "-bench", r.bench, "-benchtime", r.time, "-timeout", "10m", r.pkg)
	if r.root {
		cmd.Env = append(os.Environ(), "STEAD_ROOT_TESTS=1")
	}
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, io.MultiWriter(&out, os.Stderr)
	err := cmd.Run()
	return out.Bytes(), err
}
