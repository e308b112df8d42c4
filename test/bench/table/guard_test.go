package main

import (
	"io"
	"slices"
	"testing"
)

func TestTheGuardNamesWhatRoseAndWhatFell(t *testing.T) {
	was := figures{
		"Guard/a/ordered":  {"revisions/member": 2, "sent-bytes/member": 100, "allocs/member": 1000, "fsyncs/member": 2},
		"Guard/a/parallel": {"revisions/member": 0.1},
		"Guard/a/gone":     {"allocs/member": 1},
	}
	now := figures{
		"Guard/a/ordered":  {"revisions/member": 2.21, "sent-bytes/member": 109, "allocs/member": 899, "fsyncs/member": 2.19},
		"Guard/a/parallel": {"revisions/member": 0.109},
	}
	rose, fell, err := compare(io.Discard, was, now)
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"Guard/a/gone allocs/member", "Guard/a/ordered revisions/member"}; !slices.Equal(rose, want) {
		t.Errorf("rose: %q, want %q", rose, want)
	}
	if want := []string{"Guard/a/ordered allocs/member"}; !slices.Equal(fell, want) {
		t.Errorf("fell: %q, want %q", fell, want)
	}
}
