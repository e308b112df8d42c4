// Package program compares the programs that processes run: what outlives an agent may be of another release than the next agent.
package program

import (
	"bytes"
	"fmt"
	"os"
)

// Runs reports whether a process runs the program at a path, or one of the same content. It does not where that cannot be seen.
func Runs(pid int, path string) bool { return same(fmt.Sprintf("/proc/%d/exe", pid), path) }

// same reports whether two files are one, or have the same content.
func same(a, b string) bool {
	x, err := os.Stat(a)
	y, err2 := os.Stat(b)
	if err != nil || err2 != nil || x.Size() != y.Size() {
		return false
	}
	if os.SameFile(x, y) {
		return true
	}
	one, err := os.ReadFile(a)
	two, err2 := os.ReadFile(b)
	return err == nil && err2 == nil && bytes.Equal(one, two)
}
