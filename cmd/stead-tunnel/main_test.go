package main

import (
	"bytes"
	"io"
	"testing"
)

func TestWrongUse(t *testing.T) {
	for _, args := range [][]string{nil, {""}, {"-f"}, {"sw1", "sw2"}} {
		if code := run(args, io.Discard, io.Discard); code != 2 {
			t.Errorf("stead-tunnel %q exited %d, want 2", args, code)
		}
	}
	if code := run([]string{"a-name-that-is-too-long-for-a-link"}, io.Discard, io.Discard); code != 1 {
		t.Errorf("a link that cannot be: %d, want 1", code)
	}
	var out bytes.Buffer
	if code := run([]string{"version"}, &out, io.Discard); code != 0 || out.String() != "dev\n" {
		t.Errorf("version: code %d, output %q", code, out.String())
	}
}
