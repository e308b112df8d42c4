package peer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/stead-project/stead/agent/move"
	"github.com/stead-project/stead/agent/move/step"
	"github.com/stead-project/stead/agent/runtime"
)

// load is a tree to be moved: most files are small, most bytes are in a few large ones.
type load struct {
	small, smallBytes int
	large, largeBytes int64
}

func (l load) bytes() int64 { return int64(l.small*l.smallBytes) + l.large*l.largeBytes }

func (l load) nameOf(i int) string {
	return filepath.Join(fmt.Sprintf("d%03d", i/256), "f"+strconv.Itoa(i))
}

func (l load) make(b *testing.B, top string) {
	b.Helper()
	r := rand.NewChaCha8([32]byte{1})
	write := func(name string, n int64) error {
		f, err := os.Create(filepath.Join(top, name))
		if err != nil {
			return err
		}
		_, err = io.CopyN(f, r, n)
		return errors.Join(err, f.Close())
	}
	for i := range l.small {
		if i%256 == 0 {
			if err := os.Mkdir(filepath.Join(top, filepath.Dir(l.nameOf(i))), 0o755); err != nil {
				b.Fatal(err)
			}
		}
		if err := write(l.nameOf(i), int64(l.smallBytes)); err != nil {
			b.Fatal(err)
		}
	}
	for i := range l.large {
		if err := write("large"+strconv.FormatInt(i, 10), l.largeBytes); err != nil {
			b.Fatal(err)
		}
	}
}

// churn writes as a database does until ctx ends: whole small files, and blocks of a large one; some hundred changes a second.
func (l load) churn(ctx context.Context, top string) error {
	r := rand.New(rand.NewPCG(1, 2))
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		err := os.WriteFile(filepath.Join(top, l.nameOf(r.IntN(l.small))), make([]byte, l.smallBytes), 0o644)
		f, err2 := os.OpenFile(filepath.Join(top, "large0"), os.O_WRONLY, 0)
		if err2 == nil {
			_, err2 = f.WriteAt(make([]byte, 8<<10), r.Int64N(l.largeBytes/8192)*8192)
			err2 = errors.Join(err2, f.Close())
		}
		if err := errors.Join(err, err2); err != nil {
			return err
		}
	}
}

// BenchmarkMove copies a tree over loopback TLS while it is written to, as agent/move does: in rounds, and one more after the last
// write, with the sums of both ends. Both ends are in this process, whose memory is told. The floor is cp -a.
//
//	go test ./agent/move/peer -run '^$' -bench Move/4GiB -benchtime 1x -timeout 1h
func BenchmarkMove(b *testing.B) {
	for _, c := range []struct {
		name string
		load load
	}{
		{"256MiB-6250", load{6250, 16 << 10, 1, 158 << 20}},
		{"4GiB-100000", load{100_000, 16 << 10, 10, 253 << 20}},
	} {
		b.Run(c.name, func(b *testing.B) {
			for b.Loop() {
				benchMove(b, c.load)
			}
		})
	}
}

func benchMove(b *testing.B, l load) {
	from, to, floor := b.TempDir(), b.TempDir(), b.TempDir()
	l.make(b, from)
	unix.Sync()
	began := time.Now()
	if out, err := exec.Command("cp", "-a", from, floor).CombinedOutput(); err != nil {
		b.Fatalf("%v: %s", err, out)
	}
	unix.Sync()
	copied := time.Since(began)
	if err := os.RemoveAll(floor); err != nil {
		b.Fatal(err)
	}
	log := slog.New(slog.DiscardHandler)
	src, dst := New(Config{Listen: "127.0.0.1:0", Now: time.Now, Logger: log}), New(Config{Listen: "127.0.0.1:0", Now: time.Now, Logger: log})
	defer src.Close()
	defer dst.Close()
	key, port, err := src.Key(id)
	mine, _, err2 := dst.Key(id)
	if err := errors.Join(err, err2); err != nil {
		b.Fatal(err)
	}
	trees, staged := []runtime.MoveTree{{Claim: "data", Path: from}}, []runtime.MoveTree{{Claim: "data", Path: to}}
	src.Offer(b.Context(), move.Other{Move: id, Key: mine}, trees)
	peer := move.Other{Move: id, Key: key, At: netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), port)}
	if err := os.WriteFile("/proc/self/clear_refs", []byte("5"), 0); err != nil { // the peak begins now
		b.Log(err)
	}
	ctx, stop := context.WithCancel(b.Context())
	written := make(chan error, 1)
	go func() { written <- l.churn(ctx, from) }()
	defer stop()

	cpu := spent(b)
	var first time.Duration
	rounds, before := 0, step.Round{}
	for {
		at := time.Now()
		n, err := dst.Round(b.Context(), peer, staged, false, nil)
		if err != nil {
			b.Fatal(err)
		}
		rounds++
		if first == 0 {
			first = time.Since(at)
		}
		b.Logf("round %d: %d MiB in %s", rounds, n>>20, time.Since(at))
		round := step.Round{Bytes: n, Took: time.Since(at)}
		if step.Warm(round, before) {
			break
		}
		before = round
	}
	stop()
	if err := <-written; err != nil {
		b.Fatal(err)
	}
	cpu = spent(b) - cpu
	last := time.Now()
	want, err := src.Sums(b.Context(), id, trees, false)
	summed := time.Since(last)
	n, err2 := dst.Round(b.Context(), peer, staged, false, nil)
	rounded := time.Since(last)
	got, err3 := dst.Sums(b.Context(), id, staged, false)
	down := time.Since(last)
	if err := errors.Join(err, err2, err3); err != nil || !slices.Equal(want, got) {
		b.Fatalf("%v, %v, %v", want, got, err)
	}
	b.Logf("down: summed in %s, %d MiB copied in %s, compared in %s", summed, n>>20, rounded-summed, down-rounded)
	mib := float64(l.bytes()) / (1 << 20)
	b.ReportMetric(mib/first.Seconds(), "MiB/s")
	b.ReportMetric(float64(first.Milliseconds()), "copy-ms")
	b.ReportMetric(float64(copied.Milliseconds()), "cp-ms")
	b.ReportMetric(float64(rounds+1), "rounds")
	b.ReportMetric(float64(down.Milliseconds()), "down-ms")
	b.ReportMetric(cpu.Seconds()/(mib/1024), "cpu-s/GiB")
	b.ReportMetric(peak(b), "peak-MiB")
}

func spent(b *testing.B) time.Duration {
	b.Helper()
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// peak is the most memory that this process had, in MiB.
func peak(b *testing.B) float64 {
	b.Helper()
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		b.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "VmHWM:")
	fields := strings.Fields(rest)
	kib, err := strconv.Atoi(fields[0])
	if err != nil {
		b.Fatal(err)
	}
	return float64(kib) / 1024
}
