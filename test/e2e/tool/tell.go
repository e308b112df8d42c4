package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"strings"
	"sync"
)

// teller tells a witness of each acknowledged key at once, for a writer whose host may lose its power. What does not reach the
// witness counts for nobody.
type teller struct {
	addr string
	mu   sync.Mutex
	conn net.Conn
}

// tell sends a key. Without a witness it does nothing.
func (t *teller) tell(key string) {
	if t.addr == "" {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.conn == nil {
		var err error
		if t.conn, err = dialWitness(t.addr); err != nil {
			return // tried again with the next key
		}
	}
	if _, err := fmt.Fprintln(t.conn, key); err != nil {
		t.conn.Close()
		t.conn = nil
	}
}

// readBack reads the keys in a file, one a line, as load does with those that it wrote itself. The value of each is the key.
func readBack(ctx context.Context, open func(int) keys, file string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	acked := strings.Fields(string(text))
	sum := result{Acked: len(acked)}
	verifyAll(ctx, open, acked, &sum)
	for _, key := range sum.gone {
		fmt.Fprintf(os.Stderr, "lost: %s\n", key)
	}
	return sum.said()
}

// said prints a result, and is an error if the result is none of a database that keeps what it acknowledges.
func (r result) said() error {
	if err := json.NewEncoder(os.Stdout).Encode(r); err != nil {
		return err
	}
	if r.Lost > 0 || r.Unreadable > 0 || r.Acked == 0 {
		return fmt.Errorf("%d of %d acknowledged keys lost, %d unreadable", r.Lost, r.Acked, r.Unreadable)
	}
	return nil
}
