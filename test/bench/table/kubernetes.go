package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"
)

const (
	programs = ".cache/kubernetes"
	// buildBytes is what building Kubernetes takes of a disk, with its sources.
	buildBytes = 4 << 30
)

// kubernetes are the flags of `make bench-kubernetes`.
type kubernetes struct {
	sizes string // members, such as 100,1000
	hosts int    // of Kubernetes, and light ones
}

// column is who is measured.
type column struct {
	title string
	bench func(members int) string // its phases are below it
	// phases are what is done to it; nil: all.
	phases []string
	run    func(ctx context.Context, members int) *exec.Cmd
}

// columns are Kubernetes, and Stead with each kind of nodes.
func (k *kubernetes) columns() []column {
	all := []column{{
		title: fmt.Sprintf("Kubernetes, %d nodes", k.hosts),
		bench: func(members int) string { return fmt.Sprint("Kubernetes/", members) },
		run: func(ctx context.Context, members int) *exec.Cmd {
			return exec.CommandContext(ctx, filepath.Join(programs, "kubernetes"), "-programs", programs, "-members", strconv.Itoa(members), "-hosts", strconv.Itoa(k.hosts))
		},
	}}
	for _, s := range []struct {
		kind   string
		hosts  int
		phases []string
	}{{"light", k.hosts, nil}, {"light", 1, nil}, {"agent", 1, nil}, {"agent", realAgents, []string{"parallel", "parallel-to-zero"}}} {
		all = append(all, column{
			title: fmt.Sprintf("Stead, %d %s", s.hosts, s.kind), phases: s.phases,
			bench: func(members int) string { return fmt.Sprintf("Scale/%s/%dx%d", s.kind, s.hosts, members) },
			run: func(ctx context.Context, members int) *exec.Cmd {
				program, err := filepath.Abs(filepath.Join(programs, "bench.test"))
				cmd := exec.CommandContext(ctx, program, "-test.run", "^$", "-test.bench", "^BenchmarkScale$", "-test.benchtime", "1x", "-test.timeout", "2h")
				cmd.Dir, cmd.Err = "test/bench", errors.Join(cmd.Err, err)
				cmd.Env = append(os.Environ(), fmt.Sprintf("STEAD_SCALE=%dx%d", s.hosts, members), "STEAD_NODES="+s.kind, "STEAD_PHASES="+strings.Join(s.phases, ","))
				return cmd
			},
		})
	}
	return all
}

// realAgents is of how many real agents the goals speak. All on one machine's processors, each of them taking each
// change of a set, they would need half an hour for what is done one by one; their goals are of Parallel alone.
const realAgents = 100

