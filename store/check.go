package store

import "fmt"

// MaxBytes bounds the keys and values of one Txn; it leaves room below etcd's
// default --max-request-bytes of 1.5 MiB.
const MaxBytes = 1_300_000

// Check tells what is wrong with t before any store sees it: ErrTooLarge, or an
// error of no kind for a Txn that no store may accept (an empty key, a key that
// stands twice in Then). Every body calls it first in Commit.
func (t Txn) Check() error {
	if len(t.If) > MaxOps || len(t.Then) > MaxOps {
		return fmt.Errorf("check %d compares and %d operations of at most %d each: %w",
			len(t.If), len(t.Then), MaxOps, ErrTooLarge)
	}
	if n := t.bytes(); n > MaxBytes {
		return fmt.Errorf("check %d bytes of at most %d: %w", n, MaxBytes, ErrTooLarge)
	}
	for _, g := range t.If {
		if g.Key == "" {
			return fmt.Errorf("check compares: empty key")
		}
	}
	seen := make(map[string]bool, len(t.Then))
	for _, op := range t.Then {
		if op.Key == "" {
			return fmt.Errorf("check operations: empty key")
		}
		if seen[op.Key] {
			return fmt.Errorf("check operations: key %s appears twice", op.Key)
		}
		seen[op.Key] = true
	}
	return nil
}

func (t Txn) bytes() int {
	n := 0
	for _, g := range t.If {
		n += len(g.Key)
	}
	for _, op := range t.Then {
		n += len(op.Key) + len(op.Value)
	}
	return n
}
