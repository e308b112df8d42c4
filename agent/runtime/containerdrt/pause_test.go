package containerdrt

import "testing"

// TestOneProcessOfASandboxDoesNotCount: SAFETY S13.
func TestOneProcessOfASandboxDoesNotCount(t *testing.T) {
	for name, c := range map[string]struct {
		pids []int
		want bool
	}{
		"it alone": {[]int{7}, true}, "another": {[]int{8}, false}, "it and another": {[]int{7, 8}, false},
		"one without a number here": {[]int{0}, false}, "only such": {nil, false},
	} {
		if got := onlyPause(c.pids, func(pid int) bool { return pid == 7 }); got != c.want {
			t.Errorf("%s: empty %v, want %v", name, got, c.want)
		}
	}
	for status, want := range map[string]bool{
		"Name:\ta\nNSpid:\t70\t1\nNSpgid:\t70\t1\n": true, "NSpid:\t70\t12\t1\n": true,
		"NSpid:\t1\n": false, "NSpid:\t70\t12\n": false, "NSpgid:\t70\t1\n": false, "": false,
	} {
		if got := firstOf(status); got != want {
			t.Errorf("%q: first %v, want %v", status, got, want)
		}
	}
}
