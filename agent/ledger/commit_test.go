package ledger

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stead-project/stead/spec/causes"
)

// gatedDisk waits before each sync until it is let through, and counts them.
type gatedDisk struct {
	memory
	gate  chan struct{} // closed: nothing waits
	syncs int
}

func (d *gatedDisk) Sync() error {
	<-d.gate
	d.syncs++
	return d.memory.Sync()
}

// gated has a ledger whose disk lets everything through until shut is called.
func gated(t *testing.T) (*Ledger, *gatedDisk) {
	t.Helper()
	d := &gatedDisk{gate: make(chan struct{})}
	close(d.gate)
	l, err := OpenDisk(d, "b1")
	must(t, err)
	d.syncs = 0
	return l, d
}

func (d *gatedDisk) shut() { d.gate = make(chan struct{}) }

// awaitWaiting returns when so many identities wait for the disk.
func awaitWaiting(t *testing.T, l *Ledger, count int) {
	t.Helper()
	for end := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		l.mu.Lock()
		waiting := len(l.waiting)
		l.mu.Unlock()
		if waiting == count {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("%d wait for the disk, want %d", waiting, count)
		}
	}
}

func TestALifeWaitsTwiceForTheDiskAndLivesThatBeginAtOnceShareThat(t *testing.T) {
	l, d := gated(t)
	must(t, l.OpenToken(ident(0), tok(1)))
	if d.syncs != 1 {
		t.Errorf("opened: %d waits, want 1", d.syncs)
	}
	must(t, l.CloseToken(ident(0), tok(1), causes.Stopped))
	must(t, l.Stored(ident(0), tok(1)))
	if d.syncs != 2 {
		t.Errorf("stored: %d waits, want 2", d.syncs)
	}
	d.syncs = 0
	d.shut()
	var group sync.WaitGroup
	for n := range 1000 {
		group.Go(func() {
			if err := l.OpenToken(ident(n+1), tok(1)); err != nil {
				t.Error(err)
			}
		})
	}
	awaitWaiting(t, l, 1000)
	close(d.gate)
	group.Wait()
	if d.syncs > 2 {
		t.Errorf("1000 at once: %d waits, want 2: those that came while one was under way share the next", d.syncs)
	}
	must(t, l.Close())
	if bytes.Contains(d.content, []byte(" [")) {
		t.Error("a ledger that was closed has several records on a line")
	}
}

// The definition is one call after the other.
func TestCallsAtOnceAreCallsInSomeOrder(t *testing.T) {
	for seed := range uint64(10) {
		l, d := gated(t)
		var group sync.WaitGroup
		for n := range 20 {
			r := rand.New(rand.NewPCG(seed, uint64(n)))
			group.Go(func() {
				for k := range int64(20) {
					id, token := ident(n), tok(k+1)
					errs := []error{l.OpenToken(id, token), l.CloseToken(id, token, causes.Stopped)}
					if r.IntN(2) == 0 {
						errs = append(errs, l.Stored(id, token))
					}
					if err := errors.Join(errs...); err != nil {
						t.Error(err)
					}
				}
			})
		}
		group.Wait()
		want := l.Entries()
		must(t, l.Close())
		after, err := OpenDisk(&memory{content: bytes.Clone(d.durable)}, "b1")
		must(t, err)
		if got := after.Entries(); !reflect.DeepEqual(got, want) {
			t.Errorf("seed %d: got %+v, want %+v", seed, got, want)
		}
	}
}

func TestNothingReturnsBeforeItIsOnDisk(t *testing.T) {
	l, d := gated(t)
	d.shut()
	var returned atomic.Int32
	var group sync.WaitGroup
	for n := range 3 {
		group.Go(func() {
			if err := l.OpenToken(ident(n), tok(1)); err != nil {
				t.Error(err)
			}
			returned.Add(1)
		})
		awaitWaiting(t, l, n+1)
	}
	for n := range 3 {
		if e := l.Look(ident(n)); returned.Load() > 0 || !e.Open.IsZero() {
			t.Errorf("%d returned, and %+v, before the disk has it", returned.Load(), e)
		}
	}
	close(d.gate)
	group.Wait()
}

// Two that want to start different lives of one identity: while the first is written, the
// second does not decide on what was before it.
func TestNothingIsDecidedAboutAnIdentityWhileSomethingOfItIsWritten(t *testing.T) {
	for range 100 {
		l, d := gated(t)
		d.shut()
		var errs [2]error
		var group sync.WaitGroup
		group.Go(func() { errs[0] = l.OpenToken(ident(0), tok(5)) })
		awaitWaiting(t, l, 1)
		group.Go(func() { errs[1] = l.OpenToken(ident(0), tok(6)) })
		for range 100 { // the second comes as far as it can, also on a busy machine
			runtime.Gosched()
		}
		close(d.gate)
		group.Wait()
		if errs[0] != nil || !errors.Is(errs[1], ErrOpen) {
			t.Fatalf("got %v and %v, want the first opened", errs[0], errs[1])
		}
	}
}

func TestAllThatShareAWriteFailWithIt(t *testing.T) {
	l, d := gated(t)
	d.shut()
	d.sync = errors.New("the disk is gone")
	var group sync.WaitGroup
	for n := range 10 {
		group.Go(func() {
			if err := l.OpenToken(ident(n), tok(1)); !errors.Is(err, ErrBroken) {
				t.Errorf("got %v, want ErrBroken", err)
			}
		})
	}
	awaitWaiting(t, l, 10)
	close(d.gate)
	group.Wait()
	for _, e := range l.Entries() {
		if !e.Open.IsZero() {
			t.Errorf("open, and not on disk: %+v", e)
		}
	}
}

func TestALineOfSeveralRecordsIsKeptWholeOrNotAtAll(t *testing.T) {
	d := &memory{}
	l, err := OpenDisk(d, "b1")
	must(t, err)
	must(t, l.OpenToken(ident(0), tok(1)))
	must(t, l.CloseToken(ident(0), tok(1), causes.Stopped))
	before := len(d.content)
	must(t, l.Stored(ident(0), tok(1)))
	must(t, l.OpenToken(ident(1), tok(2)))
	whole := bytes.Clone(d.content)
	for cut := before; cut <= len(whole); cut++ {
		l, err := OpenDisk(&memory{content: bytes.Clone(whole[:cut])}, "b1")
		must(t, err)
		got := fmt.Sprint(l.Look(ident(1)).Open == tok(2), len(l.Look(ident(0)).Ends))
		if want := map[bool]string{true: "true 0", false: "false 1"}[cut == len(whole)]; got != want {
			t.Fatalf("cut at %d of %d: got %s, want %s", cut, len(whole), got, want)
		}
	}
}
