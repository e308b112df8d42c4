package main

import (
	"bytes"
	"sync"
	"testing"
)

func TestLinesAreWrittenWholeAfterTheirMember(t *testing.T) {
	var out bytes.Buffer
	var lock sync.Mutex
	a, b := &lineWriter{lock: &lock, out: &out, prefix: "[a] "}, &lineWriter{lock: &lock, out: &out, prefix: "[b] "}
	for _, w := range []struct {
		to   *lineWriter
		text string
	}{{a, "one\ntw"}, {b, "x\n\ny"}, {a, "o\n"}, {b, ""}} {
		if n, err := w.to.Write([]byte(w.text)); n != len(w.text) || err != nil {
			t.Fatalf("wrote %d of %q, %v", n, w.text, err)
		}
	}
	if err := a.flush(); err != nil {
		t.Fatal(err)
	}
	if err := b.flush(); err != nil {
		t.Fatal(err)
	}
	if got, want := out.String(), "[a] one\n[b] x\n[b] \n[a] two\n[b] y\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