// beside runs Kubernetes between two runs of Stead, for each size, and prints all in one table.
func (k *kubernetes) beside(w io.Writer) error {
	var sizes []int
	for text := range strings.SplitSeq(k.sizes, ",") {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 {
			return fmt.Errorf("-sizes %q: write numbers of members, such as 100,1000", k.sizes)
		}
		sizes = append(sizes, n)
	}
	if k.hosts < 1 {
		return fmt.Errorf("-hosts %d: there must be one at least", k.hosts)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if why, err := build(ctx, w); err != nil || why != "" {
		if why != "" {
			fmt.Fprintf(w, "%s: the comparison with Kubernetes is left out\n", why)
		}
		return err
	}
	began := time.Now()
	columns := k.columns()
	found := make([]figures, len(columns)) // means of all runs of each
	failed := k.turns(ctx, w, columns, sizes, found)
	fmt.Fprintln(w)
	all := figures{}
	for _, f := range found {
		for name, units := range f {
			all[name] = units
		}
	}
	if err := errors.Join(failed, printBeside(w, columns, sizes, all)); err != nil { // with what there is
		return err
	}
	fmt.Fprintf(w, "\n%s, in %s\n", began.UTC().Format("2006-01-02 15:04 UTC"), time.Since(began).Round(time.Second))
	for _, n := range sizes {
		for _, c := range columns {
			for _, p := range scalePhases {
				if wanted := c.phases == nil || slices.Contains(c.phases, p.name); wanted && all[c.bench(n)+"/"+p.name] == nil {
					return fmt.Errorf("%s told nothing of %q with %d members", c.title, p.what, n)
				}
			}
		}
	}
	return nil
}

// turns runs all, for each size Kubernetes between two runs of Stead.
func (k *kubernetes) turns(ctx context.Context, w io.Writer, columns []column, sizes []int, found []figures) error {
	for _, n := range sizes {
		for _, turn := range [][]int{{1, 2, 3, 4}, {0}, {1, 2, 3, 4}} {
			for _, i := range turn {
				at, load := time.Now(), loadNow()
				f, err := measured(columns[i].run(ctx, n))
				if err != nil {
					return fmt.Errorf("%s, %d members: %w", columns[i].title, n, err)
				}
				found[i] = found[i].mean(f)
				fmt.Fprintf(w, "%5d members, %-22s %s, load %s to %s\n", n, columns[i].title, time.Since(at).Round(time.Second), load, loadNow())
			}
		}
	}
	return nil
}

// build makes all programs. why is what is lacking to build Kubernetes; "": nothing.
func build(ctx context.Context, w io.Writer) (why string, err error) {
	if err := os.MkdirAll(programs, 0o755); err != nil {
		return "", err
	}
	to, err := filepath.Abs(programs)
	if err != nil {
		return "", err
	}
	sources := []string{".", "k8s.io/kubernetes/cmd/kube-apiserver", "k8s.io/kubernetes/cmd/kube-controller-manager"}
	list := command(ctx, "test/bench/kubernetes", append([]string{"list", "-deps"}, sources...))
	var text bytes.Buffer
	list.Stdout, list.Stderr = io.Discard, &text
	if err := list.Run(); err != nil {
		return fmt.Sprintf("%s\nthe sources of Kubernetes are not to be had (%v)", bytes.TrimSpace(text.Bytes()), err), ctx.Err()
	}
	var disk syscall.Statfs_t
	if err := syscall.Statfs(programs, &disk); err != nil {
		return "", err
	}
	if free := disk.Bavail * uint64(disk.Bsize); free < buildBytes {
		return fmt.Sprintf("building Kubernetes needs %d GiB of disk, %d are free", buildBytes>>30, free>>30), nil
	}
	fmt.Fprintln(w, "building (the first time ten minutes and more)")
	for _, c := range []struct {
		dir  string
		args []string
	}{
		{"test/bench/kubernetes", append([]string{"build", "-ldflags", "-s -w", "-o", to + "/"}, sources...)},
		{".", []string{"build", "-ldflags", "-s -w", "-o", filepath.Join(to, "etcd"), "go.etcd.io/etcd/server/v3"}},
		{".", []string{"test", "-c", "-o", filepath.Join(to, "bench.test"), "./test/bench"}},
	} {
		cmd := command(ctx, c.dir, c.args)
		cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
		if err := cmd.Run(); err != nil {
			return "", fmt.Errorf("go %s: %w", strings.Join(c.args, " "), err)
		}
	}
	return "", nil
}

func command(ctx context.Context, dir string, args []string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = dir
	return cmd
}

// measured runs a benchmark; when the context ends it is asked to end, and clears up.
func measured(cmd *exec.Cmd) (figures, error) {
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = time.Minute
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, os.Stderr
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("%w\n%s", err, out.Bytes())
	}
	f := figures{}
	f.read(out.Bytes())
	if len(f) == 0 {
		return nil, fmt.Errorf("nothing was told:\n%s", out.Bytes())
	}
	return f, nil
}

// mean is that of f, which may lack what g has, and g.
func (f figures) mean(g figures) figures {
	if f == nil {
		f = figures{}
	}
	for name, units := range g {
		if f[name] == nil {
			f[name] = units
			continue
		}
		for unit, v := range units {
			f[name][unit] = (f[name][unit] + v) / 2
		}
	}
	return f
}

// loadNow is the load of the machine in the last minute.
func loadNow() string {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "?"
	}
	return strings.Fields(string(text))[0]
}

