package main

import (
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestKubernetesStandsBesideStead(t *testing.T) {
	k := kubernetes{hosts: 50}
	f := figures{}
	f.read([]byte(`
BenchmarkKubernetes/1000/ordered 1 44 ms/member 110 cpu-ms/member 700 server-MiB 900 µs/hop
BenchmarkScale/light/50x1000/ordered-2 1 2 ms/member 2 cpu-ms/member 90 server-MiB 800 µs/hop
BenchmarkKubernetes/1000/parallel 1 5 ms/member 10 cpu-ms/member 700 server-MiB 900 µs/hop
BenchmarkScale/agent/100x1000/parallel-2 1 0.2 ms/member 2 cpu-ms/member 120 server-MiB 800 µs/hop
`))
	var out strings.Builder
	if err := printBeside(&out, k.columns(), []int{1000}, f); err != nil {
		t.Fatal(err)
	}
	var lines []string
	for line := range strings.Lines(out.String()) {
		lines = append(lines, strings.Join(strings.Fields(line), " "))
	}
	for _, want := range []string{
		"Kubernetes, 50 nodes Stead, 50 light Stead, 1 light Stead, 1 agent Stead, 100 agent",
		"seconds 44 2 (22 x) not run not run not run",
		"seconds 5 not run not run not run 0.2 (25 x)",
		"processor seconds of control plane and store 110 2 (55 x) not run not run not run",
		"one hop meanwhile, µs 900 800 not run not run not run",
		"OrderedReady, 50 light 2 s 44 s 22 x ≥ 30 x missed",
		"OrderedReady, processor time, 50 light 2 s 110 s 55 x ≥ 50 x met",
		"Parallel, 100 agent 0.2 s 5 s 25 x ≥ 20 x met",
		"resident after parallel, 100 agent 126 MB 734 MB 5.83 x ≤ 110 MB missed",
	} {
		if !slices.Contains(lines, want) {
			t.Errorf("no line %q in:\n%s", want, out.String())
		}
	}
}

func TestTwoRunsAreToldByTheirMean(t *testing.T) {
	var f figures
	for _, text := range []string{"BenchmarkA 1 2 ms/member", "BenchmarkA 1 4 ms/member\nBenchmarkB 1 1 ms/member"} {
		f = f.mean(read(text))
	}
	if f["A"]["ms/member"] != 3 || f["B"]["ms/member"] != 1 {
		t.Fatalf("got %v", f)
	}
}

func TestBadSizesAreRefused(t *testing.T) {
	for _, k := range []kubernetes{{"", 50}, {"10,", 50}, {"0", 50}, {"ten", 50}, {"10", 0}} {
		if err := k.beside(io.Discard); err == nil {
			t.Errorf("%+v is taken", k)
		}
	}
}

func TestAMeasuredProgramThatFailsOrTellsNothingIsAnError(t *testing.T) {
	for _, script := range []string{"echo BenchmarkA 1 2 x; exit 1", "echo nothing"} {
		if f, err := measured(exec.CommandContext(t.Context(), "sh", "-c", script)); err == nil {
			t.Errorf("%s: got %v", script, f)
		}
	}
}

// A program that is asked to end has the time to end what it started.
func TestAMeasuredProgramIsAskedToEnd(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	dir := t.TempDir()
	cmd := exec.CommandContext(ctx, "sh", "-c", "trap 'echo ended >ended; exit 1' TERM; mkfifo begun && echo >begun; while :; do sleep 0.01; done")
	cmd.Dir = dir
	go func() {
		defer cancel()
		for t.Context().Err() == nil {
			if _, err := os.ReadFile(filepath.Join(dir, "begun")); err == nil { // waits for the writer
				return
			}
		}
	}()
	if f, err := measured(cmd); err == nil {
		t.Fatalf("got %v", f)
	}
	if _, err := os.Stat(filepath.Join(dir, "ended")); err != nil {
		t.Fatal(err)
	}
}
