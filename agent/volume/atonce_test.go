package volume

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/stead-project/stead/agent/runtime"
)

// oneOrOther checks that a volume whose return and erasure met is whole in its place, and
// erased later as if it had never been in the trash, or not at all.
func (l *lab) oneOrOther(what string, restored, erased error) {
	l.t.Helper()
	if restored == nil {
		l.whole(what)
		return
	}
	if !errors.Is(restored, runtime.ErrAbsent) || erased != nil {
		l.t.Fatalf("%s: brought back: %v, erased: %v", what, restored, erased)
	}
	if _, err := os.Stat(l.place()); !errors.Is(err, fs.ErrNotExist) {
		l.t.Errorf("%s: something stands in its place: %v", what, err)
	}
	if found, err := l.agent().Trash(l.t.Context()); err != nil || len(found) != 0 {
		l.t.Errorf("%s: the trash holds %v, error %v", what, found, err)
	}
}

// Whoever comes first, bringing back and erasing leave it whole or not at all.
func TestBringingBackAndErasingAtOnce(t *testing.T) {
	restore := func(v *Volumes) error { return v.Restore(t.Context(), bringBack) }
	erase := func(v *Volumes) error { return v.Erase(t.Context(), "local", data.ID) }
	// One of them does all it does between two steps of the other.
	for what, c := range map[string]struct {
		slow, quick func(*Volumes) error
		steps       int
	}{
		"erased meanwhile":       {restore, erase, 3},
		"brought back meanwhile": {erase, restore, 5},
	} {
		n := 1
		for ; n <= c.steps+1; n++ {
			l := newLab(t)
			l.trashed()
			l.now += time.Hour // its time is over
			v, w := l.agent(), l.agent()
			count := 0
			var quick error
			v.step = func(string) error {
				count++
				if count == n {
					quick = c.quick(w)
				}
				return nil
			}
			slow := c.slow(v)
			if count < n {
				break
			}
			restored, erased := slow, quick
			if what == "brought back meanwhile" {
				restored, erased = quick, slow
			}
			l.oneOrOther(fmt.Sprintf("%s, before step %d", what, n), restored, erased)
		}
		if n != c.steps+1 {
			t.Errorf("%s: %d steps, want %d", what, n-1, c.steps)
		}
	}
	for n := range 6 { // and at once
		l := newLab(t)
		l.trashed()
		l.now += time.Hour
		v := l.agent()
		var group sync.WaitGroup
		var restored, erased error
		begin := make(chan struct{})
		group.Go(func() { <-begin; restored = restore(v) })
		group.Go(func() { <-begin; erased = erase(v) })
		close(begin)
		group.Wait()
		l.oneOrOther(fmt.Sprint("try ", n), restored, erased)
	}
}
