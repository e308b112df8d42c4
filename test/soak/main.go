// Command soak runs the long forms of tests that have one, one piece after the other,
// each for a time and with a seed that it prints:
//
//	go run ./test/soak [-time 20m] [-seed N] [piece...]
//
// `make soak` builds what it needs and runs it as root. A piece ends by itself when its
// time is over and its last act is done, and is ended after ten minutes more. The
// whole output of each is kept in .cache/soak; what is printed is a table for
// docs/SOAK.md. It exits 1 when a piece fails, 2 on wrong use.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

const (
	longest = 20 * time.Minute // of a piece
	grace   = 10 * time.Minute // for its last act, and for reading everything back
	kept    = ".cache/soak"    // whole outputs
)

func main() {
	length := flag.Duration("time", longest, "of each piece, at most 20m")
	seed := flag.Uint64("seed", rand.Uint64N(1e6), "seed of the first run of each piece (default: by chance)")
	flag.Usage = func() {
		fmt.Fprintf(flag.CommandLine.Output(), "usage: soak [flags] [piece...]\n%s", list())
		flag.PrintDefaults()
	}
	flag.Parse()
	chosen, err := choose(flag.Args())
	if err == nil && (*length <= 0 || *length > longest) {
		err = fmt.Errorf("-time %v: at most %v", *length, longest)
	}
	if err == nil {
		err = os.MkdirAll(kept, 0o755)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "soak:", err)
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	ok := true
	for _, p := range chosen {
		if ctx.Err() != nil {
			break
		}
		ok = p.run(ctx, *seed, *length) && ok
	}
	if !ok {
		os.Exit(1)
	}
}

// choose finds the pieces named; none named are all.
func choose(names []string) ([]piece, error) {
	if len(names) == 0 {
		return pieces, nil
	}
	var out []piece
	for _, name := range names {
		i := slices.IndexFunc(pieces, func(p piece) bool { return p.name == name })
		if i < 0 {
			return nil, fmt.Errorf("no piece %q; there are:\n%s", name, list())
		}
		out = append(out, pieces[i])
	}
	return out, nil
}

func list() string {
	var b strings.Builder
	for _, p := range pieces {
		fmt.Fprintf(&b, "  %-12s %s\n", p.name, p.what)
	}
	return b.String()
}

// run runs the piece until length is over and reports whether it held.
func (p piece) run(ctx context.Context, seed uint64, length time.Duration) bool {
	began := time.Now()
	ctx, cancel := context.WithTimeout(ctx, length+grace)
	defer cancel()
	log, err := os.Create(filepath.Join(kept, p.name+".log"))
	if err != nil {
		fmt.Fprintln(os.Stderr, "soak:", err)
		return false
	}
	defer log.Close()
	fmt.Printf("%s: seed %d, for %v, output in %s\n", p.name, seed, length, log.Name())
	runs := 0
	for {
		left := length - time.Since(began)
		err = p.once(ctx, log, seed, left)
		runs++
		if err != nil || !p.repeats || time.Since(began) >= length {
			break
		}
		seed++
	}
	told, readErr := p.told(log.Name())
	if err == nil {
		err = readErr
	}
	verdict := "held"
	switch {
	case errors.Is(ctx.Err(), context.Canceled): // somebody ended the soak
		verdict = "broken off"
	case err != nil:
		verdict = "FAILED with seed " + fmt.Sprint(seed) + ": " + err.Error()
	}
	fmt.Printf("| %s | %s | %v, %d runs | %s | %s |\n", began.UTC().Format("2006-01-02 15:04"), p.name,
		time.Since(began).Round(time.Second), runs, verdict, strings.Join(told, "; "))
	return err == nil
}
