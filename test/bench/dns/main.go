// Command dns measures dnsd beside bare miekg/dns, CoreDNS, Knot and NSD: the same zone and
// the same questions, one after the other in one run, the server on the first core
// and dnsperf on the second. Run it by `make bench-dns`, which gives it a network
// namespace of its own; docs/BENCH.md tells how to read its table.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/miekg/dns"
)

// where all servers listen, one at a time; the namespace is the run's own.
const addr = "127.0.0.1:5300"

func main() {
	members := flag.Int("members", 1000, "members of the zone")
	length := flag.Duration("time", 5*time.Second, "of one measurement")
	rounds := flag.Int("rounds", 2, "measurements of each server")
	edns := flag.Bool("edns", false, "ask with EDNS")
	coredns := flag.String("coredns", ".cache/coredns", "program built in test/bench/coredns")
	serve := flag.String("serve", "", "only serve: stead, stead-swapping or bare")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := error(nil)
	if *serve != "" {
		err = serveZone(ctx, *serve, *members)
	} else {
		b := bench{members: *members, length: *length, rounds: *rounds, edns: *edns, coredns: *coredns}
		err = b.run(ctx)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench dns:", err)
		os.Exit(1)
	}
}

type bench struct {
	members int
	length  time.Duration
	rounds  int
	edns    bool
	coredns string
	dir     string
}

// run prints one line a server and round.
func (b *bench) run(ctx context.Context) (err error) {
	for _, program := range []string{"dnsperf", "knotd", "nsd", "taskset", b.coredns} {
		if _, err := exec.LookPath(program); err != nil {
			return fmt.Errorf("needs %s: apt-get install -y dnsperf knot nsd util-linux; CoreDNS is built by make bench-dns", program)
		}
	}
	if b.dir, err = os.MkdirTemp("", "stead-bench-dns-"); err != nil {
		return err
	}
	defer os.RemoveAll(b.dir)
	self, err := os.Executable()
	if err != nil {
		return err
	}
	if err := b.files(); err != nil {
		return err
	}
	ours := func(what string) []string {
		return []string{self, "-serve", what, "-members", fmt.Sprint(b.members)}
	}
	servers := []struct {
		name    string
		command []string
	}{
		{"stead", ours("stead")},
		{"stead, zone swapped 10/s", ours("stead-swapping")},
		{"bare miekg/dns", ours("bare")},
		{"coredns file", []string{b.coredns, "-quiet", "-conf", filepath.Join(b.dir, "Corefile")}},
		{"coredns file, cache", []string{b.coredns, "-quiet", "-conf", filepath.Join(b.dir, "Corefile.cache")}},
		{"knot", []string{"knotd", "-c", filepath.Join(b.dir, "knot.conf")}},
		{"nsd", []string{"nsd", "-d", "-c", filepath.Join(b.dir, "nsd.conf")}},
	}
	fmt.Printf("%d members, EDNS %v, %v a measurement; CPU is the server's, user and system\n", b.members, b.edns, b.length)
	fmt.Printf("%-26s %12s %8s %14s %16s %10s %10s\n", "server", "answers/s", "lost", "CPU ns/answer", "answers/CPU s", "mean µs", "max ms")
	for range b.rounds {
		for _, s := range servers {
			if err := b.measure(ctx, s.name, s.command); err != nil {
				return fmt.Errorf("%s: %w", s.name, err)
			}
		}
	}
	return nil
}

// measure starts one server, loads it and prints its line.
func (b *bench) measure(ctx context.Context, name string, command []string) error {
	server := exec.CommandContext(ctx, "taskset", append([]string{"-c", "0"}, command...)...)
	server.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGTERM}
	server.Cancel = func() error { return server.Process.Signal(syscall.SIGTERM) }
	server.WaitDelay = 5 * time.Second
	output, err := os.Create(filepath.Join(b.dir, "server.log"))
	if err != nil {
		return err
	}
	defer output.Close()
	server.Stdout, server.Stderr = output, output
	if err := server.Start(); err != nil {
		return err
	}
	defer func() {
		_ = server.Process.Signal(syscall.SIGTERM)
		_ = server.Wait() // of a signal, mostly
	}()
	if err := b.await(ctx); err != nil {
		log, _ := os.ReadFile(output.Name())
		return fmt.Errorf("%w\n%s", err, log)
	}
	before, err := sessionCPU(server.Process.Pid)
	if err != nil {
		return err
	}
	got, err := b.load(ctx)
	if err != nil {
		return err
	}
	after, err := sessionCPU(server.Process.Pid)
	if err != nil {
		return err
	}
	cost := float64(after-before) / got.answers
	fmt.Printf("%-26s %12.0f %8.0f %14.0f %16.0f %10.0f %10.1f\n", name, got.rate, got.lost, cost, 1e9/cost, got.mean*1e6, got.max*1e3)
	return nil
}

// await asks until the server answers rightly.
func (b *bench) await(ctx context.Context) error {
	client := dns.Client{Timeout: 100 * time.Millisecond}
	req := new(dns.Msg).SetQuestion(memberName(b.members-1), dns.TypeA)
	deadline := time.Now().Add(20 * time.Second)
	for {
		m, _, err := client.ExchangeContext(ctx, req, addr)
		switch {
		case err == nil && len(m.Answer) == 1:
			return nil
		case ctx.Err() != nil:
			return ctx.Err()
		case time.Now().After(deadline):
			return fmt.Errorf("no answer within 20 s: %v", err)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

type result struct{ answers, lost, rate, mean, max float64 }

// load asks as fast as dnsperf can from the second core.
func (b *bench) load(ctx context.Context) (result, error) {
	host, port, _ := strings.Cut(addr, ":")
	args := []string{"-c", "1", "dnsperf", "-s", host, "-p", port, "-d", filepath.Join(b.dir, "questions"),
		"-l", fmt.Sprint(b.length.Seconds()), "-c", "4", "-T", "1", "-q", "200"}
	if b.edns {
		args = append(args, "-e")
	}
	out, err := exec.CommandContext(ctx, "taskset", args...).CombinedOutput()
	if err != nil {
		return result{}, fmt.Errorf("dnsperf: %w\n%s", err, out)
	}
	var r result
	for line := range strings.Lines(string(out)) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		value = strings.TrimSpace(value)
		switch key {
		case "Queries completed":
			fmt.Sscan(value, &r.answers)
		case "Queries lost":
			fmt.Sscan(value, &r.lost)
		case "Queries per second":
			fmt.Sscan(value, &r.rate)
		case "Average Latency (s)":
			var low float64
			fmt.Sscanf(value, "%g (min %g, max %g)", &r.mean, &low, &r.max)
		}
	}
	if r.answers == 0 {
		return r, fmt.Errorf("dnsperf had no answer:\n%s", out)
	}
	return r, nil
}
