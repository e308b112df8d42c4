package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/miekg/dns"
)

// asked is what an asker has seen.
type asked struct {
	Asked int      `json:"asked"`
	Lost  int      `json:"lost"`            // not answered within the patience of a resolver
	Other int      `json:"other"`           // answered else than wanted
	Wrong []string `json:"wrong,omitempty"` // the first of what was lost, or answered else
	Slow  float64  `json:"slow"`            // seconds that the slowest answer took
}

// ask asks a name server for the addresses of names, some hundred times a second unless -every says else, each time once, one time in eight over
// TCP, until ctx ends, and then prints what it saw.
func ask(ctx context.Context, args []string) error {
	f := flag.NewFlagSet("ask", flag.ContinueOnError)
	server := f.String("server", "169.254.1.1:53", "ADDRESS:PORT of the name server")
	every := f.Duration("every", 3*time.Millisecond, "between two questions")
	if err := f.Parse(args); err != nil {
		return err
	}
	want := map[string]string{} // name=address,address in ascending order
	var names []string
	for _, a := range f.Args() {
		name, addresses, _ := strings.Cut(a, "=")
		names, want[name] = append(names, name), addresses
	}
	if len(names) == 0 {
		return fmt.Errorf("no NAME=ADDRESS is given")
	}
	var mu sync.Mutex
	var seen asked
	var group sync.WaitGroup
	tick := time.NewTicker(*every)
	defer tick.Stop()
	for n := 0; ctx.Err() == nil; n++ {
		select {
		case <-ctx.Done():
			continue
		case <-tick.C:
		}
		group.Go(func() {
			name, network := names[n%len(names)], "udp"
			if n%8 == 0 {
				network = "tcp"
			}
			begun := time.Now()
			got, err := askOnce(network, *server, name)
			mu.Lock()
			defer mu.Unlock()
			seen.Asked++
			seen.Slow = max(seen.Slow, time.Since(begun).Seconds())
			switch {
			case err != nil:
				seen.Lost++
				fallthrough
			case got != want[name]:
				if err == nil {
					seen.Other++
				}
				if len(seen.Wrong) < 20 {
					seen.Wrong = append(seen.Wrong, fmt.Sprintf("%s over %s: %q, %v", name, network, got, err))
				}
			}
		})
	}
	group.Wait()
	return json.NewEncoder(os.Stdout).Encode(seen)
}

// askOnce is one question, without a second try.
func askOnce(network, server, name string) (string, error) {
	client := dns.Client{Net: network, Timeout: 5 * time.Second}
	m, _, err := client.Exchange(new(dns.Msg).SetQuestion(dns.Fqdn(name), dns.TypeA), server)
	if err != nil {
		return "", err
	}
	if m.Rcode != dns.RcodeSuccess {
		return dns.RcodeToString[m.Rcode], nil
	}
	var all []string
	for _, rr := range m.Answer {
		if a, ok := rr.(*dns.A); ok {
			all = append(all, a.A.String())
		}
	}
	slices.Sort(all)
	return strings.Join(all, ","), nil
}
