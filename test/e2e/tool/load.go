package main

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"
)

// result is what a load tells at its end, as one line of JSON.
type result struct {
	Acked      int   `json:"acked"`
	Errors     int   `json:"errors"`
	LongestGap int64 `json:"longestGapMillis"` // between two acknowledgements of one writer
	Lost       int   `json:"lost"`             // acknowledged, then read back absent or other
	Unreadable int   `json:"unreadable"`       // not to be read at all at the end

	gone []string // the keys that are lost
}

// keys is a database under load, seen through one of its members at a time.
type keys interface {
	put(ctx context.Context, key, value string) error
	// get reads what was acknowledged before it was called; "": absent.
	get(ctx context.Context, key string) (string, error)
	next() // turns to another member
}

// load writes unique keys to a database by its members' names, remembers the
// acknowledged ones, and at its end (SIGTERM, or -for) reads each back with a
// linearizable read. Only acknowledged writes count. Exit 1 when any is lost.
func load(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("load", flag.ContinueOnError)
	endpoints := flags.String("endpoints", "", "host:port,... of the members, by name")
	kind := flags.String("kind", "etcd", "etcd, zookeeper, cassandra, galera, kafka, nats, postgresql, rabbitmq, redis, redis-cluster or spark")
	dns := flags.String("dns", "169.254.1.1:53", "the name server")
	span := flags.Duration("for", 10*time.Minute, "stop writing after this time at the latest")
	prefix := flags.String("prefix", fmt.Sprintf("load-%d/", os.Getpid()), "prefix of the keys")
	writers := flags.Int("writers", 2, "concurrent writers")
	pause := flags.Duration("pause", 0, "between two writes of one writer")
	witness := flags.String("tell", "", "address of a witness that is told each key when it is acknowledged")
	check := flags.String("check", "", "write nothing, and read back the keys in this file, one a line")
	if err := flags.Parse(args); err != nil {
		return err
	}
	names := strings.Split(*endpoints, ",")
	open, err := opener(*kind, names, *dns)
	if err != nil {
		return err
	}
	if *check != "" {
		return readBack(ctx, open, *check)
	}
	writing, cancel := context.WithTimeout(ctx, *span)
	defer cancel()
	told := &teller{addr: *witness}
	var (
		wg  sync.WaitGroup
		mu  sync.Mutex
		sum result
		all []string
		at  = map[string]time.Time{} // when a key was acknowledged
	)
	for w := range *writers {
		wg.Go(func() {
			acked, part := write(writing, open(w), fmt.Sprintf("%s%d/", *prefix, w), *pause, func(key string) {
				mu.Lock()
				at[key] = time.Now()
				mu.Unlock()
				told.tell(key)
			})
			mu.Lock()
			defer mu.Unlock()
			all = append(all, acked...)
			sum.Errors += part.Errors
			sum.LongestGap = max(sum.LongestGap, part.LongestGap)
		})
	}
	wg.Wait()
	sum.Acked = len(all)
	verifyAll(context.WithoutCancel(ctx), open, all, &sum)
	for _, key := range sum.gone {
		fmt.Fprintf(os.Stderr, "lost: %s, acknowledged at %s\n", key, at[key].UTC().Format(time.StampMilli))
	}
	return sum.said()
}

// opener makes what writes to a kind of database, or reads from it, and begins at one of its members.
func opener(kind string, names []string, dns string) (func(first int) keys, error) {
	switch kind {
	case "etcd":
		return func(first int) keys { return newEtcd(names, dns, first) }, nil
	case "zookeeper":
		return func(first int) keys { return newZookeeper(names, dns, first) }, nil
	case "cassandra":
		return func(first int) keys { return newCassandra(names, dns, first) }, nil
	case "galera":
		return func(first int) keys { return newGalera(names, dns, first) }, nil
	case "kafka":
		return newKafka(names, dns), nil
	case "nats":
		return func(first int) keys { return newNATS(names, dns, first) }, nil
	case "postgresql":
		return func(first int) keys { return newPostgres(names, dns, first) }, nil
	case "rabbitmq":
		return newRabbit(names, dns), nil
	case "redis":
		return func(first int) keys { return newRedis(names, dns, first) }, nil
	case "redis-cluster":
		return func(first int) keys { return newRedisCluster(names, dns, first) }, nil
	case "spark":
		return newSpark(names, dns), nil
	}
	return nil, fmt.Errorf("no kind of database %q", kind)
}

