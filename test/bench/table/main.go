// Command table runs the benchmarks of the tree, one package after the other, and
// prints all figures in one table, each beside its floor of the same run:
//
//	go run ./test/bench/table
//	go run ./test/bench/table -guard           # or -guard -update
//	go run ./test/bench/table -kubernetes      # or -kubernetes -sizes 10,100 -hosts 5
//
// With -guard it runs TestGuard alone, compares what is counted there, never times, with
// test/bench/guard.json, and exits 1 when something rose; with -update it writes that file.
// With -kubernetes it builds the control plane of Kubernetes (test/bench/kubernetes), does the same to a StatefulSet there and to a
// set of Stead's, in turn, and prints both side by side.
//
// Benchmarks that need root, or a program that is not there, are left out with a line that says so. It
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
	// needs are the programs that it needs, and root; none: neither.
	needs []string
	// tells are the benchmarks that a run with needs tells of.
	tells []string
}

// containerPrograms are what starting containers needs.
var containerPrograms = []string{"containerd", "ctr", "runc"}

// runs take about five minutes together.
var runs = []run{
	{"./test/bench", "Ready|EtcdStart|Resolvable", "5x", nil, nil},
	{"./test/bench", "Scale|Hollow", "1x", nil, nil},
	{"./server/engine", "Ready/(ordered|parallel)100$", "3x", nil, nil},
	{"./server/engine", "Step", "2000x", nil, nil},
	{"./server/plan", "Next", "100ms", nil, nil},
	{"./dnsd", ".", "500ms", nil, nil},
	{"./agent/network", "Attach|Service", "20x", []string{"ip"}, []string{"Attach", "Service"}},
	{"./agent/probe", "Storm", "1x", nil, nil},
	{"./agent/move/peer", "Move/256MiB", "1x", nil, nil},
	{"./agent/runtime/containerdrt", "Start", "20x", containerPrograms, []string{"Start"}},
	{"./agent/runtime/containerdrt", "Probe", "200x", containerPrograms, []string{"Probe"}},
	{"./test/e2e", ".", "1x", append([]string{"ip", "nsenter"}, containerPrograms...), []string{"Members", "Dev"}},
}

func main() {
	counts := flag.Bool("guard", false, "compare what is counted with "+guardFile)
	update := flag.Bool("update", false, "with -guard: write "+guardFile)
	var k kubernetes
	beside := flag.Bool("kubernetes", false, "run Kubernetes beside Stead")
	flag.StringVar(&k.sizes, "sizes", "100,1000", "with -kubernetes: members of a set")
	flag.IntVar(&k.hosts, "hosts", 50, "with -kubernetes: nodes")
	flag.Parse()
	var ok bool
	var err error
	switch {
	case *beside:
		err = k.beside(os.Stdout)
		ok = err == nil
	case *counts:
		ok, err = guard(os.Stdout, *update)
	default:
		everything()
		return
	}
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
	var silent []string // benchmarks that were left out
	for _, r := range runs {
		if why := r.lacks(root, exec.LookPath); why != "" {
			fmt.Printf("%-30s needs %s: %s left out\n", r.pkg, why, strings.Join(r.tells, ", "))
			silent = append(silent, r.tells...)
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
	if gone := missing(rows(), found, silent); len(gone) > 0 {
		failed = true
		fmt.Printf("FAIL: no benchmark told %s\n", strings.Join(gone, ", "))
	}
	if failed {
		os.Exit(1)
	}
}

// lacks is what the run needs and is not there; "": nothing.
func (r *run) lacks(root bool, lookPath func(string) (string, error)) string {
	if len(r.needs) > 0 && !root {
		return "root"
	}
	var gone []string
	for _, program := range r.needs {
		if _, err := lookPath(program); err != nil {
			gone = append(gone, program)
		}
	}
	return strings.Join(gone, ", ")
}

// do runs it and returns what it printed.
func (r run) do() ([]byte, error) {
	cmd := exec.Command("go", "test", "-run", "^$", "-bench", r.bench, "-benchtime", r.time, "-timeout", "30m", r.pkg)
	if len(r.needs) > 0 {
		cmd.Env = append(os.Environ(), "STEAD_ROOT_TESTS=1")
	}
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, io.MultiWriter(&out, os.Stderr)
	err := cmd.Run()
	return out.Bytes(), err
}
