package probe

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"

	"github.com/stead-project/stead/agent/runtime"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/spec/scalar"
)

const probedEnv = "STEAD_PROBED"

// TestMain is, in a process of its own, what BenchmarkStorm probes.
func TestMain(m *testing.M) {
	if os.Getenv(probedEnv) == "" {
		os.Exit(m.Run())
	}
	if err := serveProbed(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// serveProbed answers HTTP and gRPC at all addresses of this host, prints both ports, and ends with
// its standard input.
func serveProbed() error {
	web, err := net.Listen("tcp", "0.0.0.0:0")
	if err != nil {
		return err
	}
	words, err := net.Listen("tcp", "0.0.0.0:0")
	if err != nil {
		return err
	}
	s := grpc.NewServer()
	grpc_health_v1.RegisterHealthServer(s, health.NewServer())
	failed := make(chan error, 2)
	go func() { failed <- http.Serve(web, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})) }()
	go func() { failed <- s.Serve(words) }()
	fmt.Println(web.Addr().(*net.TCPAddr).Port, words.Addr().(*net.TCPAddr).Port)
	go func() {
		_, err := io.Copy(io.Discard, os.Stdin)
		failed <- err
	}()
	return <-failed
}

// startProbed starts serveProbed in another process, whose processor time does not count.
func startProbed(b *testing.B) (web, words int32) {
	b.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env, cmd.Stderr = append(os.Environ(), probedEnv+"=1"), os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		b.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := in.Close(); err != nil {
			b.Error(err)
		}
		if err := cmd.Wait(); err != nil {
			b.Error(err)
		}
	})
	if _, err := fmt.Fscan(bufio.NewReader(out), &web, &words); err != nil {
		b.Fatal(err)
	}
	return web, words
}

// BenchmarkStorm is what 500 members cost their host's agent that are each asked twice a second: for
// readiness by HTTP, and whether they live by TCP or by gRPC. %cpu, of one core, is of this process; the members are
// another one. None of them may fail. (What a command costs: BenchmarkProbe of agent/runtime/containerdrt.)
func BenchmarkStorm(b *testing.B) {
	const members, span = 500, 10 * time.Second
	web, words := startProbed(b)
	for b.Loop() {
		var dials, unready atomic.Int64
		p := New(Config{Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
			dials.Add(1)
			return new(net.Dialer).DialContext(ctx, network, address)
		}})
		ctx, cancel := context.WithCancel(b.Context())
		unready.Store(members)
		var all sync.WaitGroup
		for i := range members {
			all.Go(func() {
				ready := false
				p.Probe(ctx, stormTarget(i, web, words), func(h Health) {
					if h.Ready != ready {
						ready = h.Ready
						unready.Add(map[bool]int64{true: -1, false: 1}[ready])
					}
				})
			})
			time.Sleep(time.Second / members) // as they come up, one after the other
		}
		time.Sleep(2 * time.Second)
		used, asked, began := processorTime(b), dials.Load(), time.Now()
		time.Sleep(span)
		took := time.Since(began)
		b.ReportMetric(100*(processorTime(b)-used).Seconds()/took.Seconds(), "%cpu")
		b.ReportMetric(float64(dials.Load()-asked)/took.Seconds(), "probes/s")
		if n := unready.Load(); n != 0 {
			b.Errorf("%d members are not ready", n)
		}
		cancel()
		all.Wait()
	}
}

// stormTarget is a member at an address of its own.
func stormTarget(i int, web, words int32) Target {
	ready := spec.Probe{HTTPGet: &spec.HTTPGet{Path: "/", Scheme: "HTTP", Port: scalar.PortRef{Number: web}}, PeriodSeconds: 1, TimeoutSeconds: 5, SuccessThreshold: 1, FailureThreshold: 3}
	lives := ready
	lives.HTTPGet = nil
	if i%2 == 0 {
		lives.TCPSocket = &spec.TCPSocket{Port: scalar.PortRef{Number: web}}
	} else {
		lives.GRPC = &spec.GRPCAction{Port: words}
	}
	return Target{
		ID:        runtime.ContainerID{ID: spec.Identity{Namespace: "default", Set: "storm", Ordinal: i}, Name: "main"},
		Address:   netip.AddrFrom4([4]byte{127, 2, byte(i >> 8), byte(i)}),
		Container: spec.Container{Name: "main", ReadinessProbe: &ready, LivenessProbe: &lives},
	}
}

// processorTime is what this process has used, user and system.
func processorTime(b *testing.B) time.Duration {
	b.Helper()
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