func write(ctx context.Context, e keys, prefix string, pause time.Duration, tell func(string)) (acked []string, r result) {
	last := time.Now()
	for n := 0; ctx.Err() == nil; n++ {
		time.Sleep(pause)
		key := fmt.Sprintf("%s%08d", prefix, n)
		if err := e.put(ctx, key, key); err != nil {
			if ctx.Err() == nil {
				r.Errors++
				e.next()
				time.Sleep(20 * time.Millisecond) // while nobody answers, others need the processor
			}
			continue
		}
		if len(acked) == 0 {
			fmt.Println("writing") // who scales or kills waits for it
		}
		acked = append(acked, key)
		tell(key)
		r.LongestGap = max(r.LongestGap, time.Since(last).Milliseconds())
		last = time.Now()
	}
	return acked, r
}

// readers read back at the same time.
const readers = 4

// verifyAll reads each key back and adds what it found to sum.
func verifyAll(ctx context.Context, open func(int) keys, acked []string, sum *result) {
	parts := make([]result, readers)
	var wg sync.WaitGroup
	for i := range readers {
		share := acked[len(acked)*i/readers : len(acked)*(i+1)/readers]
		wg.Go(func() { verify(ctx, open(i), share, &parts[i]) })
	}
	wg.Wait()
	for _, p := range parts {
		sum.Lost += p.Lost
		sum.gone = append(sum.gone, p.gone...)
		sum.Unreadable += p.Unreadable
	}
}

// verify reads each key back; it gives up after four unreadable keys.
func verify(ctx context.Context, e keys, acked []string, r *result) {
	for _, key := range acked {
		var got string
		var err error
		for try := 0; try < 20; try++ {
			if got, err = e.get(ctx, key); err == nil {
				break
			}
			e.next()
			time.Sleep(250 * time.Millisecond)
		}
		switch {
		case err != nil:
			r.Unreadable++
			if r.Unreadable >= 4 {
				return
			}
		case got != key:
			r.Lost++
			r.gone = append(r.gone, key)
		}
	}
}

// etcd speaks etcd's JSON API (v3/kv/*), resolving names at every connection.
type etcd struct {
	names  []string
	at     int
	client http.Client
}

func newEtcd(names []string, dns string, first int) *etcd {
	return &etcd{names: names, at: first % len(names), client: http.Client{
		Timeout:   2 * time.Second,
		Transport: &http.Transport{DialContext: dialerBy(dns).DialContext, MaxIdleConnsPerHost: 1},
	}}
}

// dialerBy resolves names at a name server, at every connection.
func dialerBy(dns string) *net.Dialer {
	return &net.Dialer{Timeout: time.Second, Resolver: &net.Resolver{
		PreferGo: true, Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
			var d net.Dialer
			return d.DialContext(ctx, network, dns)
		},
	}}
}

// next turns to another member.
func (e *etcd) next() { e.at = (e.at + 1) % len(e.names) }

func (e *etcd) put(ctx context.Context, key, value string) error {
	return e.call(ctx, "put", map[string]string{"key": b64(key), "value": b64(value)}, nil)
}

func (e *etcd) get(ctx context.Context, key string) (string, error) {
	var out struct {
		KVs []struct {
			Value []byte `json:"value"`
		} `json:"kvs"`
	}
	if err := e.call(ctx, "range", map[string]string{"key": b64(key)}, &out); err != nil {
		return "", err
	}
	if len(out.KVs) == 0 {
		return "", nil
	}
	return string(out.KVs[0].Value), nil
}

func b64(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }

func (e *etcd) call(ctx context.Context, verb string, in map[string]string, out any) error {
	body, err := json.Marshal(in)
	if err != nil {
		return err
	}
	url := "http://" + e.names[e.at] + "/v3/kv/" + verb
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	resp, err := e.client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	if err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		return errors.New(resp.Status + ": " + string(text))
	}
	if out == nil {
		return nil
	}
	return json.Unmarshal(text, out)
}
