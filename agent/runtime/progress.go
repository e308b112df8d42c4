package runtime

import (
	"fmt"
	"sync/atomic"
)

// PullProgress is how far a pull is, for whoever looks meanwhile. The runtime writes it. It is safe for
// concurrent use; the zero value is one that was not started, and a nil one is not read.
type PullProgress struct {
	done, total atomic.Int64 // bytes, as they are sent
	waits       atomic.Pointer[string]
}

// Wait says what the pull waits for before it begins; "": for nothing any more.
func (p *PullProgress) Wait(forWhat string) {
	if p != nil {
		p.waits.Store(&forWhat)
	}
}

// Begin forgets what an earlier attempt has fetched.
func (p *PullProgress) Begin() {
	if p != nil {
		p.done.Store(0)
		p.total.Store(0)
	}
}

// Expect adds bytes that are to be fetched.
func (p *PullProgress) Expect(bytes int64) {
	if p != nil {
		p.total.Add(bytes)
	}
}

// Fetched adds bytes that were; a negative number are fetched again.
func (p *PullProgress) Fetched(bytes int64) {
	if p != nil {
		p.done.Add(bytes)
	}
}

// Tenths of the bytes that were fetched, 0 to 10.
func (p *PullProgress) Tenths() int64 {
	done, total := p.done.Load(), p.total.Load()
	if total <= 0 {
		return 0
	}
	return min(max(10*done/total, 0), 10)
}

// Text says how far the pull of image is.
func (p *PullProgress) Text(image string) string {
	const mb = 1_000_000
	done, total := p.done.Load(), p.total.Load()
	waits := p.waits.Load()
	switch {
	case waits != nil && *waits != "":
		return fmt.Sprintf("image %s: waiting: %s", image, *waits)
	case total <= 0:
		return fmt.Sprintf("pulling %s: asking the registry", image)
	case done >= total:
		return fmt.Sprintf("pulling %s: unpacking %d MB", image, (total+mb-1)/mb)
	}
	return fmt.Sprintf("pulling %s: %d of %d MB", image, done/mb, (total+mb-1)/mb)
}

// GroupProgress is how far a volume is given to a group, for whoever looks meanwhile. It is safe for
// concurrent use; the zero value is one that was not started, and a nil one is not read.
type GroupProgress struct {
	done atomic.Int64
	tree atomic.Pointer[string]
}

// Begin starts with a tree.
func (p *GroupProgress) Begin(tree string) {
	if p != nil {
		p.done.Store(0)
		p.tree.Store(&tree)
	}
}

// Add counts a file or directory.
func (p *GroupProgress) Add() {
	if p != nil {
		p.done.Add(1)
	}
}

// Text says how far it is; "": it was not started.
func (p *GroupProgress) Text() string {
	tree := p.tree.Load()
	if tree == nil {
		return ""
	}
	return fmt.Sprintf("giving %s to the group of fsGroup: %d files and directories so far", *tree, p.done.Load())
}
