package main

import (
	"bytes"
	"io"
	"testing"
)

func TestWrongUse(t *testing.T) {
	for _, args := range [][]string{nil, {"/run/dns.sock"}, {"/run/dns.sock", "no task"}, {"version", "x", "y"}} {
		if code := run(args, io.Discard, io.Discard); code != 2 {
			t.Errorf("stead-dns %q exited %d, want 2", args, code)
		}
	}
	if code := run([]string{"/run/dns.sock", "{}"}, io.Discard, io.Discard); code != 1 {
		t.Errorf("a task without an address: %d, want 1", code)
	}
	var out bytes.Buffer
	if code := run([]string{"version"}, &out, io.Discard); code != 0 || out.String() != "dev\n" {
		t.Errorf("version: code %d, output %q", code, out.String())
	}
}