// besideUnits are the lines of a phase.
var besideUnits = []struct {
	what, unit string
	scaled     float64 // of a member; 0: of the phase, in thousandths of the unit
	bare       bool    // no ratio is told
}{
	{"seconds", "ms/member", 0, false},
	{"processor seconds of control plane and store", "cpu-ms/member", 0, false},
	{"store revisions a member", "revisions/member", 1, false},
	{"store's log, KiB a member", "logged-bytes/member", 1.0 / 1024, false},
	{"sent to nodes, KiB a member", "sent-bytes/member", 1.0 / 1024, false},
	{"control plane and store, resident MiB", "server-MiB", 1, false},
	{"one hop meanwhile, µs", "µs/hop", 1, true},
}

// printBeside prints each phase of each size, and the goals of 1,000 members. A ratio is Kubernetes by Stead: how many
// times less.
func printBeside(w io.Writer, columns []column, sizes []int, f figures) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, c := range columns {
		fmt.Fprintf(t, "\t%s", c.title)
	}
	fmt.Fprintln(t, "\t")
	for _, n := range sizes {
		for _, p := range scalePhases {
			fmt.Fprintf(t, "%s\t\n", strings.ToUpper(fmt.Sprintf("%s, %d", p.what, n)))
			for _, u := range besideUnits {
				factor := u.scaled
				if factor == 0 {
					factor = float64(n) / 1000
				}
				at := func(c column) cell { return cell{c.bench(n) + "/" + p.name, u.unit, factor, ""} }
				theirs := at(columns[0])
				fmt.Fprintf(t, "  %s\t%s", u.what, theirs.text(f))
				for _, c := range columns[1:] {
					ours := at(c)
					fmt.Fprintf(t, "\t%s", ours.text(f))
					if times := theirs.value(f) / ours.value(f); !u.bare && !math.IsNaN(times) {
						fmt.Fprintf(t, " (%s x)", short(times))
					}
				}
				fmt.Fprintln(t, "\t")
			}
		}
	}
	if err := t.Flush(); err != nil || !slices.Contains(sizes, 1000) {
		return err
	}
	fmt.Fprintln(w, "\nGOALS, 1000 MEMBERS")
	for _, r := range besideGoals(columns) {
		ours, theirs, verdict := r.ours.value(f), r.floor.value(f), ""
		if !math.IsNaN(theirs) {
			verdict = r.goal.verdict(ours, theirs)
		}
		fmt.Fprintf(t, "  %s\t%s\t%s\t%s x\t%s\t%s\t\n", r.what, r.ours.text(f), r.floor.text(f), short(theirs/ours), r.goal.text, verdict)
	}
	return t.Flush()
}

// besideGoals are rows of Stead beside Kubernetes.
func besideGoals(columns []column) (out []row) {
	peer, light, one, agents := columns[0], columns[1], columns[3], columns[4]
	add := func(what string, c column, phase, unit string, factor float64, label string, g goal) {
		at := func(c column) cell { return cell{c.bench(1000) + "/" + phase, unit, factor, label} }
		out = append(out, row{what + ", " + strings.TrimPrefix(c.title, "Stead, "), at(c), at(peer), g})
	}
	add("OrderedReady", light, "ordered", "ms/member", 1, "s", timesLess(30))
	add("rolling update", light, "rolling", "ms/member", 1, "s", timesLess(40))
	for _, c := range []column{light, one, agents} {
		add("Parallel", c, "parallel", "ms/member", 1, "s", timesLess(20))
	}
	for _, p := range scalePhases {
		add(p.what+", processor time", light, p.name, "cpu-ms/member", 1, "s", timesLess(50))
	}
	for _, c := range []column{light, agents} {
		add("resident after parallel", c, "parallel", "server-MiB", (1<<20)/1e6, "MB", atMost(110, "MB"))
	}
	return out
}

// timesLess asks for that part of the peer's.
func timesLess(x float64) goal {
	return goal{"≥ " + short(x) + " x", func(ours, theirs float64) bool { return theirs >= x*ours }}
}
